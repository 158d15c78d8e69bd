"""A study against replays, and its time.

    python benchmarks/study.py runs/mine --source test.en --target test.fr

- *cuts*: for each head, the effect of its cut on the log-probability of 100 lines, and their greedy
  translations without it, by the study (zeroed columns in the engine in C) and by the replay (the
  head's context set to 0 at every step). The numbers must agree, and the texts be equal but for
  ties that rounding decides.
- *time*: seconds of a whole study of 1,000 lines with the threads given.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from side_by_side.results import write_result

from pellucid.bundle import load_bundle, resolve_model
from pellucid.inside import study
from pellucid.inside.changes.change import Changes, CutHead
from pellucid.inside.changes.place import all_heads, parse_place
from pellucid.inside.changes.what_if import decode_under
from pellucid.inside.heads.head_rows import cut_effects
from pellucid.inside.pair import make_pair
from pellucid.machine.hardware import set_threads
from pellucid.text.reading.lines import read_lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--compared", type=int, default=100)
    parser.add_argument("--decoded-heads", type=int, default=4)
    parser.add_argument("--timed", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    set_threads(given.threads)
    bundle = load_bundle(resolve_model(given.model))
    sources, targets = (list(read_lines(path)) for path in (given.source, given.target))
    started = time.perf_counter()
    study(bundle, sources[: given.timed], targets[: given.timed])
    record = {"lines": given.timed, "seconds": time.perf_counter() - started}
    print(record, flush=True)
    record |= compare(bundle, sources[: given.compared], targets[: given.compared], given)
    print(record)
    write_result("study", record, (), given.out)


def compare(bundle, sources, targets, given) -> dict[str, float]:
    """Compare the cuts of a study with those of replays."""
    found = study(bundle, sources, targets)
    pairs = [make_pair(bundle, *pair) for pair in zip(sources, targets, strict=True)]
    heads = list(all_heads(bundle.config.model))
    effects = [cut_effects(pair) for pair in pairs]
    by_replay = np.array([np.mean([one[head] for one in effects]) for head in heads])
    by_study = found.heads.column("cut_log_probability")
    before = [decode_under(pair, None, max_length=80).text for pair in pairs]
    unequal = 0
    for head in found.heads.rows[:: max(1, len(heads) // given.decoded_heads)]:
        probe = Changes(CutHead(parse_place(head)))
        after = [decode_under(pair, probe, max_length=80).text for pair in pairs]
        changed = {n for n, one in enumerate(after) if one != before[n]}
        unequal += len(changed ^ set(found.changed[head]))
    return {
        "compared": len(sources),
        "largest_difference": float(abs(by_study - by_replay).max()),
        "lines_that_differ": unequal,
    }


if __name__ == "__main__":
    main()
