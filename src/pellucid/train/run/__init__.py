"""The run folder and everything written to it."""

__all__: list[str] = []
