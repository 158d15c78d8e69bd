"""PyTorch in bfloat16 on a processor: a batch as rows."""

__all__: list[str] = []
