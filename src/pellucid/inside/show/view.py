"""One array of one head, with the words that every medium shows with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from pellucid.errors import InputError
from pellucid.inside.ask import HEAD_STAGES, MAP_STAGES
from pellucid.inside.heads.head_habits import Habit, find_habit
from pellucid.inside.record.trace_data import TraceData
from pellucid.inside.show.colors import scale_end
from pellucid.terminal.text import percent

SPECIAL_TOKENS = frozenset({"<s>", "</s>", "<pad>", "<unk>"})

RESTING = 0.5
"""A head rests on the token at the end if at least this share of its weight is there."""

WHY_IT_RESTS = "a head that a row does not need rests there, which costs nothing"

_KINDS = {"self": "self-attention", "cross": "cross-attention"}
_STAGES = {
    "query": "Queries",
    "key": "Keys",
    "value": "Values",
    "scores": "Scores QKᵀ",
    "scaled": "Scaled scores QKᵀ ÷ √d_k",
    "masked": "Masked scores",
    "weights": "Weights",
    "context": "Context vectors",
}


@dataclass(frozen=True)
class HeadView:
    """One head's array of one stage.

    Attributes:
        trace: holds the array.
        part: ``encoder`` or ``decoder``.
        layer: from 0.
        kind: ``self`` or ``cross``.
        head: from 0.
        stage: one with heads, such as ``weights`` or ``context``.
    """

    trace: TraceData
    part: str
    layer: int
    kind: str
    head: int
    stage: str = "weights"

    def __post_init__(self) -> None:
        if self.stage not in HEAD_STAGES:
            raise InputError(
                f"A stage to draw must be one of {', '.join(HEAD_STAGES)}, but is "
                f"{self.stage!r}. Name one of these."
            )
        self.at(self.stage)  # Refuses what the trace does not hold.

    @classmethod
    def of(cls, trace: TraceData, name: str, head: int) -> Self:
        """Make the view of one head of an array such as ``decoder.1.cross.weights``."""
        part, layer, kind, stage = name.split(".")
        return cls(trace, part, int(layer), kind, head, stage)

    @property
    def site(self) -> str:
        """The place in the model: ``decoder.1.cross``."""
        return f"{self.part}.{self.layer}.{self.kind}"

    @property
    def name(self) -> str:
        """The array's name in the trace."""
        return f"{self.site}.{self.stage}"

    @property
    def is_map(self) -> bool:
        """True for queries by keys; otherwise the array is positions by width."""
        return self.stage in MAP_STAGES

    @property
    def is_signed(self) -> bool:
        """True if its numbers can be negative, so that it needs the signed scale."""
        return self.stage != "weights"

    @property
    def reads_and_predicts(self) -> bool:
        """True if its rows are the decoder's, which read one token and predict the next."""
        return self.part == "decoder" and not (self.kind == "cross" and self._is_of_keys)

    @property
    def _is_of_keys(self) -> bool:
        return self.stage in ("key", "value")

    @property
    def cells(self) -> np.ndarray:
        """The numbers: rows by columns."""
        return self.at(self.stage)

    def at(self, stage: str) -> np.ndarray:
        """Get the numbers of the same head at another stage.

        Raises:
            InputError: the trace does not hold it.
        """
        return self.trace[f"{self.site}.{self.head}.{stage}"]

    @property
    def forbidden(self) -> np.ndarray:
        """True for each cell that the mask forbids.

        There the masked scores are −∞. If the trace does not hold these, the decoder's
        self-attention counts as masked if the weights on all later positions are exactly 0.
        """
        if self.stage in ("scores", "scaled") or not self.is_map:
            return np.zeros(self.cells.shape, dtype=bool)
        if f"{self.site}.masked" in self.trace.arrays:
            forbidden: np.ndarray = np.isneginf(self.at("masked"))
            return forbidden
        later_LM = np.triu(np.ones(self.cells.shape, dtype=bool), 1)
        # A weight of exactly 0 is nearly always the mask; an underflow of a whole triangle is not
        # likely.
        is_masked = (self.part, self.kind) == ("decoder", "self")
        return later_LM & (is_masked and not self.cells[later_LM].any())

    @property
    def largest(self) -> float:
        """The largest finite magnitude, the end of a signed scale; 1 if all numbers are 0."""
        return scale_end(self.cells)

    @property
    def rows(self) -> tuple[str, ...]:
        """The tokens of the rows; of decoder rows, the tokens that they read."""
        if self._is_of_keys:
            return self.trace.key_tokens(self.part, self.kind)
        return self.trace.query_tokens(self.part)

    @property
    def columns(self) -> tuple[str, ...]:
        """The tokens of the columns, or the numbers of the dimensions."""
        if self.is_map:
            return self.trace.key_tokens(self.part, self.kind)
        return tuple(str(index) for index in range(self.cells.shape[1]))

    @property
    def predicted(self) -> tuple[str, ...] | None:
        """The token that each row predicts; None if rows predict nothing."""
        return self.trace.predicted_tokens if self.reads_and_predicts else None

    @property
    def title(self) -> str:
        """Name and place: stage, part, layer, kind and head."""
        what = _STAGES[self.stage]
        return f"{what}, {self.part} layer {self.layer}, {_KINDS[self.kind]}, head {self.head}"

    def caption(self, *, scale: bool = True) -> tuple[str, ...]:
        """Write the caption that every picture has, one or two sentences an entry.

        Args:
            scale: include the meaning of the colors.
        """
        found = [f"{self.title}. One head, nothing averaged; all counted from 0."]
        found.append(self.describe_axes())
        if scale:
            found.append(self.describe_scale())
        if self.stage == "weights":
            found.append(self.describe_special())
            found += [self.habit.sentence] if self.habit.sentence else []
        if self.is_taught:
            found.append(f"This is {TAUGHT}.")
        found.append(describe_model_of(self.trace))
        found += [f"WARNING: {problem}" for problem in self.trace.problems]
        return tuple(found)

    def describe_axes(self) -> str:
        """Describe what rows and columns are, and how to read a row."""
        keys = "source" if self.part == "encoder" or self.kind == "cross" else "target"
        columns = f"the {keys} tokens attended to" if self.is_map else "dimensions of the head"
        if self.reads_and_predicts:
            return f"A decoder row reads one token → predicts the next; columns: {columns}."
        side = keys if self._is_of_keys or self.part == "encoder" else "target"
        return f"Rows: {side} tokens; columns: {columns}."

    def describe_scale(self) -> str:
        """Describe the meaning of the colors."""
        if not self.is_signed:
            scale = "Color: weight from 0 to 1"
            # Not after a change, such as an edge that was set to 0.
            if np.allclose(self.cells.sum(axis=1), 1, rtol=0, atol=1e-3):
                scale += ", each row sums to 1"
        else:
            scale = f"Color: −{self.largest:.3g} (blue) over 0 to {self.largest:.3g} (orange)"
        return f"{scale}; hatched: may not be seen." if self.forbidden.any() else f"{scale}."

    def describe_special(self) -> str:
        """Report the weight on special tokens, none of which is hidden."""
        special = [index for index, token in enumerate(self.columns) if token in SPECIAL_TOKENS]
        if not special:
            return "No special tokens are among the columns."
        mass_L = self.cells[:, special].sum(axis=1)
        names = ", ".join(dict.fromkeys(self.columns[index] for index in special))
        resting = f" It rests on {self.rests_on}: {WHY_IT_RESTS}." if self.rests_on else ""
        shares = mass_L.min(), mass_L.max(), mass_L.mean()
        least, most, mean = (percent(float(share), most=2) for share in shares)
        return (
            f"On {names}: {least} to {most} of a row's weight, {mean} on average over the rows."
            f"{resting}"
        )

    @property
    def habit(self) -> Habit:
        """What most of its rows do; none for another stage than the weights."""
        if self.stage != "weights":
            return Habit("", "")
        return find_habit(self.cells, is_causal=(self.part, self.kind) == ("decoder", "self"))

    @property
    def is_taught(self) -> bool:
        """True for the head that was taught word links."""
        return self.trace.model.get("taught_head") == f"{self.site}.{self.head}"

    @property
    def rests_on(self) -> str:
        """The token that the head mostly rests on, a sentence's end or a target's start; or empty.

        Rows that belong there do not count: that of the end itself, the one that predicts it, and
        the target's first row, which sees nothing else.
        """
        if self.stage != "weights":
            return ""
        is_target = (self.part, self.kind) == ("decoder", "self")
        place = 0 if is_target else -1
        mass_L = (self.cells[1:] if is_target else self.cells[:-1])[:, place]
        token = self.columns[place]
        # With a single row, even weights would count as resting.
        is_resting = token in SPECIAL_TOKENS and len(mass_L) > 1 and mass_L.mean() >= RESTING
        return token if is_resting else ""


def default_view(trace: TraceData) -> HeadView:
    """Choose what to show by default: one head, if possible of the last layer's cross-attention.

    Raises:
        InputError: the trace holds no array of a head.
    """
    views = views_of(trace)
    if not views:
        raise InputError(
            "The trace holds no array of a head to show. Look again with the stage `weights`."
        )
    # What one looks at most often first; the other stages are equal.
    order = {"weights": 2, "masked": 1}
    return max(
        views,
        key=lambda view: (
            order.get(view.stage, 0),
            view.kind == "cross",
            view.part == "decoder",
            view.layer,
            -view.head,
        ),
    )


def views_of(trace: TraceData) -> list[HeadView]:
    """List every head of every array with heads, in the order of the trace."""
    return [
        HeadView.of(trace, name, head)
        for name in trace.arrays
        if name.count(".") == 3 and name.rpartition(".")[2] in HEAD_STAGES
        for head in trace.heads
    ]


def describe_model_of(trace: TraceData) -> str:
    """Name the model, how the target was found, and the precision of the replay."""
    name = str(trace.model.get("name") or "")
    model_hash = str(trace.model.get("model_hash") or "unknown")[:8]
    replayed = trace.decoding.get("replay_precision", "float32")
    if "replay_device" in trace.decoding:
        replayed += f" on {trace.decoding['replay_device']}"
    label = f"{name} {model_hash}".strip()
    return f"Model {label}. {describe_decoding(trace.decoding)}; replayed in {replayed}."


def describe_decoding(decoding: Mapping[str, Any]) -> str:
    """Describe how a target was found: ``Greedy decoding in float32``; and changes, if any."""
    changes = decoding.get("changes")
    return _describe_search(decoding) + (f"; CHANGED on the way: {changes}" if changes else "")


def _describe_search(decoding: Mapping[str, Any]) -> str:
    if decoding.get("given") or "beam" not in decoding:
        return "Target given, not decoded"
    precision = decoding.get("precision", "float32")
    if decoding.get("sample"):
        how = f"Sampling (temperature {decoding['temperature']:g}, seed {decoding['seed']})"
    elif decoding["beam"] == 1:
        how = "Greedy decoding"
    else:
        how = f"Beam search (beam {decoding['beam']})"
    number = decoding.get("hypothesis", 0)
    which = f", hypothesis {number}" if number or decoding.get("n_best", 1) > 1 else ""
    return f"{how} in {precision}{which}"


def number_in_cell(value: float, limit: float | None) -> str:
    """Write a number in few letters, with as many digits as its scale needs.

    Args:
        value: the number.
        limit: the end of the signed scale; None for weights from 0 to 1.
    """
    digits = 2 if limit is None or limit < 2 else 1 if limit < 100 else 0
    short = f"{value:.{digits}f}"
    if not float(short):
        return "0"
    if digits == 2 and abs(float(short)) < 1:
        # Without the leading zero, so that two digits fit a small cell.
        short = short.replace("0.", ".")
    return short.removesuffix(".00").replace("-", "−")


TAUGHT = "the head that was taught word links in training"
CLEAREST = "of all of this kind the head whose rows have the least entropy on this sentence"


def usual_head(
    trace: TraceData, names: Sequence[str], heads: Collection[int] | None = None
) -> tuple[HeadView, str]:
    """Find the head to show first: the one that was taught word links, or else the clearest.

    The clearest has the least entropy on this sentence; it need not be a useful one.

    Args:
        trace: holds the weights.
        names: the arrays of weights to choose from.
        heads: the heads to choose from; all unless given.

    Returns:
        The head, and why it is shown.
    """
    views = [HeadView.of(trace, name, head) for name in names for head in heads or trace.heads]
    for view in views:
        if view.is_taught:
            return view, TAUGHT
    # Few words per row make a map that a reader can follow.
    return min(views, key=lambda view: mean_entropy(view.cells)), CLEAREST


def view_named(trace: TraceData, name: str | None) -> HeadView:
    """Make the view of a head that is named by its address, with a stage or without.

    Args:
        trace: holds the head.
        name: such as ``decoder.1.cross.0`` or ``decoder.1.cross.0.scores``; the head to show first
            unless given.

    Raises:
        InputError: the trace does not hold it, or it is no single head.
    """
    if name is None:
        views = views_of(trace)
        names = [one.name for one in views if one.stage == "weights"]
        if not names:
            raise InputError(
                "The trace holds no weights to choose from. Name a head and a stage, such as "
                "decoder.1.cross.0.context."
            )
        return usual_head(trace, names)[0]
    array_name, head = trace.find(name)
    if head is None:
        raise InputError(
            f"A picture must be of one head, but {name} is of several or of none. Name a head, as "
            "in decoder.1.cross.0."
        )
    return HeadView.of(trace, array_name, head)


def mean_entropy(weights_LM: np.ndarray) -> float:
    """Return the entropy of a row's weights, averaged over the rows, in nats."""
    logs_LM = np.log(np.where(weights_LM > 0, weights_LM, 1.0))
    return float(-(weights_LM * logs_LM).sum(axis=-1).mean())
