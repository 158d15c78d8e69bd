"""Tokenizers of models whose texts begin with a token that is no text: a language, or ``<s>``.

M2M100, NLLB, SMaLL-100, mBART-50 and BART. A source line names its languages by a code at its
start, such as ``>>eng_Latn:fra_Latn<<``, as lines for Marian's models of several targets do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self, final

from pellucid.config import TokenizerConfig
from pellucid.errors import BundleError, InputError
from pellucid.text.tokenizers.byte_pairs import BytePairs
from pellucid.text.tokenizers.marian import PieceVocabulary
from pellucid.text.tokenizers.tokenizer import (
    Lines,
    Tokenizer,
    damaged_model,
    read_tokens,
    take_file,
    write_vocabulary,
)

MODEL = "pieces.model"
MERGES = "merges.txt"
VOCABULARY = "vocabulary.txt"

_CODE = re.compile(r"\s*>>(?:([^\s<>:]+):)?([^\s<>:]+)<<")


@final
class HeadedTokenizer(Tokenizer):
    """A tokenizer of one vocabulary whose texts have a first token: see ``first_token``.

    ``pieces.model`` cuts, or ``merges.txt`` for pairs of bytes; ``vocabulary.txt`` gives the ids.
    """

    _source: PieceVocabulary | BytePairs

    def __init__(self, config: TokenizerConfig, vocabulary: PieceVocabulary | BytePairs) -> None:
        super().__init__(config, vocabulary, vocabulary)
        ids = {token: id_ for id_, token in enumerate(vocabulary.tokens)}
        self._languages = {name_of(token): ids[token] for token in config.languages}
        if config.first_token == "bos":
            assert config.bos_id is not None
            self.first_ids = frozenset((config.bos_id,))
        else:
            self.first_ids = frozenset(self._languages.values())
        # A language's token may come anywhere in what a model writes, and is never a word.
        self._textless |= self.first_ids

    @classmethod
    def load(cls, config: TokenizerConfig, files: Mapping[str, bytes], where: str) -> Self:
        """Read pieces and ids from a bundle's files.

        Args:
            config: the bundle's tokenizer section.
            files: the bundle's files by name; only the tokenizer's are read.
            where: the bundle, for messages.

        Raises:
            BundleError: a file is missing, damaged, or disagrees with the configuration.
        """
        tokens = read_tokens(files, VOCABULARY, where)
        special = [config.pad_id, config.unk_id, config.eos_id, config.target_start_id]
        special += [] if config.bos_id is None else [config.bos_id]
        missing = sorted({*config.languages} - {*tokens})
        if max(special) >= len(tokens) or missing:
            what = f"the language {missing[0]}" if missing else f"the id {max(special)}"
            raise BundleError(
                f"{VOCABULARY} must have what config.json names, but its {len(tokens)} tokens lack "
                f"{what} ({where}). The two files belong to different models; copy the whole "
                "folder again."
            )
        names = {*config.languages}
        reserved = {id_ for id_, token in enumerate(tokens) if token in names}
        reserved |= {*special} - {config.unk_id}
        if MERGES in files:
            merges = files[MERGES]
            pairs = BytePairs(merges, tokens, unk_id=config.unk_id, reserved=reserved)
            return cls(config, pairs)
        model = take_file(files, MODEL, where)
        try:
            vocabulary = PieceVocabulary(model, tokens, unk_id=config.unk_id, reserved=reserved)
        except RuntimeError:
            raise damaged_model(MODEL, model, where) from None
        return cls(config, vocabulary)

    def files(self) -> dict[str, bytes]:
        """Return the model and the list that a bundle keeps, by name."""
        return {
            MERGES if isinstance(self._source, BytePairs) else MODEL: self._source.to_bytes(),
            VOCABULARY: write_vocabulary(self._source.tokens),
        }

    def extended(self, count: int, sources: Lines, targets: Lines) -> Tokenizer:
        """Refuse new tokens: these models have them for every language that they know.

        Raises:
            InputError: always.
        """
        raise InputError(
            "start.new_tokens must be 0 for a model of this kind, whose vocabulary cannot be "
            "extended. Leave it out."
        )

    @property
    def reads_source_language(self) -> bool:
        """True if a code names both languages, such as ``>>eng_Latn:fra_Latn<<``."""
        return self.config.first_token == "languages"

    @property
    def needs_code(self) -> bool:
        """True if no text can be translated without a code: there is no language to guess."""
        return bool(self._languages)

    @cached_property
    def language_codes(self) -> tuple[str, ...]:
        """The languages that a text may be translated into, each as ``>>fra_Latn<<``."""
        return tuple(f">>{name}<<" for name in self._languages)

    def knows_code(self, code: str) -> bool:
        """Tell whether a source text may begin with a code: of both languages if it needs both."""
        found = _CODE.fullmatch(code)
        if found is None or bool(found[1]) != self.reads_source_language:
            return False
        return all(name in self._languages for name in found.groups() if name is not None)

    def language_code(self, text: str) -> str:
        """Return the code at the start of a source text that names its languages."""
        found = _CODE.match(text) if self._languages else None
        return found[0] if found is not None and self.knows_code(found[0].strip()) else ""

    def given_ids(self, source: str) -> tuple[int, ...]:
        """Return the first token of a source's translation: its language's, or ``<s>``."""
        return self._first_of(source, 2) if self.config.first_token != "target-language" else ()

    def encode_source(self, text: str) -> list[int]:
        """Cut a source text into ids: its first token, its pieces, ``</s>``."""
        return self.encode_sources([text])[0]

    def encode_sources(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many source texts, as `encode_source` does, but faster."""
        group = 1 if self.reads_source_language else 2
        rests = [text[len(self.language_code(text)) :] for text in texts]
        encoded = self._encode_many(self._source, rests)
        return [
            [*self._first_of(text, group), *ids] for text, ids in zip(texts, encoded, strict=True)
        ]

    def _first_of(self, source: str, group: int) -> tuple[int, ...]:
        """Find the first token that a code names: 1 is the source's language, 2 the target's."""
        if not self._languages:
            return tuple(self.first_ids)
        found = _CODE.fullmatch(self.language_code(source))
        return () if found is None else (self._languages[found[group]],)


def name_of(token: str) -> str:
    """Name the language of a token: ``fr`` of ``__fr__``; other tokens are names themselves."""
    return token.removeprefix("__").removesuffix("__")
