"""Text for a terminal."""

__all__: list[str] = []
