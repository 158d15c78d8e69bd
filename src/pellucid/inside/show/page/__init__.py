"""HTML pages that need no network."""

__all__: list[str] = []
