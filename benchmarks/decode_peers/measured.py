"""The work of every measured process: load, warm up, translate once by the clock, report.

Only the standard library is used, since this runs in each system's environment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from side_by_side.processes import exchange, peak_megabytes

Sentence = dict[str, Any]
"""``ids`` and ``tokens`` of a source, the latter without ``</s>``, and its ``limit``."""

Translate = Callable[[list[Sentence]], list[Any]]
"""Returns the target ids or tokens of each sentence, with ``</s>`` if it was written."""


def measure(load: Callable[[dict[str, Any]], tuple[Translate, dict[str, str]]]) -> None:
    """Measure what was asked for.

    Args:
        load: returns the system ready to translate, and the versions of its packages.
    """
    exchange(lambda work: _measure(load, work))


def _measure(
    load: Callable[[dict[str, Any]], tuple[Translate, dict[str, str]]], work: dict[str, Any]
) -> dict[str, Any]:
    started = time.perf_counter()
    translate, versions = load(work)
    load_seconds = time.perf_counter() - started
    sentences = work["sentences"]
    translate(sentences[: max(8, work["batch"])])
    started = time.perf_counter()
    outputs = translate(sentences)
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "load_seconds": load_seconds,
        "peak_megabytes": peak_megabytes(),
        "outputs": outputs,
        "versions": versions,
    }
