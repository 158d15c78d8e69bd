"""Marian's subwords: SentencePiece cuts, and a vocabulary file gives the ids."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Self, final

import sentencepiece

from pellucid.config import TokenizerConfig
from pellucid.errors import BundleError
from pellucid.text.tokenizers.new_pieces import (
    VocabularyPiece,
    append_pieces,
    learn_pieces,
    spell_piece,
)
from pellucid.text.tokenizers.tokenizer import (
    SPACE_SIGN,
    Lines,
    Tokenizer,
    damaged_model,
    file_names,
    prepare_training_lines,
    read_tokens,
    take_file,
    write_vocabulary,
)

# SentencePiece decodes its unknown piece as " ⁇ ", but leaves a piece that is not in its model
# as it is. A noncharacter that no text holds therefore stands for <unk> while decoding.
_STAND_IN = "\ufdd0"

_CODE = re.compile(r">>[^\s<>]+<<")


@final
class PieceVocabulary:
    """Pieces cut by a SentencePiece model, with the ids of a list of tokens.

    A piece that is not in the list becomes ``<unk>``. So does one that spells a special token, so
    that text cannot contain ``</s>``.
    """

    def __init__(
        self,
        model: bytes,
        tokens: Sequence[str],
        *,
        unk_id: int,
        reserved: Collection[int],
        has_codes: bool = False,
    ) -> None:
        """Combine a model and a list.

        Args:
            model: a serialized SentencePiece model.
            tokens: the list, in the order of the ids.
            unk_id: the id of pieces that are not in the list.
            reserved: ids that no text may produce.
            has_codes: True if a text may start with a token such as ``>>fra<<``, which names the
                language to translate into and is not cut.

        Raises:
            RuntimeError: the bytes are not a model.
        """
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model)
        self.tokens = tuple(tokens)
        self._unk_id = unk_id
        self._ids = {token: id_ for id_, token in enumerate(tokens) if id_ not in reserved}
        self.codes: tuple[str, ...] = ()
        if has_codes:
            self.codes = tuple(token for token in self._ids if _CODE.fullmatch(token))

    def encode(self, text: str) -> list[int]:
        """Cut one text into ids."""
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many texts into ids, on every core."""
        heads, rests = zip(*map(self.split_code, texts), strict=True) if texts else ((), ())
        return [
            [*head, *(self._ids.get(piece, self._unk_id) for piece in pieces)]
            for head, pieces in zip(
                heads, self._processor.encode(list(rests), out_type=str), strict=True
            )
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """Join ids into a text."""
        pieces = [_STAND_IN if id_ == self._unk_id else self.tokens[id_] for id_ in ids]
        text: str = self._processor.decode(pieces)
        if SPACE_SIGN in text:
            # The list also has the other side's pieces. This model does not know those, and leaves
            # their signs as they are.
            text = text.replace(SPACE_SIGN, " ")
            if pieces[0].startswith(SPACE_SIGN):
                text = text.removeprefix(" ")
        return text.replace(_STAND_IN, self.tokens[self._unk_id])

    def learn_pieces(self, lines: Iterable[str], count: int) -> list[VocabularyPiece]:
        """Learn pieces for characters that become ``<unk>``.

        Args:
            lines: the text, normalized.
            count: the most pieces to learn.
        """

        def is_known(letter: str) -> bool:
            return self._unk_id not in self.encode(letter)

        texts = (self.split_code(line)[1] for line in lines)
        return learn_pieces(self._model, cache(is_known), texts, count)

    def spell(self, token: str) -> list[int]:
        """Find the ids that write the text of a piece that the list lacks."""
        return spell_piece(token, self.encode, self.tokens)

    def with_pieces(
        self, pieces: Sequence[VocabularyPiece], tokens: Sequence[str]
    ) -> PieceVocabulary:
        """Append pieces to the model; ``tokens`` is the list with them.

        Args:
            pieces: from `learn_pieces`.
            tokens: the list so far, and then further tokens.
        """
        # Ids that no text could produce before must not become possible.
        reserved = set(range(len(self.tokens))) - set(self._ids.values())
        return PieceVocabulary(
            append_pieces(self._model, pieces),
            tokens,
            unk_id=self._unk_id,
            reserved=reserved,
            has_codes=bool(self.codes),
        )

    def to_bytes(self) -> bytes:
        """Return the serialized model."""
        return self._model

    def split_code(self, text: str) -> tuple[list[int], str]:
        """Split a text into the id of the language code at its start, if any, and the rest."""
        # Spaces before a code must not turn it into text.
        bare = text.lstrip() if self.codes else ""
        if bare.startswith(">>"):
            code, end, rest = bare.partition("<<")
            if code + end in self.codes:
                return [self._ids[code + end]], rest
        return [], text


@final
class MarianTokenizer(Tokenizer):
    """A tokenizer of Marian: ``source.model`` and ``target.model`` cut.

    ``vocabulary.txt`` gives the ids, or ``source.txt`` and ``target.txt`` if they are separate.
    """

    _source: PieceVocabulary
    _target: PieceVocabulary

    def __init__(
        self, config: TokenizerConfig, source: PieceVocabulary, target: PieceVocabulary
    ) -> None:
        super().__init__(config, source, target)
        self._before: list[int] = []
        if config.first_token == "source-start":
            self._before = [config.target_start_id]
            self.first_ids = frozenset(self._before)

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
        source_list, target_list = file_names(config, "vocabulary.txt")
        return cls(
            config,
            _load_side(config, files, "source", source_list, where),
            _load_side(config, files, "target", target_list, where),
        )

    def encode_source(self, text: str) -> list[int]:
        """Cut a source text into ids that end in ``</s>``, and may begin with the start token."""
        return [*self._before, *super().encode_source(text)]

    def encode_sources(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many source texts, as `encode_source` does, but faster."""
        return [[*self._before, *ids] for ids in super().encode_sources(texts)]

    def language_code(self, text: str) -> str:
        """Return the code at the start of a source text that names the target language."""
        _, rest = self._source.split_code(text)
        return text.removesuffix(rest)

    @property
    def language_codes(self) -> tuple[str, ...]:
        """The codes that a source text may begin with, in the order of their ids."""
        return self._source.codes

    def extended(self, count: int, sources: Lines, targets: Lines) -> MarianTokenizer:
        """Append tokens for characters that the vocabularies lack, as `Tokenizer.extended` says."""
        pieces = [
            vocabulary.learn_pieces(prepare_training_lines(self.config, lines), count)
            for vocabulary, lines in ((self._source, sources), (self._target, targets))
        ]
        names = [[piece.text for piece in side] for side in pieces]
        if self.config.sharing == "joint":
            # A joint list gives the ids of both sides, so it needs the pieces of both.
            names = [[*names[0], *names[1]]] * 2
        source, target = (
            # A piece that both sides learned is listed once.
            vocabulary.with_pieces(side, list(dict.fromkeys([*vocabulary.tokens, *more])))
            for vocabulary, side, more in zip(
                (self._source, self._target), pieces, names, strict=True
            )
        )
        return MarianTokenizer(self.config, source, target)

    def unwritten_ids(self) -> list[int]:
        """List the target ids that no translation holds: padding, start, and ids without a token.

        A converter may have appended them, without a place in the model's softmax.
        """
        unused = [id_ for id_, token in enumerate(self._target.tokens) if token == unused_name(id_)]
        # A decoder may start from `</s>`, which ends every translation.
        special = {self.config.pad_id, self.config.target_start_id} - {self.config.eos_id}
        return sorted({*special, *unused})

    def files(self) -> dict[str, bytes]:
        """Return the models and lists that a bundle keeps, by name."""
        models = {"source.model": self._source.to_bytes(), "target.model": self._target.to_bytes()}
        source_list, target_list = file_names(self.config, "vocabulary.txt")
        return models | {
            source_list: write_vocabulary(self._source.tokens),
            target_list: write_vocabulary(self._target.tokens),
        }


def unused_name(id_: int) -> str:
    """Name an id for which an imported vocabulary has no token."""
    return f"<unused-{id_}>"


def _load_side(
    config: TokenizerConfig, files: Mapping[str, bytes], side: str, list_name: str, where: str
) -> PieceVocabulary:
    """Read one side, and check that its ids are in its list."""
    tokens = read_tokens(files, list_name, where)
    ids = {
        name: getattr(config, name)
        for name in ("pad_id", "unk_id", "bos_id", "eos_id", "target_start_id")
    }
    for name, id_ in ids.items():
        if id_ is not None and id_ >= len(tokens):
            raise BundleError(
                f"tokenizer.{name} must be one of the {len(tokens)} ids of {list_name}, but is "
                f"{id_} ({where}/config.json). The two files belong to different models; copy "
                "the whole folder again."
            )
    model = take_file(files, f"{side}.model", where)
    try:
        return PieceVocabulary(
            model,
            tokens,
            unk_id=config.unk_id,
            reserved={id_ for name, id_ in ids.items() if name != "unk_id"},
            has_codes=side == "source",
        )
    except RuntimeError:
        raise damaged_model(f"{side}.model", model, where) from None
