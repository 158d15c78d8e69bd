"""A trace: everything seen of one sentence, with its words, its checks and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pellucid.errors import InputError, suggestion

__all__ = ["TraceData"]

ALLOWED_DIFFERENCE = {"float32": 1e-4}
"""How far a replay may be from a decode of that precision, in log-probability of a token."""
ALLOWED_ELSE = 0.1
ALLOWED_WITHIN = {"weights": 1e-5, "rows": 1e-5, "contributions": 1e-5}
"""What the arrays may differ by from what they follow from."""


@dataclass(frozen=True, eq=False)
class TraceData:
    """What was seen of one pair of source and target. Everything counts from 0.

    A decoder row *reads* one token and *predicts* the next: row t reads ``target_tokens[t]`` and
    predicts ``predicted_tokens[t]``.

    Attributes:
        arrays: by name, as ``decoder.1.cross.weights``: ``PART.LAYER.KIND.STAGE``, and what is
            around. Those with heads are (heads, queries, keys) or (heads, positions, width).
        source_tokens: the source's pieces, ``</s>`` included.
        source_ids: their ids.
        target_tokens: what the decoder reads, from the start token on.
        target_ids: their ids.
        predicted_tokens: what follows each row in the replayed sequence.
        predicted_ids: their ids.
        log_probabilities: what the replay says of them, natural logs.
        argmax_tokens: what each row finds most likely.
        decode_log_probabilities: what the decode said; None where the target was given.
        heads: which heads the arrays with heads hold, in order.
        checks: the largest differences found: ``decode`` between the log-probabilities of replay
            and decode; ``weights`` from a softmax made anew in float64 from queries and keys;
            ``rows`` of a row's sum from 1; ``contributions`` between an attention's output and
            the sum over heads and positions of what each contributes, as a share of the output's
            largest number where that is above 1.
        model: ``model_hash`` and what else is known of the model.
        decoding: how the target was found.
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

    def get(self, name: str) -> np.ndarray:
        """One array by its name.

        Raises:
            InputError: the trace does not hold it.
        """
        if name not in self.arrays:
            raise InputError(
                f"A trace must hold {name} to show it, but this one does not. "
                f"{suggestion(name, self.arrays)}"
            )
        return self.arrays[name]

    def weights(self, part: str, layer: int, kind: str) -> np.ndarray:
        """The weights of one attention, (heads, queries, keys).

        Args:
            part: ``encoder`` or ``decoder``.
            layer: from 0.
            kind: ``self`` or ``cross``.

        Raises:
            InputError: the trace does not hold them.
        """
        return self.get(f"{part}.{layer}.{kind}.weights")

    def head(self, name: str, head: int) -> np.ndarray:
        """One head of an array that has heads.

        Raises:
            InputError: the trace does not hold the array, or not that head.
        """
        array = self.get(name)
        if head not in self.heads:
            raise InputError(
                f"A trace must hold head {head} to show it, but this one holds "
                f"{', '.join(map(str, self.heads))}."
            )
        found: np.ndarray = array[self.heads.index(head)]
        return found

    def query_tokens(self, part: str) -> tuple[str, ...]:
        """The words of the rows of a map: what the encoder or the decoder reads."""
        return self.source_tokens if part == "encoder" else self.target_tokens

    def key_tokens(self, part: str, kind: str) -> tuple[str, ...]:
        """The words of the columns of a map."""
        return self.source_tokens if part == "encoder" or kind == "cross" else self.target_tokens

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with this trace, a sentence each; nothing where all checks hold."""
        found = []
        precision = str(self.decoding.get("precision", "float32"))
        for check, difference in self.checks.items():
            allowed = ALLOWED_WITHIN.get(check, ALLOWED_DIFFERENCE.get(precision, ALLOWED_ELSE))
            if not difference <= allowed:
                found.append(_PROBLEMS[check].format(difference=difference, allowed=allowed))
        return tuple(found)


_PROBLEMS = {
    "decode": "The replay must say of each token what the decode said, within {allowed:g}, but "
    "differs by {difference:.2g}: what is shown may not be what was computed.",
    "weights": "The weights must be the softmax of their scores, within {allowed:g}, but differ "
    "by {difference:.2g}.",
    "rows": "Each row of weights must sum to 1, within {allowed:g}, but one differs by "
    "{difference:.2g}.",
    "contributions": "The contributions must add up to the output, within {allowed:g}, but differ "
    "by {difference:.2g}.",
}
