"""The same trace in every medium."""

__all__: list[str] = []
