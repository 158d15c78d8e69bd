"""Text in and out: tokenizers, normalization, readers of parallel text."""
