"""Memory and speed of NLLB-600M's shape in int8, next to CTranslate2: same weights, in turn.

    python benchmarks/many_languages.py --sentences 4 --rounds 3

12 + 12 layers of width 1,024, a vocabulary of 256,206, random weights: 615 million. Both programs
read a folder of int8 weights and write 24 target tokens for each sentence of 20, one sentence at a
time and all together, greedily, each in a process of its own with the same number of threads. The
programs take turns; a figure is the median of the rounds. Ratios say more than figures on a machine
that does other work as well; its load is written with them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from decode_peers.subjects import TARGET_TOKENS, random_subject
from side_by_side.processes import run_script
from side_by_side.results import write_result

from pellucid.formats.exporting import export_bundle

SCRIPTS = Path(__file__).parent / "decode_peers"
SYSTEMS = ("pellucid", "ctranslate2")


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="nllb-600m", help="a size of decode_peers/subjects.py")
    parser.add_argument("--sentences", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="the result file (default: a dated one)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        subject = random_subject(given.size, given.sentences, folder, [("ctranslate2", "int8")])
        export_bundle(subject.bundle, folder / "int8", "int8", computes="int8")
        folders = {
            "pellucid": folder / "int8",
            "ctranslate2": subject.folders["ctranslate2", "int8"],
        }
        stored = {name: megabytes_of(one) for name, one in folders.items()}
        work = {
            "precision": "int8",
            "stopping": "safe",
            "use_minimum_length": False,
            "sentences": subject.sentences,
            "passes": passes(given.sentences, given.threads),
        }
        title = subject.title
        # Its weights would count as memory in use.
        del subject
        runs: dict[str, list[list[dict[str, Any]]]] = {name: [] for name in SYSTEMS}
        versions: dict[str, dict[str, str]] = {}
        for number in range(given.rounds):
            for name in SYSTEMS:
                own = {**work, "model": str(folders[name])}
                done = run_script(sys.executable, SCRIPTS / f"run_{name}.py", own, folder)
                runs[name].append(done["passes"])
                versions[name] = done["versions"]
                print(f"round {number + 1}: {name} done", file=sys.stderr, flush=True)
    found = {name: summarize(runs[name], stored[name]) for name in SYSTEMS}
    ratios = {key: found["pellucid"][key] / found["ctranslate2"][key] for key in found["pellucid"]}
    if "engine in C" not in versions["pellucid"]["path"]:
        raise SystemExit(f"pellucid did not use its engine: {versions['pellucid']['path']}")
    for name, one in {**found, "ratio": ratios}.items():
        shown = ", ".join(f"{key} {value:,.2f}" for key, value in one.items())
        print(f"{name}: {shown}")
    written = {
        "model": title,
        "target_tokens": TARGET_TOKENS,
        "sentences": given.sentences,
        "threads": given.threads,
        "rounds": given.rounds,
        "load": os.getloadavg(),
        "versions": versions,
        "systems": found,
        "ratios": ratios,
    }
    write_result("many-languages", written, ("ctranslate2",), given.out)


def passes(sentences: int, threads: int) -> list[dict[str, Any]]:
    """Sentences one at a time, then all together."""
    common = {"beam": 1, "workers": 1, "threads": threads, "sentences": sentences, "limit": 1000}
    single = {**common, "batch": 1, "call": 1}
    return [single, {**common, "batch": sentences, "call": sentences}]


def megabytes_of(folder: Path) -> float:
    """Megabytes of a folder's files."""
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) / 2**20


def summarize(runs: list[list[dict[str, Any]]], stored: float) -> dict[str, float]:
    """Take the medians, after checking that every translation is as long as asked."""
    figures: dict[str, list[float]] = {}
    for one in runs:
        for name, done in zip(("single", "together"), one, strict=True):
            lengths = {len(ids) for ids in done["outputs"]}
            if lengths != {TARGET_TOKENS}:
                raise SystemExit(f"Translations must have {TARGET_TOKENS} tokens, not {lengths}.")
            tokens = TARGET_TOKENS * len(done["outputs"])
            figures.setdefault(f"{name}_tokens_per_second", []).append(tokens / done["seconds"])
        figures.setdefault("load_seconds", []).append(one[0]["load_seconds"])
        figures.setdefault("peak_megabytes", []).append(one[-1]["peak_megabytes"])
    medians = {name: statistics.median(each) for name, each in figures.items()}
    return {**medians, "stored_megabytes": stored}


if __name__ == "__main__":
    main()
