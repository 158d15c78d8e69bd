"""The data section of a recipe: the text, and the pairs to leave out of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    field_validator,
    model_validator,
)

from pellucid.config.base import Several, Strict
from pellucid.config.renamed_keys import refuse_old
from pellucid.files import endings, expand_home

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")

_TABLES = (".tsv", ".csv", ".jsonl", ".parquet", ".arrow", ".po", ".xlf", ".xliff", ".tmx")


def as_texts(value: Any) -> Any:
    """Read a list of texts. A single name is one text, and so are two files that are not tables."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        return value
    is_pair = len(value) == 2 and all(
        isinstance(name, str) and endings(name).kind not in _TABLES for name in value
    )
    texts = [value] if is_pair else value
    for text in texts:
        names = ["", text] if isinstance(text, str) else text
        if not isinstance(names, list | tuple) or [*map(type, names)] != [str, str]:
            raise ValueError(
                "A text must be the name of a file of pairs, or must be two files, [SOURCE, "
                f"TARGET], but is {text!r}"
            )
    return tuple(tuple(text) if isinstance(text, list) else text for text in texts)


Texts = Annotated[tuple[str | tuple[str, str], ...], BeforeValidator(as_texts)]
"""Files of pairs, and pairs of parallel files."""


class DataConfig(Strict):
    """The text, and the pairs to leave out of it.

    A text is ``["a.en", "a.fr"]``, parallel files in which line i of one translates line i of the
    other, or a file of pairs, which holds both sides: ``.tsv`` and ``.csv`` (source, target, or
    more columns, see ``columns``), ``.jsonl`` (objects with ``source`` and ``target``, or with a
    key for each language, also inside ``translation``), ``.parquet`` and ``.arrow`` (such columns),
    ``.po``, ``.xlf`` and ``.tmx`` (without fuzzy, obsolete and untranslated entries).
    Text may be plain or packed: ``.gz``, ``.xz``, ``.bz2`` or ``.zst``. Several texts are a list:
    ``train = [["a.en", "a.fr"], ["b.en", "b.fr"], "c.tsv"]``.

    The test text is optional: nothing is learned or chosen from it. Only the data check reads it,
    to see if it is in the training text.
    """

    # Place and languages
    folder: str = ""
    """Folder that relative names start from; itself relative to the recipe's. ``$NAME`` is taken
    from the environment, and ``~/`` in any name is the home folder."""
    source_language: str = ""
    """Code of the source language, such as ``en``."""
    target_language: str = ""
    """Code of the target language, such as ``fr``."""

    # Text
    train: Texts = ()
    """Training text: a file of pairs, two parallel files, or a list of such texts."""
    validation: Texts = ()
    """Validation text, by which the best model is chosen."""
    test: Texts = ()
    """Test text; it may be left out."""
    split: int | None = Field(default=None, gt=0)
    """In place of validation and test text, set aside so many pairs of the training text for each,
    at most a tenth of it: rare pairs, those whose sources have the smallest and the largest hashes.
    Training leaves out every pair with a source or target of theirs."""
    set_aside_as: str | None = None
    """With ``split``, a model whose training set text aside (its bundle or run folder): the same
    pairs are set aside again, since it may have learned all others. Training that starts from such
    a model fills this in."""

    # Weights and links of training text
    train_weights: Several[Annotated[float, Field(gt=0, le=1000)]] = ()
    """Passes over each corpus in an epoch: 2 shows every pair twice, 0.5 a fresh half of the pairs.
    One number for each text of ``train``; 1 for all unless given."""
    train_alignments: Several[str] = ()
    """Word links for ``training.guided_head``, one file for each text of ``train``: in
    Pharaoh format, one pair of sentences a line."""

    # Reading
    columns: Several[PositiveInt | str] = ()
    """The columns of source and target in files of pairs: two names of the first line of a
    ``.tsv``, such as ``["en", "fr"]``, or two numbers from 1; in ``.jsonl`` two keys, with a dot
    between nested ones. The first line of a ``.tsv`` is left out if it holds the names."""
    on_bad_line: Literal["stop", "skip"] = "stop"
    """A line that cannot be used, because a column or key is missing or it is not UTF-8, stops the
    training with a list of such lines, or is left out and counted."""
    cut_by: Literal["none", "bpe", "sentencepiece", "wordpiece", "joiner"] = "none"
    """Text that was cut into subwords before is joined to words as it is read: ``bpe``
    (``nu@@ mber``), ``sentencepiece`` (``▁num ber``), ``wordpiece`` (``num ##ber``), ``joiner``
    (``num ￭ber``). The model then reads and writes words."""
    placeholders: Literal["text", "masks"] = "text"
    """Placeholders such as ``%s``, ``{name}`` or an address are read as they are, or as ``masks``:
    the model gets a symbol for each, and its translations get the placeholders back."""

    # Pairs to leave out
    max_pair_length: PositiveInt = 256
    """Leave out a pair if a side has more tokens than this, ``</s>`` included."""
    max_source_target_ratio: PositiveFloat = 9.0
    """Leave out a pair if a side has more than this many times the tokens of the other."""

    _whole: DataConfig | None = PrivateAttr(default=None)

    @property
    def whole(self) -> DataConfig:
        """The section that this is a part of; the split is that of its text."""
        return self._whole or self

    def part(self, **names: Any) -> DataConfig:
        """Return this section with other names of files."""
        part = self.model_copy(update=names)
        part._whole = self.whole
        return part

    def names(self, split: Split) -> list[tuple[str, ...]]:
        """Name the texts of a split: the file of each, or its two parallel files.

        With ``split``, validation and test text are in those of the training text.
        """
        texts = getattr(self, self.key_of(split))
        return [(text,) if isinstance(text, str) else text for text in texts]

    def key_of(self, split: Split) -> Split:
        """Return the key that names the files of a split."""
        return "train" if self.split else split

    @model_validator(mode="before")
    @classmethod
    def _refuse_old(cls, values: Any) -> Any:
        refuse_old("data", values)
        return values

    @field_validator("*")
    @classmethod
    def _expand_home(cls, value: Any) -> Any:
        """Let ``~/`` stand for the user's home folder in the names of files."""
        return expand_home(value)

    @model_validator(mode="after")
    def _check_sides(self) -> DataConfig:
        for split in SPLITS:
            texts = getattr(self, split)
            is_split_off = self.split is not None and split != "train"
            if is_split_off and texts:
                raise ValueError(
                    f"split takes the {split} text from the training text, but {split} names files "
                    "too: remove one of them"
                )
            if not texts and split != "test" and not is_split_off:
                raise ValueError(
                    f"No files were given for {split}: name them in {split}"
                    + ", or let split = 1000 set it aside" * (split == "validation")
                )
        if len(self.columns) not in (0, 2):
            raise ValueError(
                "columns must name two columns, those of source and target, but names "
                f"{len(self.columns)}"
            )
        num_corpora = len(self.train)
        for key, what in (("train_weights", "number"), ("train_alignments", "file")):
            given = getattr(self, key)
            if given and len(given) != num_corpora:
                raise ValueError(
                    f"{key} must hold one {what} for each of the {num_corpora} training corpora, "
                    f"but holds {len(given)}"
                )
        if self.split and self.train_alignments:
            raise ValueError(
                "split leaves out lines that train_alignments would count: name the files in "
                "validation, or leave train_alignments out"
            )
        return self
