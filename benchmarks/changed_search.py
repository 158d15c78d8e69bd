"""Searches under changes, against searches that compute everything again, and their time.

    python benchmarks/changed_search.py demo --lines 200

- *table*: for each kind of change and each search (greedy, a beam of 5 with all hypotheses), the
  lines whose tokens are those of the slow search, and the largest difference of a log-probability.
- *time*: a beam of 5 over all lines in seconds of the processor, with and without a change.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from side_by_side.results import write_result

import pellucid
from pellucid.corpora.splits import make_split
from pellucid.inside import Replace
from pellucid.inside.pair import make_pair
from pellucid.translate.translator import Translator

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))
from slow_search import changes_to_try, read_probe, slow_beam

PLAIN: dict[str, Any] = {"length_penalty": "none", "stopping": "never", "precision": "float32"}
MOST = 40
TIED = 1e-3
"""Hypotheses whose scores differ by less may stand in either order."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--timed", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    translator = pellucid.load(asked.model, threads=1)
    lines = [one.source for one in make_split("test", count=max(asked.lines, asked.timed))]
    table = [
        compare(translator, lines[: asked.lines], name, change, beam)
        for name, change in changes_to_try(translator).items()
        for beam in (1, 5)
    ]
    result = {"model": asked.model, "lines": asked.lines, "table": table}
    result["time"] = times(translator, lines[: asked.timed])
    write_result("changed-search", result, (), asked.out)


def compare(
    translator: Translator, lines: list[str], name: str, change: Any, beam: int
) -> dict[str, Any]:
    """Compare all hypotheses of some lines with those of the slow search."""
    how = {**PLAIN, "max_length": MOST}
    found = translator.translate(lines, changes=change, beam=beam, n_best=beam, **how)
    equal = tied = 0
    largest = 0.0
    for text, one in zip(lines, found, strict=True):
        pair = make_pair(translator.bundle, text, "x")
        slow = slow_beam(pair, read_probe(pair, change), beam=beam, most=MOST)[:beam]
        ours = [(other.ids, other.token_log_probabilities) for other in one.hypotheses]
        if [ids for ids, _ in ours] == [ids for ids, _ in slow]:
            equal += 1
            for (_, logs), (_, others) in zip(ours, slow, strict=True):
                largest = max(largest, *(abs(x - y) for x, y in zip(logs, others, strict=True)))
            continue
        scores = [[sum(logs) for _, logs in each] for each in (ours, slow)]
        tied += all(abs(x - y) < TIED for x, y in zip(*scores, strict=True))
    row = {"change": name, "beam": beam, "equal": equal, "tied": tied, "largest": largest}
    print(row, flush=True)
    return row


def times(translator: Translator, lines: list[str]) -> dict[str, float]:
    """Measure a beam of 5: seconds without a change, and factors with one."""
    steer = {"encoder.0.feed_forward.norm": lambda tensor: tensor * 1.01}
    two = {**steer, "encoder.1.feed_forward.norm": steer["encoder.0.feed_forward.norm"]}
    changes = {
        "none": None,
        "text, encoder": "average encoder.1.self.*",
        "Replace in batches, encoder": Replace(steer, takes_batches=True),
        "Replace, encoder": Replace(steer),
        "Replace of two results, encoder": Replace(two),
        "cut a word of each line": "cut word it",
        "text, decoder": "average decoder.1.cross.*",
    }
    seconds = {name: _time(translator, lines, one) for name, one in changes.items()}
    plain = seconds["none"]
    found = {"none": plain} | {name: one / plain for name, one in seconds.items() if name != "none"}
    print(found)
    return found


def _time(translator: Translator, lines: list[str], change: Any) -> float:
    found = translator if change is None else translator.changed(change)
    found.translate(lines[:20], beam=5)
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        found.translate(lines, beam=5)
        best = min(best, time.process_time() - start)
    return best


if __name__ == "__main__":
    main()
