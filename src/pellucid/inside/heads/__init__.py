"""The heads of one trace, side by side."""

__all__: list[str] = []
