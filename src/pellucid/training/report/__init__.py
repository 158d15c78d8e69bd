"""The report of a run: report.html and report.png."""
