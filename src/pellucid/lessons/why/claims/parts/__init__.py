"""Parts of claims that are too long for their file."""
