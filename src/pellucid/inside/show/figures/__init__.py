"""SVG, PNG and PDF figures."""

__all__: list[str] = []
