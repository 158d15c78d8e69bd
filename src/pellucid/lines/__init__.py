"""Lines around a search: made ready for it before, and judged after it."""

__all__: list[str] = []
