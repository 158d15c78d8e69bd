"""The machine: devices, threads, processes, precision, and random numbers as pure functions."""
