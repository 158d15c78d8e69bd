"""A trace as text for a terminal."""

__all__: list[str] = []
