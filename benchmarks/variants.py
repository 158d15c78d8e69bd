"""Variants of the Transformer, trained on lists of a tiny language: lengths of training and beyond.

    python benchmarks/variants.py --seeds 1 2 3

The lists are those of `pellucid why position`: 1 to 3 animals in training, up to 6 in the test. All
models have the same sizes and read the same text in the same order. Written for each variant and
seed: the share of lists translated exactly, by the number of animals, and seconds of training.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from side_by_side.results import write_result

from pellucid.lessons.why.tiny.learn import count_exact, make_tiny, train_tiny
from pellucid.lessons.why.tiny.sentences import draw_lists

VARIANTS: dict[str, dict[str, Any]] = {
    "sinusoidal": {},
    "learned": {"positions": "learned"},
    "none": {"positions": "none"},
    "rotary": {"positions": "rotary"},
    "alibi": {"positions": "alibi"},
    "relative": {"positions": "relative", "max_relative_distance": 8},
    "RMS norm": {"norm_kind": "rms"},
    "gated": {"gated_feed_forward": True},
    "one head of keys": {"num_key_value_heads": 1},
}
TRAINED_TO, LONGEST = 3, 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=350)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for seed in given.seeds:
        lists = draw_lists(6000, phrases=range(1, TRAINED_TO + 1), seed=seed, part="train")
        tests = {
            size: draw_lists(8 if size == 1 else 60, phrases=(size,), seed=seed, part="test")
            for size in range(1, LONGEST + 1)
        }
        for name in given.variants:
            started = time.perf_counter()
            tiny = make_tiny(
                lists, seed=seed, max_source_length=64, max_target_length=64, **VARIANTS[name]
            )
            tiny = train_tiny(tiny, lists, steps=given.steps, seed=seed)
            seconds = time.perf_counter() - started
            right = {size: count_exact(tiny, test) for size, test in tests.items()}
            rows.append({"variant": name, "seed": seed, "right": right, "seconds": seconds})
            print(rows[-1], flush=True)
    write_result("variants", {"steps": given.steps, "rows": rows}, (), given.out)


if __name__ == "__main__":
    main()
