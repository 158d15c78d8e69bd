"""A trace as an HTML page that needs no network."""

__all__: list[str] = []
