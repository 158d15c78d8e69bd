"""The result of a measure: a map with labeled rows and columns, a name and a source."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pellucid.arguments import checked
from pellucid.config.head_address import Part
from pellucid.errors import need_library
from pellucid.files import endings, write_text
from pellucid.inside.ask import check_number
from pellucid.inside.pair import PairData
from pellucid.inside.record.data_frames import axes_of_map, to_labeled
from pellucid.inside.record.trace_data import row_labels
from pellucid.inside.show.colors import scale_end
from pellucid.text.token_words import is_punctuation

if TYPE_CHECKING:
    from pellucid.inside.show.figures.panels import MapPanel

MapKind = Literal["self", "cross", "whole"]

OWN = "(own row)"

_MOST_ROWS = 40
"""The most rows of a printed map."""


@dataclass(frozen=True, eq=False, repr=False)
class Map:
    r"""One measure of one sentence: a number for each row and each column.

    Rows are the encoder's positions or the decoder's rows, by index, or parts of the model. A
    decoder row reads one token and predicts the next. The first columns are source tokens. Others
    may follow: the target prefix that the decoder reads, or the row's own vector, carried by the
    residual connection.

    Attributes:
        name: of the measure, as in `MEASURES`.
        source: the paper, and the place in it.
        part: ``encoder`` or ``decoder``; ``model`` for parts of both.
        kind: ``self`` or ``cross`` for one attention, ``whole`` for everything from the tokens to
            the end of `layer`.
        layer: from 0; None if the map is of the model's output.
        head: from 0; None for all heads together.
        matrix: ``(rows, columns)``, float64.
        row_tokens: the token that each row reads.
        predicted_tokens: the token that each decoder row predicts; None for the encoder.
        column_tokens: the labels of the columns.
        num_source_columns: the number of columns, from the first, that are of the source.
        is_signed: True if negative numbers have a meaning.
        sums_to_one: True if each row sums to 1 unless it is empty.
        note: an addition to captions.
        differences: what the numbers of each row add up to, up to rounding and the error of an
            integral, for measures that have such a sum; of parts of the model what each column
            adds up to, or all numbers if they are of one word.
    """

    name: str
    source: str
    part: Part | Literal["model"]
    kind: MapKind
    layer: int | None
    head: int | None
    matrix: np.ndarray
    row_tokens: tuple[str, ...]
    predicted_tokens: tuple[str, ...] | None
    column_tokens: tuple[str, ...]
    num_source_columns: int
    is_signed: bool = False
    sums_to_one: bool = False
    note: str = ""
    differences: tuple[float, ...] | None = None

    @property
    def row_labels(self) -> tuple[str, ...]:
        """The labels of the rows: ``la → pizza`` for a decoder row, otherwise its token."""
        return row_labels(self.row_tokens, self.predicted_tokens)

    @property
    def column_labels(self) -> tuple[str, ...]:
        """The labels of the columns."""
        return self.column_tokens

    @property
    def source_matrix(self) -> np.ndarray:
        """Only the columns of the source."""
        return self.matrix[:, : self.num_source_columns]

    @property
    def source_share(self) -> np.ndarray:
        """The share of the source in each row's sum; 0 for an empty row.

        With `kind` ``whole`` the rest is the share of the target prefix: the words that were
        written before.
        """
        total = self.matrix.sum(axis=1)
        share: np.ndarray = np.divide(
            self.source_matrix.sum(axis=1), total, out=np.zeros_like(total), where=total != 0
        )
        return share

    def __post_init__(self) -> None:
        self.matrix.flags.writeable = False

    def __str__(self) -> str:
        """Write the title and the numbers as a table, as far as a screen takes them."""
        from pellucid.inside.show.terminal import draw_matrix

        shown = self.matrix[:_MOST_ROWS]
        rows = self.row_labels[:_MOST_ROWS]
        drawn = draw_matrix(shown, rows, self.column_labels, is_share=self.sums_to_one, width=100)
        left_out = len(self.matrix) - len(shown)
        more = [f"{left_out} more rows are in `matrix`."] if left_out else []
        return "\n".join([f"{self.title}. {self.source}.", *(one.plain for one in drawn), *more])

    def __repr__(self) -> str:
        """Name the map and its size, in one line."""
        num_rows, num_columns = self.matrix.shape
        return f"<Map {self.title}: {num_rows} rows, {num_columns} columns>"

    def frame(self) -> Any:
        """Write the map as a pandas data frame: a row for each row, a column for each word.

        Raises:
            InputError: pandas is not installed.
        """
        frame = need_library("pandas", "This table").DataFrame
        return frame(self.matrix.copy(), index=self.row_labels, columns=self.column_labels)

    def to_xarray(self) -> Any:
        """Write the map as an xarray array with the axes ``row`` and ``column``, and their words.

        Raises:
            InputError: xarray is not installed.
        """
        return to_labeled(axes_of_map(self.row_labels, self.column_labels), self.matrix, self.name)

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the map on axes of Matplotlib, and return them.

        Args:
            ax: the axes; those of a new figure unless given.

        Raises:
            InputError: Matplotlib is not installed, or ``ax`` are no axes.
        """
        from pellucid.inside.show.figures.plotting import plot_panel

        return plot_panel(self._panel(), self.title, ax)

    def show(self) -> None:
        """Print the map as a table, with its name and its source."""
        sys.stdout.write(f"{self}\n")

    @checked
    def save(self, path: str | Path) -> None:
        """Draw the map into a file, or write its numbers.

        Args:
            path: ending in ``.svg``, ``.png`` or ``.pdf``, or in ``.csv`` for a line for each row,
                with the words of the columns above.

        Raises:
            InputError: the ending is not known, or Matplotlib is not installed.
            OutputError: the file cannot be written.
        """
        if endings(path).kind == ".csv":
            rows = zip(self.row_labels, self.matrix.tolist(), strict=True)
            lines = [["", *self.column_labels], *([label, *numbers] for label, numbers in rows)]
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(lines)
            write_text(Path(path), text.getvalue(), follows_link=True)
            return
        from pellucid.inside.show.figures.draw import draw_map_figure

        caption = [f"{self.title}.", f"{self.source}."]
        draw_map_figure(self._panel(), path, caption=caption, label=self.name)

    def _panel(self) -> MapPanel:
        from pellucid.inside.show.figures.panels import MapPanel

        return MapPanel(
            self.matrix,
            self.row_tokens,
            self.column_tokens,
            predicted=self.predicted_tokens,
            limit=None if self.sums_to_one else scale_end(self.matrix),
        )

    def _repr_html_(self) -> str:
        from pellucid.inside.show.static import static_table

        caption = f"{self.title}. {self.source}."
        return static_table(self.matrix, self.row_labels, self.column_labels, caption)

    @property
    def title(self) -> str:
        """Name and place: ``norms, decoder layer 1 cross head 0``."""
        place = self.part if self.kind == "whole" else f"{self.part} {self.kind}"
        if self.layer is not None:
            up_to = "up to layer" if self.kind == "whole" else "layer"
            place = f"{place} {up_to} {self.layer}"
        head = "" if self.head is None else f" head {self.head}"
        return f"{self.name}, {place}{head}{', ' if self.note else ''}{self.note}"


def make_map(
    pair: PairData,
    name: str,
    source: str,
    matrix: np.ndarray,
    *,
    part: Part,
    kind: MapKind,
    layer: int | None = None,
    head: int | None = None,
    is_signed: bool = False,
    sums_to_one: bool = False,
    note: str = "",
    words: Sequence[Sequence[int]] | None = None,
    differences: tuple[float, ...] | None = None,
) -> Map:
    """Label the rows and columns of a matrix by its part and kind.

    If the matrix has one column more than tokens, the last is the row's own vector. If ``words``
    gives the tokens of each source word, the source's columns are words.
    """
    has_source = part == "encoder" or kind in ("cross", "whole")
    source_tokens = pair.source_tokens if has_source else ()
    if words is not None:
        source_tokens = _join(source_tokens, words)
    columns = source_tokens
    if part == "decoder" and kind in ("self", "whole") and matrix.shape[1] > len(columns):
        columns = (*columns, *pair.read_tokens)
    if matrix.shape[1] == len(columns) + 1:
        columns = (*columns, OWN)
    return Map(
        name=name,
        source=source,
        part=part,
        kind=kind,
        layer=layer,
        head=head,
        matrix=np.asarray(matrix, dtype=np.float64),
        row_tokens=pair.source_tokens if part == "encoder" else pair.read_tokens,
        predicted_tokens=None if part == "encoder" else pair.predicted_tokens,
        column_tokens=columns,
        num_source_columns=len(source_tokens),
        is_signed=is_signed,
        sums_to_one=sums_to_one,
        note=note,
        differences=differences,
    )


def last_layer(pair: PairData, part: Part, layer: int | None) -> int:
    """Return the layer that is asked for, or by default the last one.

    Raises:
        InputError: the layer does not exist.
    """
    config = pair.model.config
    count = getattr(config, f"num_{part}_layers")
    if config.is_recurrent and part == "decoder":
        # Only the first layer of a recurrent decoder attends.
        count = len(config.attending_layers)
    layer = count - 1 if layer is None else layer
    check_number("layer", layer, count, f"this model's {part}")
    return layer


def sites_up_to(pair: PairData, part: Part, layer: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Name the attentions between the tokens and the end of a layer.

    Returns:
        Those of the encoder, and for each decoder layer self-attention and cross-attention.
    """
    depth = layer + 1 if part == "encoder" else pair.model.config.num_encoder_layers
    encoder = [f"encoder.{index}.self" for index in range(depth)]
    rest = range(layer + 1 if part == "decoder" else 0)
    return encoder, [(f"decoder.{index}.self", f"decoder.{index}.cross") for index in rest]


def shares_of_rows(matrix: np.ndarray) -> np.ndarray:
    """Divide each row by its sum; a row that sums to 0 or less becomes 0."""
    total = matrix.sum(axis=1, keepdims=True)
    # A row without mass stays empty instead of not a number.
    shares: np.ndarray = np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0)
    return shares


def source_words(pair: PairData) -> tuple[tuple[int, ...], ...]:
    """Group the source tokens into words, in order; ``</s>`` and punctuation are separate.

    With a tokenizer of words, each token is one word. With SentencePiece, a word begins at a piece
    with a leading space; punctuation at its end does not belong to it.
    """
    return _words_of(pair, pair.source_tokens, pair.source_ids)


def target_words(pair: PairData) -> tuple[tuple[int, ...], ...]:
    """Group the target tokens into words, as `source_words` does."""
    return _words_of(pair, pair.predicted_tokens, pair.target_ids)


def _words_of(
    pair: PairData, tokens: Sequence[str], ids: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    words: list[list[int]] = []
    special = {pair.tokenizer.config.eos_id}
    is_open = False
    for place, (token, id_) in enumerate(zip(tokens, ids, strict=True)):
        # A piece without a leading space continues a word, unless pieces are words.
        is_alone = pair.tokenizer.config.kind == "words" or id_ in special
        if is_open and not is_alone and not token.startswith("\u2581"):
            words[-1].append(place)
        else:
            words.append([place])
        is_open = not is_alone
    return tuple(part for word in words for part in _without_tail(word, tokens))


def _without_tail(word: Sequence[int], tokens: Sequence[str]) -> list[tuple[int, ...]]:
    end = len(word)
    # A word that is nothing but marks keeps its first.
    while end > 1 and is_punctuation(tokens[word[end - 1]]):
        end -= 1
    return [tuple(word[:end]), *((place,) for place in word[end:])]


def merge_source_words(map_: Map, words: Sequence[Sequence[int]]) -> Map:
    """Add up the source columns of each word; other columns stay the same.

    Args:
        map_: with a column for each source token.
        words: the tokens of each word, as `source_words` gives them.
    """
    if len(words) == map_.num_source_columns:
        return map_
    merged = np.stack([map_.matrix[:, list(word)].sum(axis=1) for word in words], axis=1)
    rest = map_.matrix[:, map_.num_source_columns :]
    names = _join(map_.column_tokens, words)
    return replace(
        map_,
        matrix=np.concatenate([merged, rest], axis=1),
        column_tokens=(*names, *map_.column_tokens[map_.num_source_columns :]),
        num_source_columns=len(words),
    )


def _join(tokens: Sequence[str], words: Sequence[Sequence[int]]) -> tuple[str, ...]:
    return tuple("".join(tokens[place] for place in word) for word in words)
