"""Every number of many traces, compared with NumPy in float64, which only sees bundle files.

    MULTI30K=DIR python benchmarks/trace_parity.py --model runs/multi30k-en-fr
    python benchmarks/trace_parity.py --model demo --source FILE --lines 20
    python benchmarks/trace_parity.py --families

Each sentence is decoded greedily, with a beam of 5 and by sampling; the best translation is
replayed in float32 and in float64 with every stage, and written as ``.npz``. `tests/parity/
numpy_transformer.py`, which shares no code with the package, gets the folder of the model and the
ids in that file, and computes every array again. The largest differences of each stage over all
sentences, layers and parts are printed: absolute, and as a share of the array's largest finite
magnitude. --families does so for a small model of every family that `pellucid convert` reads
(`family_models.py`). The exit code is 1 if one exceeds its tolerance: 1e-9 in float64; in float32 a
share of 1e-5, for weights 1e-5 itself; 1e-4 between replay and decode.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side.results import write_result

from pellucid import load
from pellucid.bundle import resolve_model
from pellucid.inside import Ask, Trace
from pellucid.inside.line_traces import Replaying
from pellucid.text.reading.lines import read_lines
from pellucid.translate.translator import Translator

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "parity"))  # The reference stands in one place.

from numpy_transformer import NumpyTransformer, distance  # noqa: E402

DECODINGS: dict[str, dict[str, Any]] = {
    "greedy": {"beam": 1},
    "beam": {"beam": 5},
    "sampling": {"sample": True, "seed": 1},
}
PRECISIONS = {"float32": False, "float64": True}
LINES_AT_ONCE = 50


@dataclass
class Found:
    """The arrays compared so far, and the largest differences."""

    arrays: int = 0
    numbers: int = 0
    target_tokens: int = 0
    stages: dict[str, tuple[float, float]] = field(default_factory=dict)
    decode: float = 0.0
    wrong_names: set[str] = field(default_factory=set)

    def add(self, name: str, expected: np.ndarray, found: np.ndarray) -> None:
        """Compare one array."""
        stage = stage_of(name)
        before = self.stages.get(stage, (0.0, 0.0))
        now = distance(expected, found)
        self.stages[stage] = (max(before[0], now[0]), max(before[1], now[1]))
        self.arrays += 1
        self.numbers += found.size


def main() -> None:
    """Compare, print, and write the result file."""
    arguments = parse()
    if arguments.families:
        compare_families(arguments)
        return
    filled = (line for line in read_lines(arguments.source) if line.strip())
    lines = list(itertools.islice(filled, arguments.lines))
    written = compare_model(resolve_model(arguments.model), lines, {}, arguments)
    write_result("trace-parity", written, (), arguments.out)
    sys.exit(0 if written["is_equal"] else 1)


def compare_families(arguments: argparse.Namespace) -> None:
    """Compare a model of every family, and write one result file."""
    from family_models import FAMILIES, make_family

    written = {}
    for name in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            made = make_family(name, Path(folder))
            print(f"\n== {name}", flush=True)
            written[name] = compare_model(made.folder, made.lines, made.languages, arguments)
    is_equal = all(one["is_equal"] for one in written.values())
    found = {"is_equal": is_equal, "families": written}
    write_result("trace-parity", found, (), arguments.out)
    sys.exit(0 if is_equal else 1)


def compare_model(
    model: Path, lines: list[str], languages: dict[str, Any], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Compare all traces of one model."""
    translator = load(model)
    reference = NumpyTransformer(model)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for decoding in arguments.decodings:
            results[decoding] = {}
            for precision in arguments.precisions:
                started = time.perf_counter()
                found = compare_all(
                    look_at_all(
                        translator, lines, DECODINGS[decoding] | languages, PRECISIONS[precision]
                    ),
                    reference,
                    Path(folder) / "trace.npz",
                )
                seconds = time.perf_counter() - started
                results[decoding][precision] = figures(found, precision, seconds)
                print_figures(decoding, precision, results[decoding][precision])
    return {
        "model": translator.bundle.model_hash,
        "sentences": len(lines),
        "is_equal": all(one["is_equal"] for each in results.values() for one in each.values()),
        "decodings": results,
    }


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--model", metavar="MODEL", help="a trained model, or `demo`")
    add("--families", action="store_true", help="a small model of every family instead")
    add("--source", type=Path, help="its sentences (default: Multi30k, test_2016_flickr.en.gz)")
    add("--lines", type=int, default=1000, help="how many of them to look at")
    add("--decodings", nargs="+", choices=DECODINGS, default=list(DECODINGS))
    add("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    add("--out", type=Path, help="the result file (default: a dated one in results/)")
    arguments = parser.parse_args()
    if (arguments.model is None) != arguments.families:
        parser.error("give --model or --families")
    if arguments.source is None and arguments.model:
        if "MULTI30K" not in os.environ:
            parser.error("MULTI30K must be set to the folder of Multi30k, or --source given")
        arguments.source = Path(os.environ["MULTI30K"]) / "test_2016_flickr.en.gz"
    return arguments


def look_at_all(
    translator: Translator, lines: list[str], options: dict[str, Any], float64: bool
) -> Iterator[Trace]:
    """Trace the best translation of every line, some lines at a time."""
    how = Replaying(Ask(everything=True), float64=float64)
    for start in range(0, len(lines), LINES_AT_ONCE):
        some = lines[start : start + LINES_AT_ONCE]
        for traces in translator.look_at_each(some, how, **options):
            yield traces[0]


def compare_all(traces: Iterator[Trace], reference: NumpyTransformer, path: Path) -> Found:
    """Write each trace, read the file with NumPy, and compare all its arrays."""
    found = Found()
    for trace in traces:
        trace.save(path)
        with np.load(path, allow_pickle=False) as archive:
            held = {name: archive[name] for name in archive.files}
        expected = reference.run(held["source_ids"].tolist(), held["target_ids"].tolist())
        arrays = {name for name in held if name.startswith(("encoder.", "decoder."))}
        found.wrong_names |= expected.keys() ^ arrays
        for name in expected.keys() & arrays:
            found.add(name, expected[name], held[name])
        differences = held["log_probabilities"] - held["decode_log_probabilities"]
        # A token that was given, such as a language, counts as certain in a decode only.
        is_given = held["decode_log_probabilities"] == 0
        found.decode = max(found.decode, float(np.abs(differences[~is_given]).max(initial=0.0)))
        found.target_tokens += len(held["target_ids"])
    return found


def stage_of(name: str) -> str:
    """Return ``self.weights`` for ``decoder.1.self.weights``."""
    return ".".join(one for one in name.split(".")[1:] if not one.isdigit())


def figures(found: Found, precision: str, seconds: float) -> dict[str, Any]:
    """Return the results as the file has them."""
    beyond = [stage for stage in found.stages if not is_within(stage, precision, found)]
    return {
        "is_equal": not beyond and not found.wrong_names and found.decode <= 1e-4,
        "beyond": beyond,
        "names_missing_or_too_many": sorted(found.wrong_names),
        "arrays": found.arrays,
        "numbers": found.numbers,
        "target_tokens": found.target_tokens,
        "largest_absolute": max(absolute for absolute, _ in found.stages.values()),
        "largest_share": max(share for _, share in found.stages.values()),
        "largest_from_decode": found.decode,
        "median_share_of_stages": statistics.median(share for _, share in found.stages.values()),
        "stages": {
            stage: {"absolute": absolute, "share": share}
            for stage, (absolute, share) in sorted(found.stages.items())
        },
        "seconds": round(seconds, 1),
    }


def is_within(stage: str, precision: str, found: Found) -> bool:
    """Tell whether a stage is within its tolerance."""
    absolute, share = found.stages[stage]
    if precision == "float64":
        return absolute <= 1e-9
    return (absolute if stage.endswith(".weights") else share) <= 1e-5


def print_figures(decoding: str, precision: str, one: dict[str, Any]) -> None:
    """Print a line for each stage."""
    print(
        f"\n{decoding}, {precision}: {one['arrays']:,} arrays, {one['numbers']:,} numbers, "
        f"{one['target_tokens']:,} target tokens, {one['seconds']:,} s"
    )
    print(f"  {'stage':<24} {'absolute':>10} {'share':>10}")
    for stage, far in one["stages"].items():
        note = "  beyond its tolerance" if stage in one["beyond"] else ""
        print(f"  {stage:<24} {far['absolute']:>10.1e} {far['share']:>10.1e}{note}")
    print(f"  {'replay from decode':<24} {one['largest_from_decode']:>10.1e}")
    for name in one["names_missing_or_too_many"]:
        print(f"  {name} is missing, or should not be there")


if __name__ == "__main__":
    main()
