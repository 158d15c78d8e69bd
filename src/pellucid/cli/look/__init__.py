"""``pellucid look``: one translation in the terminal and in files."""
