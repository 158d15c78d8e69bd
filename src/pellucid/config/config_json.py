"""``config.json``: the configuration inside a bundle, with its tokenizer."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from pellucid.config.base import Several, Strict
from pellucid.config.decoding import DecodingConfig, Precision
from pellucid.config.model import ModelConfig
from pellucid.config.renamed_keys import LEFT_OUT

# SentencePiece learns neither NUL nor U+2585; other signs mark spaces, joints, unknown words.
RESERVED = re.compile("[\0\u2581\u2585\uffed\ufdd0-\ufdef]|^(?:<pad>|<unk>|</?s>|<0x[0-9A-F]{2}>)$")
"""Signs and tokens that have a meaning for vocabularies."""


MASKS = tuple("❶❷❸❹❺❻❼❽❾❿⓫⓬⓭⓮⓯⓰⓱⓲⓳⓴")
"""Symbols for placeholders, which no normal form of Unicode changes. A model whose tokenizer has
them reads and writes them in the place of placeholders."""


class LanguagesConfig(Strict):
    """The two languages."""

    source: str = ""
    """Code of the source language, such as ``en``; empty if unknown."""
    target: str = ""
    """Code of the target language, such as ``fr``; empty if unknown."""


class TokenizerConfig(Strict):
    """A tokenizer, as a bundle's ``config.json`` describes it."""

    # Text
    kind: Literal["sentencepiece", "words"] = "sentencepiece"
    """Subwords of SentencePiece, or whole words."""
    sharing: Literal["joint", "separate"] = "joint"
    """One vocabulary for both languages, or one for each."""
    normalization: Literal["nfc", "nfkc", "none"] = "nfc"
    """Unicode form. NFC composes accents and changes nothing else, so that the no-break spaces of
    correct French survive; SentencePiece's own default erases them."""
    lowercase: bool = False
    """Lower-case the text; whole words only."""
    drop_punctuation: bool = False
    """Drop punctuation; whole words only."""

    symbols: Several[str] = ()
    """Texts that are always one token, such as ``["<news>", "<2fr>"]``: tags of a domain or a
    language, placeholders. They are found within words too: take signs that no other text has."""

    # Special tokens
    pad_id: int = Field(default=0, ge=0)
    """Id of the padding."""
    unk_id: int = Field(default=1, ge=0)
    """Id of an unknown token."""
    bos_id: int | None = Field(default=2, ge=0)
    """Id of ``<s>``. ``null`` in models of Marian that have no ``<s>``."""
    eos_id: int = Field(default=3, ge=0)
    """Id of ``</s>``."""
    target_start_id: int = Field(default=2, ge=0)
    """Id that every target starts from; models of Marian start from their padding."""

    # Imported models whose texts begin with a token that is not text
    first_token: Literal["none", "languages", "target-language", "bos", "source-start"] = "none"
    """First token of both texts: ``languages`` is the source's language and the target's,
    ``target-language`` that of the target before the source, ``bos`` is ``<s>``, and
    ``source-start`` puts the start of a target before the source, too."""
    languages: Several[str] = ()
    """Tokens that name languages, such as ``__fr__`` or ``fra_Latn``."""

    @model_validator(mode="after")
    def _check_kind_and_ids(self) -> TokenizerConfig:
        for name in ("lowercase", "drop_punctuation"):
            if self.kind != "words" and getattr(self, name):
                raise ValueError(
                    f"tokenizer.{name} must be false unless tokenizer.kind is 'words', but is "
                    f"true with {self.kind!r}"
                )
        for symbol in self.symbols:
            is_repeated = self.symbols.count(symbol) > 1
            if symbol.split() != [symbol] or RESERVED.search(symbol) or is_repeated:
                raise ValueError(
                    "tokenizer.symbols must be different texts without white space, signs of "
                    f"vocabularies such as ▁, and special tokens such as </s>, but has {symbol!r}"
                )
        ids = (self.pad_id, self.unk_id, self.bos_id, self.eos_id)
        if len(set(ids)) < len(ids):
            raise ValueError(
                "tokenizer.pad_id, unk_id, bos_id and eos_id must differ from each other, but "
                f"are {', '.join(map(str, ids))}"
            )
        names_languages = self.first_token in ("languages", "target-language")
        if names_languages != bool(self.languages):
            raise ValueError(
                "tokenizer.languages must hold tokens exactly if tokenizer.first_token is "
                f"'languages' or 'target-language', but it is {self.first_token!r} with "
                f"{len(self.languages)} tokens"
            )
        if self.first_token == "bos" and self.bos_id is None:
            raise ValueError("tokenizer.bos_id must be an id if tokenizer.first_token is 'bos'")
        return self

    @model_serializer(mode="wrap")
    def _leave_out_later_keys(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # The files, and so the hashes, of models that do not use them stay as they are.
        values: dict[str, Any] = write(self)
        plain = {"symbols": [], "languages": [], "first_token": "none"}
        return {k: v for k, v in values.items() if k not in plain or v not in (plain[k], ())}


_LIMITS = LEFT_OUT["decoding"]


class BundleConfig(Strict):
    """The whole of ``config.json``."""

    format: Literal[1] = 1
    """Version of the bundle format."""
    precision: Precision = "float32"
    """Precision of the stored weights."""
    languages: LanguagesConfig = Field(default_factory=LanguagesConfig)
    """Source and target language."""
    decoding: DecodingConfig = Field(default_factory=DecodingConfig)
    """Defaults of a translation."""
    model: ModelConfig
    """Sizes and switches."""
    tokenizer: TokenizerConfig
    """Kind and special tokens."""

    # The format writes 0 for a limit that does not hold. Recipes leave it out.
    @model_validator(mode="before")
    @classmethod
    def _read_limits(cls, values: Any) -> Any:
        decoding = values.get("decoding") if isinstance(values, dict) else None
        if not isinstance(decoding, dict):
            return values
        held = {name: one for name, one in decoding.items() if not (name in _LIMITS and one == 0)}
        return {**values, "decoding": held}

    @model_serializer(mode="wrap")
    def _write_limits(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = write(self)
        decoding = {
            name: 0 if name in _LIMITS and one is None else one
            for name, one in values["decoding"].items()
        }
        return {**values, "decoding": decoding}

    @model_validator(mode="after")
    def _check_precision(self) -> BundleConfig:
        # Its states would add up the rounding of every step.
        if self.model.is_recurrent and self.precision != "float32":
            raise ValueError(
                f"precision must be float32 for a recurrent model, but is {self.precision}"
            )
        return self
