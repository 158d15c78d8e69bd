"""What is measured: settings, the variants that systems choose from, and a run within minutes."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

QUICK: Mapping[str, Any] = {
    "models": ["demo", "tiny", "small", "base"],
    "systems": ["pellucid", "ctranslate2"],
    "precisions": ["float32", "int8"],
    "batches": [128],
    "minutes": 8.0,
}
"""Options of a quick run, unless they are given."""

QUICK_SENTENCES = {"demo": (256, 1024), "tiny": (128, 512), "small": (32, 256), "base": (8, 128)}
"""Sentences of a quick run, one at a time and together: enough to be timed."""

WEIGHTS = {"demo": 1, "tiny": 1, "small": 2, "base": 6, "trained": 2}
"""Shares of the minutes that the models get."""

LEAST_ROUNDS = 2

INSTRUCTIONS = {
    "avx2": {
        "PELLUCID_INSTRUCTIONS": "avx2",
        "CT2_FORCE_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
    }
}
"""Variables that keep every system from newer instructions."""


@dataclass(frozen=True)
class Setting:
    """One way to translate.

    Attributes:
        name: its name in results.
        beam: 1 for greedy.
        batches: numbers of sentences at once; a system takes what suits it best.
        num_sentences: number of the subject's sentences that are translated.
        call: how many of them are given in one call.
    """

    name: str
    beam: int
    batches: tuple[int, ...]
    num_sentences: int
    call: int

    @property
    def is_single(self) -> bool:
        """True if sentences are translated one at a time."""
        return max(self.batches) == 1


def settings_of(name: str, num_sentences: int, arguments: argparse.Namespace) -> list[Setting]:
    """Return the settings that were asked for, for a model with this many sentences."""
    single, large = arguments.single, num_sentences
    if arguments.quick:
        single, large = QUICK_SENTENCES.get(name, (32, 256))
    found = []
    for setting in arguments.settings:
        is_single = setting.startswith("single")
        count = min(single if is_single else large, num_sentences)
        batches = (1,) if is_single else tuple(arguments.batches)
        call = max(batches) if arguments.quick and not is_single else count
        beam = arguments.beam if setting.endswith("beam") else 1
        found.append(Setting(setting, beam, batches, count, call))
    return found


def variants_of(system: str, setting: Setting, *, is_quick: bool = False) -> list[dict[str, Any]]:
    """List what a system may choose from."""
    cores = os.cpu_count() or 1
    counts = sorted({1, cores})
    if system == "hugging_face":
        choices = [{"attention": "sdpa"}, {"attention": "eager"}]
    elif system == "ctranslate2":
        choices = [{"workers": 1, "threads": threads} for threads in counts]
        if not setting.is_single:
            choices.append({"workers": cores, "threads": 1})
            if not is_quick:  # With many sentences a single thread leaves the others idle.
                del choices[0]
    else:
        choices = [{"threads": threads} for threads in counts]
    variants = [{"batch": batch, **choice} for batch in setting.batches for choice in choices]
    for one in variants:
        # One call's sentences must be several batches, or only one worker has work.
        one["batch"] = min(one["batch"], -(-setting.call // one.get("workers", 1)))
    return [one for place, one in enumerate(variants) if one not in variants[:place]]


def passes_of(
    settings: Sequence[Setting], variants: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Describe a measured pass for each setting with its variant, as `measure_passes` takes it."""
    return [
        {
            "beam": setting.beam,
            "sentences": setting.num_sentences,
            "call": setting.call,
            "limit": 10**6,
            **variant,
        }
        for setting, variant in zip(settings, variants, strict=True)
    ]


def rounds_until(end: float | None, most: int) -> Iterator[int]:
    """Count rounds, at least two, as long as one more is expected to fit.

    Args:
        end: the time of `time.monotonic` at which they must be over, or None.
        most: the greatest number of rounds.
    """
    for number in range(most):
        started = time.monotonic()
        yield number
        now = time.monotonic()
        is_enough = number + 1 >= LEAST_ROUNDS
        if end is not None and is_enough and now + (now - started) > end:
            return


def end_of_share(end: float | None, name: str, names: Sequence[str]) -> float | None:
    """Return when the first of the models that are left must be done, by their weights.

    Args:
        end: when all must be done.
        name: the model.
        names: it, and those after it.
    """
    if end is None:
        return None
    now = time.monotonic()
    return now + max(0.0, end - now) * WEIGHTS[name] / sum(WEIGHTS[one] for one in names)
