"""Tiny models that learn a tiny language in seconds, to take the architecture apart."""
