"""From a line of text and its translations to traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pellucid.arguments import check_fields
from pellucid.attention.probe import Probe
from pellucid.bundle import Bundle
from pellucid.inside.ask import Ask
from pellucid.inside.changes.given_changes import GivenChanges, describe_probe, join_probes
from pellucid.inside.pair import PairData, make_pair
from pellucid.inside.record.trace_files import NpzWriter, surroundings
from pellucid.inside.replayed_pair import replay
from pellucid.inside.traces import Trace
from pellucid.text.token_words import unknown_pieces


@dataclass(frozen=True)
class Replaying:
    """Options of a replay.

    Attributes:
        ask: the arrays to keep.
        float64: keep arrays in double precision; they are always computed in it.
        changes: what changes on the way: a text such as ``cut decoder.1.cross.0``, a `Change`, a
            probe, or several.
        into: gives, for a hypothesis's index and the number of hypotheses, the ``.npz`` file that
            its arrays are written to layer by layer; its trace then holds no arrays.
        before: is called with each pair before its replay.
    """

    ask: Ask = field(default_factory=Ask)
    float64: bool = False
    changes: GivenChanges | None = None
    into: Callable[[int, int], Path] | None = None
    before: Callable[[PairData], None] | None = None

    def __post_init__(self) -> None:
        check_fields(self)


class Translated(Protocol):
    """What a look needs of a translation that a decode found."""

    @property
    def text(self) -> str:
        """The translation."""

    @property
    def ids(self) -> tuple[int, ...]:
        """Its tokens."""

    @property
    def token_log_probabilities(self) -> tuple[float, ...]:
        """One for each token."""

    @property
    def score(self) -> float:
        """The ranking value."""


def look_at_given(
    bundle: Bundle, source: str, target: str, how: Replaying, *, under: Probe | None = None
) -> Trace:
    """Look at a given target.

    The pieces of it that the vocabulary cannot write are ``<unk>``. The trace lists them under
    ``unknown`` in its facts about the decoding.

    Raises:
        InputError: a side is empty or too long, or an array asked for does not exist.
    """
    # In single precision long sentences are off by up to 1.35e-5: docs/decisions/0011.
    pair = make_pair(bundle, source, target, float64=True)
    decoding: dict[str, Any] = {"given": True}
    if bundle.tokenizer.config.unk_id in pair.target_ids:
        decoding["unknown"] = unknown_pieces(bundle.tokenizer, target)
    return _look(bundle, pair, how, decoding=decoding, under=under)


def look_at_hypotheses(
    bundle: Bundle,
    source: str,
    hypotheses: Sequence[Translated],
    how: Replaying,
    *,
    decoding: Mapping[str, Any],
    under: Probe | None = None,
) -> list[Trace]:
    """Look at each translation that a decode found: one trace each.

    Args:
        bundle: the model that found them.
        source: the source line.
        hypotheses: the translations, the best first.
        how: the arrays to keep, and where.
        decoding: facts about the decode, for the traces.
        under: the changes under which they were decoded.

    Raises:
        InputError: an array asked for does not exist, or the trace does not fit into memory.
    """
    traces = []
    for index, found in enumerate(hypotheses):
        about = {"given": False, "hypothesis": index, "text": found.text, "score": found.score}
        traces.append(
            _look(
                bundle,
                make_pair(bundle, source, found.ids, float64=True),
                how,
                decoding={**decoding, **about},
                decode_log_probabilities=found.token_log_probabilities,
                place=(index, len(hypotheses)),
                under=under,
            )
        )
    return traces


def _look(
    bundle: Bundle,
    pair: PairData,
    how: Replaying,
    *,
    decoding: Mapping[str, Any],
    decode_log_probabilities: Sequence[float] | None = None,
    place: tuple[int, int] = (0, 1),
    under: Probe | None = None,
) -> Trace:
    if how.before is not None:
        how.before(pair)
    probe = under if how.changes is None else join_probes(under, pair.read(how.changes))
    if probe is not None:
        decoding = {**decoding, "changes": describe_probe(probe)}
    with nullcontext() if how.into is None else NpzWriter(how.into(*place)) as writer:
        trace = replay(
            pair,
            how.ask,
            decode_log_probabilities=decode_log_probabilities,
            model=model_facts(bundle),
            decoding=decoding,
            changes=probe,
            decoded_under_changes=probe is under and under is not None,
            float64=how.float64,
            keep=None if writer is None else writer.keep,
        )
        if writer is not None:
            writer.finish(surroundings(trace))
    return trace


def model_facts(bundle: Bundle) -> dict[str, Any]:
    """Collect the facts about a model that a trace holds."""
    return {
        "model_hash": bundle.model_hash,
        "taught_head": bundle.taught_head,
        "name": bundle.folder.name,
        "languages": bundle.config.languages.model_dump(),
        "library": bundle.manifest.get("library"),
    }
