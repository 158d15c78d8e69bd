"""report.html and report.png."""

__all__: list[str] = []
