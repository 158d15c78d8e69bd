"""Training: loss, schedule, loop, checkpoints."""
