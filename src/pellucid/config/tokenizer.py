"""How text becomes tokens."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pellucid.config.base import Strict

__all__ = ["TokenizerConfig"]


class TokenizerConfig(Strict):
    """What a bundle says of its tokenizer.

    ``normalization`` is NFC by default: it composes accents and changes nothing else, so the
    no-break spaces of correct French survive (SentencePiece's own default erases them).
    ``lowercase`` and ``drop_punctuation`` belong to the whole-word vocabulary of the seeds'
    examples and lose information on purpose.
    """

    kind: Literal["sentencepiece", "words"] = "sentencepiece"
    sharing: Literal["joint", "separate"] = "joint"
    normalization: Literal["nfc", "nfkc", "none"] = "nfc"
    lowercase: bool = False
    drop_punctuation: bool = False
    pad_id: int = Field(default=0, ge=0)
    unk_id: int = Field(default=1, ge=0)
    bos_id: int = Field(default=2, ge=0)
    eos_id: int = Field(default=3, ge=0)
    target_start_id: int = Field(default=2, ge=0)
