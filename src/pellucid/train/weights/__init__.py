"""The update of weights: optimizers, schedules, averages, frozen parts."""

__all__: list[str] = []
