"""How text becomes tokens."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from pellucid.config.base import Strict

__all__ = ["TokenizerConfig"]


class TokenizerConfig(Strict):
    """What a bundle says of its tokenizer.

    ``normalization`` is NFC by default: it composes accents and changes nothing else, so the
    no-break spaces of correct French survive (SentencePiece's own default erases them).
    ``lowercase`` and ``drop_punctuation`` belong to whole words (``kind = "words"``) and lose
    information on purpose. ``bos_id`` is None where there is no ``<s>``: models of Marian start
    from their padding.
    """

    kind: Literal["sentencepiece", "words"] = "sentencepiece"
    sharing: Literal["joint", "separate"] = "joint"
    normalization: Literal["nfc", "nfkc", "none"] = "nfc"
    lowercase: bool = False
    drop_punctuation: bool = False
    pad_id: int = Field(default=0, ge=0)
    unk_id: int = Field(default=1, ge=0)
    bos_id: int | None = Field(default=2, ge=0)
    eos_id: int = Field(default=3, ge=0)
    target_start_id: int = Field(default=2, ge=0)

    @model_validator(mode="after")
    def _check_kind_and_ids(self) -> TokenizerConfig:
        for name in ("lowercase", "drop_punctuation"):
            if self.kind != "words" and getattr(self, name):
                raise ValueError(
                    f"tokenizer.{name} must be false unless tokenizer.kind is 'words', but is "
                    f"true with {self.kind!r}"
                )
        ids = (self.pad_id, self.unk_id, self.bos_id, self.eos_id)
        if len(set(ids)) < len(ids):
            raise ValueError(
                "tokenizer.pad_id, unk_id, bos_id and eos_id must differ from each other, but "
                f"are {', '.join(map(str, ids))}"
            )
        return self
