"""``pellucid lesson`` on a terminal and in files."""

__all__: list[str] = []
