"""Training passes on the package's own kernels."""

__all__: list[str] = []
