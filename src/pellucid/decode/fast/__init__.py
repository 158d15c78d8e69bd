"""The Transformer laid out for decoding; tests hold it to the model."""

__all__: list[str] = []
