"""Vectors of a corpus, against a loop of single pairs: the same numbers, and the time of both.

    python benchmarks/vectors.py demo --lines 2000

The two run in turn, so that other work on the machine slows both; the time is the processor's, the
least of the rounds. The loop is what one would write without the command:
`make_pair(bundle, source, target).see(…)` for each line.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side.results import write_result

import pellucid
from pellucid.corpora.splits import make_split
from pellucid.inside import vectors
from pellucid.inside.pair import make_pair
from pellucid.translate.translator import Translator

ROUNDS = 3
CASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("encoder.1.feed_forward.norm", ()),
    ("encoder.1.feed_forward.norm", ("it",)),
    ("encoder.0.self.value", ()),
    ("decoder.1.cross.context", ()),
    ("decoder.1.feed_forward.norm", ()),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    translator = pellucid.load(asked.model, threads=1)
    pairs = make_split("test", count=asked.lines)
    texts = [one.source for one in pairs], [one.target for one in pairs]
    rows = []
    for at, words in CASES:
        rows.append(compare(translator, texts, at, words))
        print(rows[-1], flush=True)
    result = {"model": asked.model, "lines": asked.lines, "table": rows}
    write_result("vectors", result, (), asked.out)


def compare(
    translator: Translator, texts: tuple[list[str], list[str]], at: str, words: tuple[str, ...]
) -> dict[str, Any]:
    """Compare the numbers and the seconds of one place."""
    with tempfile.TemporaryDirectory() as folder:
        where: dict[str, Any] = {"at": at, "output": Path(folder) / "x.npz", "overwrite": True}
        # Nothing is loaded or compiled in the first round.
        vectors(translator, texts[0][:20], texts[1][:20], **where)
        seconds = []
        for _ in range(ROUNDS):
            fast, found = timed(lambda: vectors(translator, *texts, words=words, **where))
            slow, wanted = timed(lambda: loop(translator, *texts, at))
            seconds.append((fast, slow))
        stacked = np.concatenate(wanted)
        if words:
            lengths = np.cumsum([0, *map(len, wanted)])
            stacked = stacked[lengths[found.rows["line"]] + found.rows["position"]]
        largest = float(np.abs(stacked - found.vectors).max())
    fast, slow = np.min(seconds, axis=0).tolist()
    about = {"at": at, "words": " ".join(words), "vectors": len(stacked)}
    return about | {"seconds": fast, "loop": slow, "times": slow / fast, "largest": largest}


def loop(
    translator: Translator, sources: list[str], targets: list[str], at: str
) -> list[np.ndarray]:
    """Read the vectors of one line after the other."""
    site, _, stage = at.rpartition(".")
    found = []
    for source, target in zip(sources, targets, strict=True):
        pair = make_pair(translator.bundle, source, target)
        array = pair.see({stage}, sites={site})[at].numpy()
        heads_last = array if array.ndim == 2 else array.transpose(1, 0, 2)
        found.append(heads_last.reshape(len(heads_last), -1))
    return found


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of the processor, and the result."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


if __name__ == "__main__":
    main()
