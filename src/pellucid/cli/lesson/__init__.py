"""``pellucid lesson`` on a terminal and in files."""
