"""The report of a run: report.html and report.png."""

__all__: list[str] = []
