"""``pellucid look``: one translation in the terminal and in files."""

__all__: list[str] = []
