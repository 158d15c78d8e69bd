"""Faster ways to compute gradients; tests compare them with the plain update."""
