"""From a line of text to traces: decode it, or take the target given, and replay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pellucid.attention.probe import Probe
from pellucid.bundle import Bundle
from pellucid.inside.ask import Ask
from pellucid.inside.pair import Pair, make_pair
from pellucid.inside.replay import replay
from pellucid.inside.saving import NpzWriter
from pellucid.inside.trace import Trace
from pellucid.translation import TranslatedHypothesis

__all__ = ["describe_model", "look_at_given", "look_at_hypotheses"]


def look_at_given(
    bundle: Bundle,
    source: str,
    target: str,
    ask: Ask,
    *,
    float64: bool = False,
    changes: Probe | None = None,
    into: Path | None = None,
) -> Trace:
    """Look at a target that somebody gave."""
    pair = make_pair(bundle, source, target, float64=float64)
    decoding = {"given": True}
    return _look(bundle, pair, ask, decoding=decoding, changes=changes, into=into)


def look_at_hypotheses(
    bundle: Bundle,
    source: str,
    hypotheses: Sequence[TranslatedHypothesis],
    ask: Ask,
    *,
    decoding: dict[str, Any],
    float64: bool = False,
    into: Sequence[Path] | None = None,
) -> list[Trace]:
    """Look at each translation that a decode found: one trace each.

    Args:
        bundle: the model that made them.
        source: the source line.
        hypotheses: what the decode found, the best first.
        ask: what to keep.
        decoding: how they were found.
        float64: replay in double precision.
        into: a ``.npz`` file each, written layer by layer; the traces then hold no arrays.
    """
    traces = []
    for index, hypothesis in enumerate(hypotheses):
        pair = make_pair(bundle, source, hypothesis.ids, float64=float64)
        traces.append(
            _look(
                bundle,
                pair,
                ask,
                decoding={
                    **decoding,
                    "given": False,
                    "hypothesis": index,
                    "text": hypothesis.text,
                    "score": hypothesis.score,
                },
                decode_log_probabilities=hypothesis.token_log_probabilities,
                into=None if into is None else into[index],
            )
        )
    return traces


def _look(
    bundle: Bundle,
    pair: Pair,
    ask: Ask,
    *,
    decoding: dict[str, Any],
    decode_log_probabilities: Sequence[float] | None = None,
    changes: Probe | None = None,
    into: Path | None = None,
) -> Trace:
    writer = None if into is None else NpzWriter(into)
    trace = replay(
        pair,
        ask,
        decode_log_probabilities=decode_log_probabilities,
        model=describe_model(bundle),
        decoding=decoding,
        changes=changes,
        keep=None if writer is None else writer.keep,
    )
    if writer is not None:
        writer.finish(trace)
    return trace


def describe_model(bundle: Bundle) -> dict[str, Any]:
    """What a trace says of its model."""
    return {
        "model_hash": bundle.model_hash,
        "name": bundle.folder.name,
        "languages": bundle.config.languages.model_dump(),
        "library": bundle.manifest.get("library"),
    }
