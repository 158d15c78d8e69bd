"""Passes in bfloat16 on a processor, with PyTorch: all positions of a batch as rows."""
