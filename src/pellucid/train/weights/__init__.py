"""How weights move: optimizers, schedules, averages."""

__all__: list[str] = []
