"""A small trained model of subwords with bytes: English to French, with pre-norm.

The packaged model has whole words. Tests of what is special to subwords use this one: pieces of
words, bytes, a joint vocabulary. It was trained on an earlier, smaller form of the built-in corpus.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["SUBWORDS"]

SUBWORDS = str(Path(__file__).parent / "models" / "subwords")
"""The name of its bundle, to load or to name on the command line."""
