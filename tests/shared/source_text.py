"""The text of source ids, which only tests read back."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.text.tokenizers.tokenizer import Tokenizer

__all__ = ["source_text"]


def source_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Join source ids into a text; padding, start and end tokens are dropped."""
    return tokenizer._source.decode([id_ for id_ in ids if id_ not in tokenizer._textless])
