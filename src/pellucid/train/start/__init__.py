"""Everything before the first update."""

__all__: list[str] = []
