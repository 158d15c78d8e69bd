"""What a trace holds, below everything that draws it."""

__all__: list[str] = []
