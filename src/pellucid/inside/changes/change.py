r"""Changes to attention while a model runs, as one probe.

Every change acts at one of the five stages, so that later results follow from it:

| change | at | effect |
| --- | --- | --- |
| `CutHead` | `context` | the context becomes 0; the weights stay as they were, for the trace |
| `CutEdge`, ``masked`` | `masked` | $-\infty$ before the softmax: the row's other keys share the edge's weight |
| `CutEdge`, ``zeroed`` | `weights` | 0 after the softmax: the other weights stay, the row sums to less than 1 |
| `AverageHead`, ``uniform`` | `masked` | equal scores: each row spreads evenly over the keys its mask allows |
| `AverageHead`, ``mean`` | `weights` | each row becomes the mean of the head's rows |
| `ForceWeight` | `weights` | the edge gets a weight, the row's other keys share the rest as before |
| `ReplaceWeights` | `weights` | the head gets a matrix of weights |

Source:
    Cutting heads: Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 2.3;
    Voita et al. 2019, "Analyzing Multi-Head Self-Attention".
"""  # noqa: E501

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from pellucid.arguments import check_fields, checked
from pellucid.config import ModelConfig
from pellucid.errors import InputError, suggestion
from pellucid.inside.changes.place import Place, parse_place


@dataclass(frozen=True)
class Change(ABC):
    """A change of one place.

    Attributes:
        place: the heads or edges that are changed; also as text, ``decoder.1.cross.0``.
    """

    place: Place

    def __post_init__(self) -> None:
        if isinstance(self.place, str):
            object.__setattr__(self, "place", parse_place(self.place))
        check_fields(self)

    @abstractmethod
    def apply(self, tensor: Tensor, may_attend: Tensor) -> None:
        """Change the result of a stage in place.

        Args:
            tensor: the result of `stage`.
            may_attend: True for each edge that the mask allows.
        """

    @property
    @abstractmethod
    def stage(self) -> str:
        """The stage at which the change acts."""

    def moved_to(self, head: Place) -> Self:
        """Return the same change of another head."""
        return replace(self, place=self.place.moved_to(head))


@dataclass(frozen=True)
class CutHead(Change):
    """Cut a head: its context becomes 0."""

    def __str__(self) -> str:
        """As `parse_change` reads it."""
        return f"cut {self.place}"

    @property
    def stage(self) -> str:
        """The last stage."""
        return "context"

    def apply(self, tensor: Tensor, may_attend: Tensor) -> None:
        """Set the context to 0."""
        self.place.cut_from(tensor).zero_()


@dataclass(frozen=True)
class CutEdge(Change):
    """Cut an edge: a query cannot attend to a key.

    Attributes:
        how: ``masked``: before the softmax, so that the other keys share its weight; ``zeroed``:
            after it, so that they do not.
    """

    how: Literal["masked", "zeroed"] = "masked"

    def __str__(self) -> str:
        """As `parse_change` reads it."""
        return f"{'cut' if self.how == 'masked' else 'zero'} {self.place}"

    @property
    def stage(self) -> str:
        """Before or after the softmax."""
        return "masked" if self.how == "masked" else "weights"

    def apply(self, tensor: Tensor, may_attend: Tensor) -> None:
        """Forbid the edge, or take its weight away."""
        self.place.cut_from(tensor).fill_(-math.inf if self.how == "masked" else 0.0)


@dataclass(frozen=True)
class AverageHead(Change):
    """Make a head's weights equal over the keys, or over the queries.

    Attributes:
        how: ``uniform``: every key that the mask allows gets the same weight. ``mean``: every
            query gets the mean of all queries' weights; in a decoder, of those up to its own, so
            that no row knows of later ones. Keys that its mask forbids are left out, and the rest
            is scaled to sum to 1.
    """

    how: Literal["uniform", "mean"] = "uniform"

    def __str__(self) -> str:
        """As `parse_change` reads it."""
        return f"{'average' if self.how == 'uniform' else 'mean'} {self.place}"

    @property
    def stage(self) -> str:
        """Before or after the softmax."""
        return "masked" if self.how == "uniform" else "weights"

    def apply(self, tensor: Tensor, may_attend: Tensor) -> None:
        """Make the scores equal, or the rows."""
        ours = self.place.cut_from(tensor)
        if self.how == "uniform":
            # Equal scores, but what the mask forbids stays forbidden.
            ours[ours != -math.inf] = 0.0
            return
        # Sums serve as means, since each row is scaled to sum to 1 at the end.
        # In the decoder, a mean over later rows would tell a row what comes after it.
        sums = ours.cumsum(dim=-2) if self.place.part == "decoder" else ours.sum(-2, keepdim=True)
        allowed = sums * self.place.cut_from(may_attend)
        ours.copy_(allowed / allowed.sum(dim=-1, keepdim=True).clamp(min=1e-30))


@dataclass(frozen=True)
class ForceWeight(Change):
    """Give an edge a weight; the other keys share the rest in their old proportions.

    If no other key of the row has weight, only the edge has. Edges that the mask forbids stay 0.

    Attributes:
        weight: from 0 to 1.
    """

    weight: float = 1.0

    def __str__(self) -> str:
        """As `parse_change` reads it."""
        return f"force {self.place}={self.weight:g}"

    @property
    def stage(self) -> str:
        """After the softmax."""
        return "weights"

    def apply(self, tensor: Tensor, may_attend: Tensor) -> None:
        """Set the edge, and scale the other weights of its row."""
        edge = self.place.cut_from(tensor)
        # A sentence may be shorter than the position that a change names.
        if edge.numel() == 0:
            return
        # Forcing an edge that the mask forbids would show the future.
        is_forced = self.place.cut_from(may_attend)
        # The whole row of the edge, as a view: writing to it writes to the tensor.
        row = replace(self.place, key=None).cut_from(tensor)
        # Set the edge to 0 and sum the others. Subtracting it from the row's sum would lose others
        # that are far smaller than the edge.
        edge.masked_fill_(is_forced, 0.0)
        others = row.sum(dim=-1, keepdim=True)
        factor = (1 - self.weight) / others
        row.mul_(torch.where(is_forced & (others > 0), factor, 1.0))
        edge.masked_fill_(is_forced, self.weight)


@dataclass(frozen=True, eq=False)
class ReplaceWeights(Change):
    """Replace a head's weights by a matrix; a larger one is cut to size.

    Attributes:
        weights: (queries, keys). Rows are taken as they are, whatever their sum. Edges that the
            mask forbids stay 0.
    """

    weights: np.ndarray

    def __str__(self) -> str:
        """Describe the change; `parse_change` cannot read a matrix."""
        return f"replace {self.place} by a matrix of {' × '.join(map(str, self.weights.shape))}"

    @property
    def stage(self) -> str:
        """After the softmax."""
        return "weights"

    def apply(self, tensor: Tensor, may_attend: Tensor) -> None:
        """Write the matrix over the weights."""
        ours = self.place.cut_from(tensor)
        # While decoding, the model has only the rows so far.
        queries, keys = ours.shape[-2:]
        given = torch.as_tensor(self.weights[:queries, :keys], dtype=ours.dtype, device=ours.device)
        if given.shape != ours.shape[-2:]:
            raise InputError(
                f"A matrix of weights must have at least {queries} rows and {keys} columns, but "
                f"has {' and '.join(map(str, self.weights.shape))} ({self.place}). Give one number "
                "for each query and key."
            )
        ours.copy_(given * self.place.cut_from(may_attend))


class Changes:
    """A probe that makes changes, in the order given.

    Args:
        changes: the changes.
    """

    takes_batches = True
    is_checked = True

    def __init__(self, *changes: Change) -> None:
        self.changes = changes
        self._may_attend = torch.tensor(True)

    @property
    def parts(self) -> set[str]:
        """The parts of the model that are changed."""
        # Cross-attention is the decoder's, whatever part is left open.
        places = [change.place for change in self.changes]
        named = [("decoder" if one.kind == "cross" else one.part) for one in places]
        return {part for one in named for part in ([one] if one else ["encoder", "decoder"])}

    def wants(self, site: str, stage: str) -> bool:
        """True for the results that are changed, and for the masks that they depend on."""
        return any(
            stage in ("masked", change.stage) and change.place.is_at(site)
            for change in self.changes
        )

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Return the changed result, or None if nothing is changed here."""
        if stage == "masked":
            # The stage before the softmax is the last that shows what the mask allows.
            self._may_attend = tensor != -math.inf
        due = [
            change for change in self.changes if change.stage == stage and change.place.is_at(site)
        ]
        if not due:
            return None
        # The model continues with the result, so that the original must stay as it was.
        changed = tensor.clone()
        for change in due:
            change.apply(changed, self._may_attend)
        if stage == "masked":
            self._may_attend = changed != -math.inf
        return changed

    # The same for a recurrent decoder, which hands on all rows so far with each new one.
    see_rows = see

    def check(self, model: ModelConfig, source_length: int, target_length: int) -> None:
        """Make sure that every place exists.

        Args:
            model: the sizes of the model.
            source_length: source tokens, ``</s>`` included.
            target_length: decoder rows.

        Raises:
            InputError: one does not (with the range), or no change was given.
        """
        if not self.changes:
            raise InputError("No change was given. Give one such as 'cut decoder.1.cross.0'.")
        for change in self.changes:
            change.place.check(model, source_length, target_length)

    def __str__(self) -> str:
        """List the changes, separated by commas."""
        return ", ".join(map(str, self.changes))


def cut_source_word(
    positions: Sequence[int], how: Literal["masked", "zeroed"] = "masked"
) -> Changes:
    """Cut every edge to some source positions, in all layers of the encoder and the decoder.

    The vectors of these positions stay, but no position attends to them, not even themselves.

    Args:
        positions: the word's tokens.
        how: as in `CutEdge`.
    """
    places = [
        place
        for key in positions
        for place in (
            Place("encoder", None, "self", None, None, key, is_edge=True),
            Place("decoder", None, "cross", None, None, key, is_edge=True),
        )
    ]
    return Changes(*(CutEdge(place, how) for place in places))


@checked
def parse_change(text: str) -> Change:
    """Read a change from text.

    ``cut decoder.1.cross.0`` (a head), ``cut encoder.0.self.2:4>7`` (an edge, masked),
    ``zero encoder.0.self.2:4>7`` (an edge, zeroed), ``average decoder.1.cross.0`` (uniform),
    ``mean decoder.1.cross.0``, ``force decoder.1.cross.0:3>2=0.8``.

    Raises:
        InputError: the text is not a change.
    """
    verb, _, rest = text.strip().partition(" ")
    if verb not in _EXAMPLES:
        raise InputError(
            "A change must name an action and a place, as in 'cut decoder.1.cross.0', but is "
            f"{text!r}. {suggestion(verb, _EXAMPLES)}"
        )
    where, equals, value = rest.partition("=")
    place = parse_place(where)
    if verb == "force" and place.is_edge and equals:
        return ForceWeight(place, _weight(value, text))
    make = _MAKERS.get((verb, place.is_edge))
    if make is None or equals:
        raise InputError(
            f"A change with {verb!r} must be written as in {_EXAMPLES[verb]!r}, but is {text!r}. "
            "Name a head, an edge, or an edge and its weight, as there."
        )
    return make(place)


def _weight(value: str, text: str) -> float:
    try:
        weight = float(value)
    except ValueError:
        weight = math.nan
    if not 0 <= weight <= 1:
        raise InputError(
            f"A forced weight must be a number from 0 to 1, but is {value!r} ({text!r}). "
            f"Write it as in {_EXAMPLES['force']!r}."
        )
    return weight


_MAKERS: dict[tuple[str, bool], Callable[[Place], Change]] = {
    ("cut", False): CutHead,
    ("cut", True): CutEdge,
    ("zero", True): partial(CutEdge, how="zeroed"),
    ("average", False): AverageHead,
    ("mean", False): partial(AverageHead, how="mean"),
}
_EXAMPLES = {
    "cut": "cut decoder.1.cross.0",
    "zero": "zero encoder.0.self.2:4>7",
    "average": "average decoder.1.cross.0",
    "mean": "mean decoder.1.cross.0",
    "force": "force decoder.1.cross.0:3>2=0.8",
}
