"""The Transformer laid out for fast decoding; tests compare it with the model."""
