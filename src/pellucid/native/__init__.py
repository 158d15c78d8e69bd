"""Code in C: the engine that decodes, which needs no PyTorch, and the kernels of training."""
