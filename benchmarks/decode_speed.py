"""Decoding speed next to Hugging Face `generate` and CTranslate2: same weights, same sentences.

    python benchmarks/decode_speed.py --setup
    python benchmarks/decode_speed.py --quick
    MULTI30K=DIR python benchmarks/decode_speed.py --model runs/multi30k-en-fr

The first line makes the peers' environments. The second measures the engine in C next to
CTranslate2, four sizes in about eight minutes on two idle cores; the third takes hours. A measured
process is in its system's environment. It loads, warms up, and times a pass over the sentences:
token ids in, ids out. Systems take turns, so that noise hits all of them alike. Before that, each
system tries its variants (threads, workers, batch sizes; Hugging Face its two kinds of attention)
on shorter translations, and keeps the best. A bias makes ``</s>`` unreachable, so that every system
writes exactly 24 target tokens without paying for an option; --minimum-length uses each system's
option as well. --quick measures all settings of a system in one process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from decode_peers.arithmetic import bytes_per_token, operations_per_token
from decode_peers.plan import (
    INSTRUCTIONS,
    QUICK,
    Setting,
    end_of_share,
    passes_of,
    rounds_until,
    settings_of,
    variants_of,
)
from decode_peers.report import print_subject, ratios
from side_by_side.environments import lend_ctranslate2, python_of, require, set_up
from side_by_side.machine import has_fast_bfloat16
from side_by_side.processes import run_script
from side_by_side.results import write_result

SCRIPTS = Path(__file__).parent / "decode_peers"
PEERS = ("hugging_face", "ctranslate2")
SYSTEMS = ("pellucid", *PEERS)
PRECISIONS = {
    "pellucid": ("float32", "bfloat16", "int8"),
    "hugging_face": ("float32", "bfloat16"),
    "ctranslate2": ("float32", "int8"),
}

TRIED = 16
"""The least number of sentences on which a system looks for its best variant."""

TRIED_TOKENS = 8
"""Target tokens of each of them."""

System = tuple[str, str]
"""A system and its precision."""


def main() -> None:
    """Measure what was asked for, print it, and write the result file."""
    arguments = parse()
    if arguments.setup:
        set_up(arguments.folder, PEERS)
        return
    require(arguments.folder, [peer for peer in PEERS if peer in arguments.systems])
    os.environ.update(INSTRUCTIONS.get(arguments.instructions, {}))
    lend_ctranslate2(arguments.folder)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * arguments.minutes if arguments.minutes else None
    systems = [
        (system, precision)
        for system in arguments.systems
        for precision in PRECISIONS[system]
        if precision in arguments.precisions
    ]
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        arguments.scratch = Path(folder)
        rates = measure_rates(arguments)
        names = [*arguments.models, *(["trained"] if arguments.model else [])]
        for place, name in enumerate(names):
            share = end_of_share(end, name, names[place:])
            results[name] = measure_subject(name, systems, rates, share, arguments)
            print_subject(name, results[name], arguments.precisions)
    found = {"instructions": arguments.instructions, "rates": rates, "models": results}
    write_result("decode-speed", found, PEERS, arguments.out)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, several = parser.add_argument, {"nargs": "*"}
    sizes = ["demo", "tiny", "small", "base"]
    add("--setup", action="store_true", help="only make the peers' environments")
    add("--quick", action="store_true", help="the engine next to CTranslate2, in eight minutes")
    add("--minutes", type=float, help="when to stop: at least two rounds, and at most what fits")
    add("--instructions", choices=list(INSTRUCTIONS), help="keep every system from newer ones")
    add("--folder", type=Path, default=Path("build/peers"), help="where they are")
    add("--models", default=["small", "base"], choices=sizes, **several)
    add("--model", metavar="RUN", help="a trained model to measure as well, with BLEU")
    add("--source", type=Path, help="its sentences (default: Multi30k, validation)")
    add("--reference", type=Path, help="their translations")
    add("--lines", type=int, default=1000, help="how many of them to translate")
    add("--systems", default=list(SYSTEMS), choices=SYSTEMS, **several)
    fast = ["float32", *(["bfloat16"] if has_fast_bfloat16() else []), "int8"]
    add("--precisions", default=fast, choices=["float32", "bfloat16", "int8"], **several)
    names = ["single-greedy", "single-beam", "large-greedy", "large-beam"]
    add("--settings", default=names, choices=names, **several)
    add("--beam", type=int, default=5)
    add("--batches", type=int, nargs="+", default=[32, 64, 128], help="sentences at once")
    add("--sentences", type=int, default=512, help="number of random sentences")
    add("--single", type=int, default=64, help="number of sentences for one at a time")
    add("--repetitions", type=int, default=5)
    add("--stopping", default="safe", help="stopping rule of pellucid's beam; the peers have one")
    add("--minimum-length", action="store_true", help="use each system's option as well")
    add("--out", type=Path, help="the result file (default: a dated one in results/)")
    if parser.parse_args().quick:
        parser.set_defaults(**QUICK)
    arguments = parser.parse_args()
    if (arguments.source is None) != (arguments.reference is None):
        parser.error("--source and --reference must be given together")
    if arguments.model and not arguments.source and "MULTI30K" not in os.environ:
        parser.error("MULTI30K must be set to the folder of Multi30k, or --source given")
    return arguments


def measure_rates(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Measure this machine's rates with one thread and with all, by the number of threads."""
    work = {"threads": sorted({1, os.cpu_count() or 1})}
    found = run_script(sys.executable, SCRIPTS / "run_rates.py", work, arguments.scratch)
    return dict(found["rates"])


def measure_subject(
    name: str,
    systems: list[System],
    rates: dict[str, dict[str, float]],
    end: float | None,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Measure all systems in all settings with one model."""
    from decode_peers.subjects import random_subject, trained_subject

    folder = arguments.scratch
    if name == "trained":
        files = (arguments.source, arguments.reference)
        subject = trained_subject(arguments.model, files, arguments.lines, folder, systems)
    else:
        count = max(arguments.sentences, 1024 if arguments.quick else 0)
        subject = random_subject(name, count, folder, systems)
    settings = settings_of(name, len(subject.sentences), arguments)
    result: dict[str, Any] = {"title": subject.title, "settings": {}}
    # Together in a process they start faster, but then its memory is that of the largest.
    for group in [settings] if arguments.quick else [[setting] for setting in settings]:
        measured = measure_settings(subject, group, systems, end, arguments)
        for setting, found in zip(group, measured, strict=True):
            add_shares(subject, setting, found, rates)
            result["settings"][setting.name] = {
                "beam": setting.beam,
                "sentences": setting.num_sentences,
                "at_once": 1 if setting.is_single else setting.call,
                "rounds": len(next(iter(found.values()))["seconds"]["all"]),
                "systems": found,
                "ratios": ratios(name, setting.name, found, arguments.instructions),
            }
    return result


def measure_settings(
    subject: Any,
    settings: Sequence[Setting],
    systems: list[System],
    end: float | None,
    arguments: argparse.Namespace,
) -> list[dict[str, dict[str, Any]]]:
    """Let every system find its best variants, then run all in turn, several times."""
    variants = {system: choose_variants(system, subject, settings, arguments) for system in systems}
    runs: dict[System, list[list[dict[str, Any]]]] = {system: [] for system in systems}
    for _ in rounds_until(end, arguments.repetitions):
        for system in systems:
            passes = passes_of(settings, variants[system])
            runs[system].append(run(system, passes, subject, arguments))
    found = []
    for place in range(len(settings)):
        outputs = {one: subject.ids_of(runs[one][-1][place]["outputs"]) for one in systems}
        compared = outputs.get(("pellucid", "float32"))
        found.append(
            {
                " ".join(one): {
                    "variant": variants[one][place],
                    **summarize(
                        subject, [done[place] for done in runs[one]], outputs[one], compared
                    ),
                }
                for one in systems
            }
        )
    return found


def choose_variants(
    system: System, subject: Any, settings: Sequence[Setting], arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """Return a system's fastest variant in each setting, on shorter translations."""
    tried = [
        (place, variant)
        for place, setting in enumerate(settings)
        for variant in variants_of(system[0], setting, is_quick=arguments.quick)
    ]
    passes = passes_of([settings[place] for place, _ in tried], [one for _, one in tried])
    for one, (place, _) in zip(passes, tried, strict=True):
        few = max(TRIED, 2 * max(settings[place].batches))
        one |= {"sentences": min(few, one["sentences"]), "limit": TRIED_TOKENS}
    done = run(system, passes, subject, arguments)
    speeds = [sum(map(len, one["outputs"])) / one["seconds"] for one in done]
    best = [
        max((i for i, (of, _) in enumerate(tried) if of == place), key=lambda i: speeds[i])
        for place in range(len(settings))
    ]
    return [tried[i][1] for i in best]


def run(
    system: System, passes: list[dict[str, Any]], subject: Any, arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """Run some passes of one system in a separate process."""
    name, precision = system
    work = {
        "model": str(subject.folders[system]),
        "precision": precision,
        "stopping": arguments.stopping,
        "use_minimum_length": arguments.minimum_length and subject.is_fixed,
        "sentences": subject.sentences[: max(one["sentences"] for one in passes)],
        "passes": passes,
    }
    python = sys.executable if name == "pellucid" else python_of(arguments.folder, name)
    found = run_script(python, SCRIPTS / f"run_{name}.py", work, arguments.scratch)["passes"]
    for one, done in zip(passes, found, strict=True):
        shown = {key: value for key, value in one.items() if key not in ("call", "limit")}
        speed = sum(map(len, done["outputs"])) / done["seconds"]
        print(f"{subject.name}: {name} {precision} {shown} {speed:,.0f} tokens/s", file=sys.stderr)
    return list(found)


def add_shares(
    subject: Any,
    setting: Setting,
    measured: dict[str, dict[str, Any]],
    rates: dict[str, dict[str, float]],
) -> None:
    """Add what each system reached of the machine's rates with as many threads.

    ``share_of_products`` counts the operations of the matrix products, ``share_of_reading``, for
    one sentence at a time, the bytes of the weights: over 100 % if they stay in a cache. A trained
    model's sentences have various lengths, and get no shares.
    """
    from decode_peers.subjects import SOURCE_TOKENS, TARGET_TOKENS

    if not subject.is_fixed:
        return
    sizes, all_threads = subject.bundle.config.model, max(rates, key=int)
    operations = operations_per_token(sizes, SOURCE_TOKENS, TARGET_TOKENS, setting.beam)
    for system, one in measured.items():
        precision = system.split()[1]
        variant, speed = one["variant"], one["tokens_per_second"]
        threads = variant.get("workers", 1) * variant.get("threads", int(all_threads))
        rate = rates[str(threads)]
        if precision in rate:
            one["share_of_products"] = operations * speed / rate[precision]
        if setting.is_single:
            num_bytes = bytes_per_token(sizes, TARGET_TOKENS, precision)
            one["share_of_reading"] = num_bytes * speed / rate["read"]


def summarize(
    subject: Any,
    runs: list[dict[str, Any]],
    outputs: list[list[int]],
    compared: list[list[int]] | None,
) -> dict[str, Any]:
    """Summarize the runs of one system, after checking that it did the whole work."""
    from decode_peers.subjects import TARGET_TOKENS

    lengths = {len(ids) for ids in outputs}
    if subject.is_fixed and lengths != {TARGET_TOKENS}:
        raise SystemExit(
            f"Every translation must have {TARGET_TOKENS} tokens, but lengths are {lengths}."
        )
    seconds = [one["seconds"] for one in runs]
    tokens = sum(map(len, outputs))
    same = [a == b for a, b in zip(outputs, compared or [], strict=bool(compared))]
    return {
        "tokens_per_second": tokens / statistics.median(seconds),
        "target_tokens": tokens,
        "seconds": {
            "median": statistics.median(seconds),
            "minimum": min(seconds),
            "all": seconds,
        },
        "load_seconds": statistics.median(one["load_seconds"] for one in runs),
        "peak_megabytes": statistics.median(one["peak_megabytes"] for one in runs),
        "bleu": subject.bleu(outputs),
        "same_tokens_as_pellucid_float32": statistics.mean(same) if same else None,
        "versions": runs[-1]["versions"],
    }


if __name__ == "__main__":
    main()
