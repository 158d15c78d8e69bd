"""One update: passes, gradients, memory, processes."""

__all__: list[str] = []
