"""Two models next to each other: what each answers to the same line, and what it read for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from pellucid.bundle import Bundle
from pellucid.config import ModelConfig
from pellucid.errors import InputError
from pellucid.inside.show.steps import NumberTable
from pellucid.inside.show.view import HeadView, usual_head
from pellucid.inside.traces import Trace

Cells = tuple[str, str, str]


@dataclass(frozen=True)
class AnswerOfModel:
    """One model's answer.

    Attributes:
        name: of the model, for a reader.
        about: its kind and size.
        translation: the answer.
        trace: of the line and that answer.
        view: the map from the words that it wrote to those that it read; None without attention.
        reason: why this head is shown.
    """

    name: str
    about: str
    translation: str
    trace: Trace
    view: HeadView | None
    reason: str

    @property
    def log_probability(self) -> float:
        """The answer's log-probability, in nats."""
        return sum(self.trace.log_probabilities)

    def rows(self) -> list[Cells]:
        """List each predicted token, its probability, and the source token with most weight."""
        found = []
        for row, token in enumerate(self.trace.predicted_tokens):
            probability = math.exp(self.trace.log_probabilities[row])
            found.append((token, f"{probability:.3f}", self._most_read(row)))
        return found

    def _most_read(self, row: int) -> str:
        if self.view is None:
            return "the one vector"
        weights_M = self.view.cells[row]
        column = int(weights_M.argmax())
        return f"{self.view.columns[column]} {weights_M[column]:.2f}"

    def to_record(self) -> dict[str, Any]:
        """Turn the side into a record for JSON, without its trace."""
        return {
            "name": self.name,
            "about": self.about,
            "translation": self.translation,
            "log_probability": self.log_probability,
            "shown": None if self.view is None else f"{self.view.site}.{self.view.head}",
        }


def make_answer(
    bundle: Bundle,
    trace: Trace,
    *,
    name: str,
    translation: str,
) -> AnswerOfModel:
    """Choose a model's map, see `usual_head`.

    Args:
        bundle: the model.
        trace: of the line; it holds the weights of cross-attention, if the model has any.
        name: of the model, for a reader.
        translation: the answer.
    """
    names = [array for array in trace.arrays if array.endswith(".cross.weights")]
    about = summarize_model(bundle)
    if not names:
        reason = "It has no attention: each step of its decoder reads one vector of fixed length."
        return AnswerOfModel(name, about, translation, trace, None, reason)
    view, why = usual_head(trace, names)
    # Then there was no choice to explain.
    is_only_one = len(names) * len(trace.heads) == 1
    reason = "Its only head." if is_only_one else f"Shown: {why}."
    return AnswerOfModel(name, about, translation, trace, view, reason)


def summarize_model(bundle: Bundle) -> str:
    """Describe the kind and size of a model in one line."""
    config = bundle.config.model
    num_weights = sum(weight.numel() for weight in bundle.model.parameters())
    depth = f"{config.num_encoder_layers} + {config.num_decoder_layers} layers"
    return f"{_describe_kind(config)}, {depth}, d_model {config.d_model}, {num_weights:,} weights"


_FORMS = {
    "none": "one vector of fixed length",
    "additive": "additive attention",
    "dot": "dot-product attention",
}


def _describe_kind(config: ModelConfig) -> str:
    if config.is_recurrent:
        return f"gated recurrent units with {_FORMS[config.recurrent_attention]}"
    return f"Transformer with {config.num_heads} heads"


def check_languages(first: Bundle, second: Bundle) -> None:
    """Make sure that two models translate between the same languages, as far as they say.

    Raises:
        InputError: they do not.
    """
    languages = [(b.config.languages.source, b.config.languages.target) for b in (first, second)]
    # A model that does not say its languages fits any.
    if any(a and b and a != b for a, b in zip(*languages, strict=True)):
        written = [f"{source or '?'} to {target or '?'}" for source, target in languages]
        raise InputError(
            f"Both models must translate between the same languages, but {first.folder.name} goes "
            f"from {written[0]} and {second.folder.name} from {written[1]}. Name another model."
        )


def side_by_side(sides: Sequence[AnswerOfModel]) -> NumberTable:
    """Put the tokens of two answers into one table, a row for each of either's steps."""
    blank: Cells = ("", "", "")
    # The longer answer continues next to blanks.
    pairs = zip_longest(*(side.rows() for side in sides), fillvalue=blank)
    header = ["row"]
    for side in sides:
        header += [side.name, "p", "reads most"]
    rows = tuple(
        (str(number), *(cell for cells in pair for cell in cells))
        for number, pair in enumerate(pairs)
    )
    return NumberTable("Token by token, p its probability", "", tuple(header), rows)
