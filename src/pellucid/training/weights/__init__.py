"""The update of weights: optimizers, schedules, averages, frozen parts."""
