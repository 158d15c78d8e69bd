"""The data of a trace: arrays of one sentence, with its tokens, its checks and its origin."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np

from pellucid.arguments import refuse
from pellucid.config.head_address import ATTENTION_KINDS, parse_address
from pellucid.errors import InputError, suggestion
from pellucid.inside.ask import HEAD_STAGES, STAGES

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

    def __post_init__(self) -> None:
        # A record of a computation: what is written into it would no longer be checked.
        arrays = {name: _read_only(array) for name, array in self.arrays.items()}
        object.__setattr__(self, "arrays", MappingProxyType(arrays))
        for name in ("checks", "model", "decoding"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """Pickle the fields as they were given: a view of a dictionary cannot be pickled."""
        values = (getattr(self, one.name) for one in fields(self))
        return type(self), tuple(
            dict(value) if isinstance(value, Mapping) else value for value in values
        )

    def __repr__(self) -> str:
        """Name the model and the pair, and count the arrays, in one line."""
        source, target = (
            textwrap.shorten(" ".join(tokens), 40, placeholder=" …")
            for tokens in (self.source_tokens, self.predicted_tokens)
        )
        size = _size(sum(array.nbytes for array in self.arrays.values()))
        held = f"{len(self.arrays)} array{'' if len(self.arrays) == 1 else 's'}, {size}"
        return f"<{type(self).__name__} of {self.model.get('name')}: {source} → {target}; {held}>"

    def __getitem__(self, name: str | tuple[str | int, ...]) -> np.ndarray:
        """Get an array, or one head of it.

        Args:
            name: the address of a head, ``decoder.1.cross.0``, for its weights (queries, keys), in
                one piece or level by level (``trace["decoder", 1, "cross", 0]``);
                with a stage, ``decoder.1.cross.0.scores``, for its part of another array; without
                the head, ``decoder.1.cross``, for the weights of all heads (heads, queries, keys);
                or the name of any array, as in a file: ``decoder.1.feed_forward.output``.

        Raises:
            InputError: the trace does not hold it; or it holds only some heads, so that the first
                would not be head 0, and none of them is named.
        """
        array_name, head = self.find(name)
        array = self.arrays[array_name]
        if head is not None:
            found: np.ndarray = array[self.heads.index(head)]
            return found
        if has_heads(array_name) and self.heads != tuple(range(len(self.heads))):
            named = f"{array_name.rpartition('.')[0]}.{self.heads[0]}"
            raise InputError(
                f"The trace holds only some heads of {name} ({', '.join(map(str, self.heads))}). "
                f"Name one, as in trace[{named!r}], or take them in this order from "
                f"trace.arrays[{array_name!r}]."
            )
        return array

    def weights(self, *address: str | int) -> np.ndarray:
        """Get the weights of one head, (queries, keys), or of all heads of one attention.

        Args:
            address: of the head, in one piece (``"decoder.1.cross.0"``) or level by level
                (``"decoder", 1, "cross", 0``); without the last level, of all heads.

        Raises:
            InputError: it is no address, or the trace does not hold the weights, or only some
                heads.
        """
        # Not `self[…]` at once, which takes the other arrays too.
        return self[str(parse_address(_join(address)))]

    def __contains__(self, name: object) -> bool:
        """Tell whether ``trace[name]`` gives something."""
        try:
            self[name]  # type: ignore[index]  # anything may be asked for
        except InputError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the arrays."""
        return iter(self.arrays)

    def find(self, name: str | tuple[str | int, ...]) -> tuple[str, int | None]:
        """Return the name of the array that a name or an address means, and the head, if one.

        Raises:
            InputError: the trace does not hold it.
        """
        if isinstance(name, tuple):
            name = _join(name)
        if not isinstance(name, str):
            refuse("name", "a text such as 'decoder.1.cross.0'", name)
        if name in self.arrays:
            return name, None
        levels = name.split(".")
        stage = levels.pop() if levels[-1] in STAGES else "weights"
        head = None
        if len(levels) == 4 and levels[-1].isdecimal() and len(levels[-1]) < 19:
            head = int(levels.pop())
        array_name = ".".join([*levels, stage])
        if array_name not in self.arrays or (head is not None and not has_heads(array_name)):
            raise InputError(
                f"The trace does not hold {name!r}. {suggestion(name, self._known())} What it "
                "shall hold is asked for when it is made."
            )
        if head is not None and head not in self.heads:
            raise InputError(
                "The head must be one of those that the trace holds "
                f"({', '.join(map(str, self.heads))}), but is {head} ({name}). Name one of these, "
                "or look again."
            )
        return array_name, head

    def _known(self) -> list[str]:
        """List what can be asked for: every array, and the heads whose weights are held."""
        sites = [name.removesuffix(".weights") for name in self.arrays if name.endswith("weights")]
        return [*self.arrays, *(f"{site}.{head}" for site in sites for head in self.heads)]

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


def has_heads(name: str) -> bool:
    """Tell whether an array of this name has an axis of heads."""
    *site, stage = name.split(".")
    return stage in HEAD_STAGES and any(kind in site for kind in ATTENTION_KINDS)


def _size(num_bytes: int) -> str:
    size = float(num_bytes)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


def _read_only(array: np.ndarray) -> np.ndarray:
    # A view, so that the caller's own array stays as it is.
    view = array.view()
    view.flags.writeable = False
    return view


def _join(levels: Iterable[str | int]) -> str:
    """Write an address of its levels: ``"decoder", 1, "cross"`` as ``decoder.1.cross``."""
    return ".".join(map(str, levels))


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
