"""The output of `pellucid align`."""

__all__: list[str] = []
