"""A trace in every medium: terminal, page and figures show the same with the same words."""
