"""Messages and progress for people while a model trains."""

__all__: list[str] = []
