"""Training passes on the package's own kernels."""
