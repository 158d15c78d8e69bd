"""Cost of looking: of the code that lets a probe look when none does, and of a full trace.

    python benchmarks/look_speed.py
    python benchmarks/look_speed.py --sentences 32 --repetitions 3

A small model with random weights writes exactly 24 tokens for sentences of 20.

- *model*: greedy decoding on the model itself, as it is and with everything that hands results to
  a probe cut out of its source. Same weights, same tokens.
- *search*: what `pellucid translate` runs, with a beam of 5, on a model that was looked into
  before, and on one that never was.
- *trace*: one sentence, all layers, every stage: decode and replay by `Translator.look`, only the
  replay, and writing the files.

The two ways take turns, and so does who is first; ratios are medians over the rounds. Above 1 is
slower with looking.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from decode_peers.subjects import TARGET_TOKENS, random_subject
from side_by_side.results import write_result

from pellucid.bundle import load_bundle
from pellucid.data import make_source_batch
from pellucid.decode.greedy import decode_greedily
from pellucid.inside import Ask
from pellucid.inside.pair import make_pair
from pellucid.inside.replayed_pair import replay
from pellucid.model import Transformer
from pellucid.translate.translator import Translator, load

PROBED = ("pellucid.model.layers", "pellucid.model.transformer")
BATCH = 32
SIZE = "small"
EVERYTHING = Ask(everything=True)

Way = Callable[[], object]
Figures = dict[str, Any]


class WithoutLooking(ast.NodeTransformer):
    """Cut out what hands results to a probe."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        is_show = isinstance(node.func, ast.Attribute) and node.func.attr == "show"
        return node.args[-1] if is_show else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.module in PROBED:
            node.module = blind_name(node.module)
        return node


def blind_name(module: str) -> str:
    return module.replace("pellucid.model.", "blind_")


def blind_transformer() -> type[Transformer]:
    """Build the model's class from a source that shows nothing to a probe."""
    for name in PROBED:
        source = Path(str(importlib.import_module(name).__file__)).read_text(encoding="utf-8")
        blind = ast.fix_missing_locations(WithoutLooking().visit(ast.parse(source)))
        if "show(" not in source or "show(" in ast.unparse(blind):
            sys.exit(f"{name} must show results in a way that can be cut out of its source")
        module = ModuleType(blind_name(name))
        sys.modules[module.__name__] = module
        exec(compile(blind, module.__name__, "exec"), vars(module))
    found: type[Transformer] = vars(sys.modules[blind_name(PROBED[-1])])["Transformer"]
    return found


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sentences", type=int, default=128, help="number of sentences to decode")
    parser.add_argument("--repetitions", type=int, default=11)
    parser.add_argument("--out", type=Path, help="the result file (default: dated, in results/)")
    arguments = parser.parse_args()
    rounds = arguments.repetitions
    with tempfile.TemporaryDirectory() as name:
        subject = random_subject(SIZE, arguments.sentences, Path(name), [])
        sources = [one["ids"] for one in subject.sentences]
        texts = [subject.bundle.tokenizer.decode_target(ids) for ids in sources]
        folder = str(subject.bundle.folder)
        results = {
            "model": compare_models(subject.bundle.model, sources, rounds),
            "search": compare_searches(folder, texts, rounds),
            "trace": time_trace(folder, texts[0], Path(name), rounds),
        }
    print_results(subject.title, results)
    write_result("look-speed", {"title": subject.title, **results}, (), arguments.out)


def compare_models(model: Transformer, sources: list[list[int]], rounds: int) -> Figures:
    """Compare the model as it is with one that cannot be looked into."""
    blind = blind_transformer()(model.config, has_output_bias=model.output_bias is not None)
    blind.load_state_dict(model.state_dict())
    return in_turn(
        lambda: decode_all(model, sources), lambda: decode_all(blind, sources), rounds
    ) | {"target_tokens": TARGET_TOKENS * len(sources)}


def decode_all(model: Transformer, sources: list[list[int]]) -> list[tuple[int, ...]]:
    """Decode greedily, some sentences at once."""
    found: list[tuple[int, ...]] = []
    for start in range(0, len(sources), BATCH):
        source_BS, mask_BS = make_source_batch(sources[start : start + BATCH], pad_id=0)
        limits = [TARGET_TOKENS] * len(source_BS)
        hypotheses = decode_greedily(
            model, source_BS, mask_BS, start_id=2, eos_id=3, max_lengths=limits
        )
        found += [hypothesis.ids for hypothesis in hypotheses]
    return found


def compare_searches(folder: str, texts: list[str], rounds: int) -> Figures:
    """Compare a model that was looked into with one that was not."""
    looked_into, untouched = load(folder), load(folder)
    for float64 in (False, True):
        looked_into.look(texts[0], everything=True, float64=float64, max_length=TARGET_TOKENS)

    def translate(translator: Translator) -> list[tuple[int, ...]]:
        found = translator.translate(texts, beam=5, max_length=TARGET_TOKENS)
        return [translation.ids for translation in found]

    return in_turn(lambda: translate(looked_into), lambda: translate(untouched), rounds) | {
        "target_tokens": TARGET_TOKENS * len(texts)
    }


def in_turn(looking: Way, blind: Way, rounds: int) -> Figures:
    """Run two ways in turn; both must write the same tokens."""
    if looking() != blind():
        sys.exit("Both ways must write the same tokens, but do not.")
    seconds: dict[Way, list[float]] = {looking: [], blind: []}
    for index in range(rounds):
        for way in (looking, blind) if index % 2 else (blind, looking):
            seconds[way].append(clock(way))
    pairs = zip(seconds[looking], seconds[blind], strict=True)
    return {
        "ratio": statistics.median(one / other for one, other in pairs),
        "ratio_of_fastest": min(seconds[looking]) / min(seconds[blind]),
        "seconds_with_looking": seconds[looking],
        "seconds_without_looking": seconds[blind],
    }


def clock(way: Way) -> float:
    started = time.perf_counter()
    way()
    return time.perf_counter() - started


def time_trace(folder: str, text: str, scratch: Path, rounds: int) -> Figures:
    """Time a trace of everything in one sentence, and writing it."""
    translator, bundle = load(folder), load_bundle(Path(folder))
    trace = translator.look(text, everything=True, max_length=TARGET_TOKENS)
    pair = make_pair(bundle, text, trace.predicted_ids)
    ways: dict[str, Way] = {
        "look": lambda: translator.look(text, everything=True, max_length=TARGET_TOKENS),
        "look_float64": lambda: translator.look(
            text, everything=True, max_length=TARGET_TOKENS, float64=True
        ),
        "replay": lambda: replay(pair, EVERYTHING),
        "write_npz": lambda: trace.save(scratch / "trace.npz"),
        "write_json": lambda: trace.save(scratch / "trace.json"),
    }
    seconds = {name: [clock(way) for _ in range(rounds)] for name, way in ways.items()}
    return {
        "source_tokens": len(trace.source_ids),
        "target_tokens": len(trace.target_ids),
        "arrays": len(trace.arrays),
        "megabytes": megabytes(array.nbytes for array in trace.arrays.values()),
        "median_seconds": {name: statistics.median(each) for name, each in seconds.items()},
        "seconds": seconds,
    }


def megabytes(sizes: Iterable[int]) -> float:
    return round(sum(sizes) / 1e6, 2)


def print_results(title: str, results: Figures) -> None:
    """Print a line for each figure."""
    print(title)
    for name in ("model", "search"):
        one = results[name]
        speed = one["target_tokens"] / statistics.median(one["seconds_with_looking"])
        print(
            f"  {name}: {speed:,.0f} tokens/s, ratio of times {one['ratio']:.3f} "
            f"(of the fastest {one['ratio_of_fastest']:.3f})"
        )
    trace = results["trace"]
    print(f"  a trace of everything: {trace['arrays']} arrays, {trace['megabytes']} MB")
    for name, seconds in trace["median_seconds"].items():
        print(f"    {name}: {seconds:.3f} s")


if __name__ == "__main__":
    main()
