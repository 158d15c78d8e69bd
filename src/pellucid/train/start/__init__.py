"""Everything before the first update."""
