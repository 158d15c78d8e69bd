"""The work of every measured process: load, warm up, translate by the clock, report.

Only the standard library is used, since this runs in each system's environment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from side_by_side.processes import exchange, peak_megabytes

Sentence = dict[str, Any]
"""``ids`` and ``tokens`` of a source, the latter without ``</s>``, and its ``limit``."""

Translate = Callable[[list[Sentence], int, int], list[Any]]
"""Given sentences, the beam and the batch size, returns the target ids or tokens of each sentence,
with ``</s>`` if it was written."""

Load = Callable[[dict[str, Any]], tuple[Translate, dict[str, str]]]

WARM_TOKENS = 4
"""Target tokens of a warm-up."""

WARM_SENTENCES = 8
"""The least number of sentences of a warm-up."""


def measure(load: Load) -> None:
    """Measure what was asked for.

    Args:
        load: returns the system ready to translate with a number of workers and threads, and the
            versions of its packages.
    """
    exchange(lambda work: measure_passes(load, work))


def measure_passes(load: Load, work: dict[str, Any]) -> dict[str, Any]:
    """Measure passes over the sentences one after another, and load again where that must be.

    Args:
        load: as for `measure`.
        work: the ``passes``, the ``sentences``, and what ``load`` needs. A pass has ``beam``,
            ``batch``, what ``load`` may choose, the number of ``sentences`` to translate, how many
            to give in one ``call``, and the greatest ``limit`` of target tokens.
    """
    results: list[dict[str, Any]] = []
    loaded, versions = None, {}
    for one in work["passes"]:
        choice = {key: one[key] for key in ("workers", "threads", "attention") if key in one}
        if choice != loaded:
            started = time.perf_counter()
            translate, versions = load({**work, **choice})
            loaded, load_seconds = choice, time.perf_counter() - started
        outputs, seconds = _translate(translate, one, work["sentences"])
        results.append(
            {
                "seconds": seconds,
                "outputs": outputs,
                "load_seconds": load_seconds,
                "peak_megabytes": peak_megabytes(),
                "versions": versions,
            }
        )
    return {"passes": results, "versions": versions}


def _translate(
    translate: Translate, one: dict[str, Any], sentences: list[Sentence]
) -> tuple[list[Any], float]:
    beam, batch = one["beam"], one["batch"]
    chosen = _shorten(sentences[: one["sentences"]], one["limit"])
    translate(_shorten(chosen[: max(WARM_SENTENCES, batch)], WARM_TOKENS), beam, batch)
    outputs: list[Any] = []
    started = time.perf_counter()
    for start in range(0, len(chosen), one["call"]):
        outputs += translate(chosen[start : start + one["call"]], beam, batch)
    return outputs, time.perf_counter() - started


def _shorten(sentences: list[Sentence], limit: int) -> list[Sentence]:
    return [{**one, "limit": min(limit, one["limit"])} for one in sentences]
