"""Word links from cross-attention."""

__all__: list[str] = []
