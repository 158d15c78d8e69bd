"""The page's own model compared with the package, at every stage of many sentences.

    python benchmarks/page_parity.py --model demo --lines 200

The page's TypeScript runs in Node. Each sentence of the built-in corpus is decoded greedily and
with a beam of 5, and every array of its trace is compared. The largest difference of each stage is
printed, as a share of the array's largest magnitude if that is above 1, and the time of a sentence:
greedy decoding and the replay. The exit code is 1 if a stage differs by more than 1e-4 or a token
differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from pellucid.corpora import make_split

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "shared"))

from page_in_node import compare, find_node, write_fixture  # noqa: E402

ALLOWED = 1e-4
CHUNK = 20
"""Sentences in a file: their traces as text take some megabytes each."""


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=ROOT / "src" / "pellucid" / "models" / "demo")
    parser.add_argument("--lines", type=int, default=200)
    options = parser.parse_args()
    node = find_node()
    if node is None:
        print("Node or the page's libraries are missing. Install Node, then: make web")
        return 1
    texts = [example.source for example in make_split("test", count=options.lines)]
    differences: dict[str, float] = defaultdict(float)
    wrong: list[str] = []
    medians, longest = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sentences.json"
        for start in range(0, len(texts), CHUNK):
            write_fixture(options.model, texts[start : start + CHUNK], file)
            (found,) = compare(node, [file], Path(folder))
            for name, difference in found["differences"].items():
                stage = name.rpartition(".")[2]
                differences[stage] = max(differences[stage], difference)
            wrong += found["wrong"]
            medians.append(found["milliseconds"]["median"])
            longest = max(longest, found["milliseconds"]["longest"])
    for stage, difference in differences.items():
        print(f"{stage:20} {difference:.1e}")
    print(f"{len(texts)} sentences; {len(wrong)} with another token", *wrong, sep="\n  ")
    print(
        f"a sentence: median {sorted(medians)[len(medians) // 2]:.0f} ms, longest {longest:.0f} ms"
    )
    return int(bool(wrong) or max(differences.values()) > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
