"""Passes in bfloat16 on a processor, with PyTorch: all positions of a batch as rows."""

__all__: list[str] = []
