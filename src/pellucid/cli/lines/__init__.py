"""Lines in, lines out: streams, resumable output, jobs."""

__all__: list[str] = []
