"""One update: passes, gradients, memory, processes."""
