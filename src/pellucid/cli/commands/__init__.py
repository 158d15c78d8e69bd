"""One file per command, and nothing else."""

__all__: list[str] = []
