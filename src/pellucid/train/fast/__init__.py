"""Faster ways to the same gradients; tests hold them to the model."""

__all__: list[str] = []
