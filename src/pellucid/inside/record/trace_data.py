"""The data of a trace: arrays of one sentence, with its tokens, its checks and its origin."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pellucid.errors import InputError, suggestion

ALLOWED_DIFFERENCE = {"float32": 1e-4}
"""The largest difference between replay and decode, in log-probability of a token, by precision."""

ALLOWED_ELSE = 0.1
"""The same for every other precision."""

ALLOWED_WITHIN = {"weights": 1e-5, "rows": 1e-5, "contributions": 1e-5}
"""The largest difference between an array and the arrays that it follows from."""


@dataclass(frozen=True, eq=False, repr=False)
class TraceData:
    """The record of one source and its target. Everything counts from 0.

    A decoder row *reads* one token and *predicts* the next: row t reads ``target_tokens[t]`` and
    predicts ``predicted_tokens[t]``.

    Attributes:
        arrays: by name, such as ``decoder.1.cross.weights``: ``PART.LAYER.KIND.STAGE``, and the
            arrays around them. With heads they are (heads, queries, keys) or (heads, positions,
            width).
        source_tokens: the source's pieces, ``</s>`` included.
        source_ids: their ids.
        target_tokens: the pieces that the decoder reads, from the start token on.
        target_ids: their ids.
        predicted_tokens: the token after each row in the replayed sequence.
        predicted_ids: their ids.
        log_probabilities: of the predicted tokens in the replay, natural logs.
        argmax_tokens: the likeliest token of each row.
        decode_log_probabilities: the same as the decode computed them; None for a given target.
        heads: the heads that arrays with heads hold, in order.
        checks: the largest differences found. ``decode``: between the log-probabilities of replay
            and decode. ``weights``: from a softmax computed again in float64 from queries and
            keys. ``rows``: of a row's sum from 1. ``contributions``: between an attention's output
            and the sum of all contributions over heads and positions, as a share of the output's
            largest number if that is above 1.
        model: ``model_hash``, and other facts about the model.
        decoding: facts about how the target was found.
    """

    arrays: Mapping[str, np.ndarray]
    source_tokens: tuple[str, ...]
    source_ids: tuple[int, ...]
    target_tokens: tuple[str, ...]
    target_ids: tuple[int, ...]
    predicted_tokens: tuple[str, ...]
    predicted_ids: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    argmax_tokens: tuple[str, ...]
    decode_log_probabilities: tuple[float, ...] | None = None
    heads: tuple[int, ...] = ()
    checks: Mapping[str, float] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    decoding: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Name the model and the pair, and count the arrays, in about two lines."""
        model = f"{self.model.get('name')} {str(self.model.get('model_hash'))[:8]}"
        source, target = (
            textwrap.shorten(" ".join(tokens), 50, placeholder=" …")
            for tokens in (self.source_tokens, self.predicted_tokens)
        )
        ends = " … ".join([*self.arrays][:: max(1, len(self.arrays) - 1)])
        size = sum(array.nbytes for array in self.arrays.values()) / 2**20
        held = f"{len(self.arrays)} arrays, {ends}, {size:.1f} MiB"
        return f"{type(self).__name__}({model}, {source!r} → {target!r}, {held})"

    def get(self, name: str) -> np.ndarray:
        """Get one array by its name.

        Raises:
            InputError: the trace does not hold it.
        """
        if name not in self.arrays:
            raise InputError(f"The trace does not hold {name}. {suggestion(name, self.arrays)}")
        return self.arrays[name]

    def weights(self, part: str, layer: int, kind: str) -> np.ndarray:
        """Get the weights of one attention, (heads, queries, keys).

        Args:
            part: ``encoder`` or ``decoder``.
            layer: from 0.
            kind: ``self`` or ``cross``.

        Raises:
            InputError: the trace does not hold them.
        """
        return self.get(f"{part}.{layer}.{kind}.weights")

    def head(self, name: str, head: int) -> np.ndarray:
        """Get one head of an array with heads.

        Raises:
            InputError: the trace does not hold the array, or not that head.
        """
        array = self.get(name)
        if head not in self.heads:
            raise InputError(
                "The head must be one of those that the trace holds "
                f"({', '.join(map(str, self.heads))}), but is {head}. Name one of these, or look "
                "again."
            )
        found: np.ndarray = array[self.heads.index(head)]
        return found

    def query_tokens(self, part: str) -> tuple[str, ...]:
        """Return the tokens of a map's rows: those that the encoder or the decoder reads."""
        return self.source_tokens if part == "encoder" else self.target_tokens

    def key_tokens(self, part: str, kind: str) -> tuple[str, ...]:
        """Return the tokens of a map's columns."""
        return self.source_tokens if part == "encoder" or kind == "cross" else self.target_tokens

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each check that fails."""
        found = []
        precision = str(self.decoding.get("precision", "float32"))
        for check, difference in self.checks.items():
            allowed = ALLOWED_WITHIN.get(check, ALLOWED_DIFFERENCE.get(precision, ALLOWED_ELSE))
            # Not `>`: a difference that is not a number is a problem too.
            if not difference <= allowed:
                found.append(_PROBLEMS[check].format(difference=difference, allowed=allowed))
        return tuple(found)


def row_labels(read: Sequence[str], predicted: Sequence[str] | None) -> tuple[str, ...]:
    """Label a map's rows; a decoder row with the token it reads and the token it predicts."""
    if predicted is None:
        return tuple(read)
    return tuple(f"{one} → {next_}" for one, next_ in zip(read, predicted, strict=True))


_PROBLEMS = {
    "decode": "The log-probabilities of the replay must be the decode's within {allowed:g}, but "
    "differ by {difference:.2g}: what is shown may not be what was computed.",
    "weights": "The weights must be the softmax of their scores within {allowed:g}, but differ by "
    "{difference:.2g}.",
    "rows": "Each row of weights must sum to 1 within {allowed:g}, but one differs by "
    "{difference:.2g}.",
    "contributions": "The contributions must add up to the output within {allowed:g}, but differ "
    "by {difference:.2g}.",
}
