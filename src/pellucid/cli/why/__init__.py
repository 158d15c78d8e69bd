"""The terminal's view of a measurement."""

__all__: list[str] = []
