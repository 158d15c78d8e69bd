"""What a person reads while a model trains."""

__all__: list[str] = []
