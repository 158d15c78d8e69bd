"""What every measured process does: load, warm up, translate once by the clock, report.

Standard library only, since it runs inside each system's own environment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from side_by_side.processes import exchange, peak_megabytes

Sentence = dict[str, Any]
"""``ids`` and ``tokens`` of a source, the latter without ``</s>``, and its ``limit``."""

Translate = Callable[[list[Sentence]], list[Any]]
"""Gives the target ids or tokens of each sentence, ``</s>`` included where it was written."""


def measure(load: Callable[[dict[str, Any]], tuple[Translate, dict[str, str]]]) -> None:
    """Measure what was asked for.

    Args:
        load: gives the system ready to translate, and the versions of what it is made of.
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
