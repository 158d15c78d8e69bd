"""Training on the package's C kernels."""

__all__: list[str] = []
