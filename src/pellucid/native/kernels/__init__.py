"""Kernels in C for the operations that training spends its time on, and their Python interface."""
