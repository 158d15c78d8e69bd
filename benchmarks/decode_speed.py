"""Decoding speed next to Hugging Face `generate` and CTranslate2: same weights, same sentences.

    python benchmarks/decode_speed.py --setup
    MULTI30K=DIR python benchmarks/decode_speed.py --model runs/multi30k-en-fr
    python benchmarks/decode_speed.py --models small --settings large-greedy --repetitions 1

The first line makes the peers' environments; the last takes about two minutes. Every run is a
separate process in its system's environment, and times one pass over the sentences after loading
and a warm-up: token ids in, ids out. Systems take turns, so that noise hits all of them alike.
Before that, each system tries its batch sizes (CTranslate2 also workers and threads, Hugging Face
its two kinds of attention) on fewer sentences, and keeps the best. A bias makes ``</s>``
unreachable, so that every system writes exactly 24 target tokens without paying for an option;
--minimum-length uses each system's option as well.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class Setting:
    """One way to translate.

    Attributes:
        name: its name in results.
        beam: 1 for greedy.
        batches: numbers of sentences at once; a system takes what suits it best.
        num_sentences: number of the subject's sentences that are translated.
    """

    name: str
    beam: int
    batches: tuple[int, ...]
    num_sentences: int


def main() -> None:
    """Measure what was asked for, print it, and write the result file."""
    arguments = parse()
    if arguments.setup:
        set_up(arguments.folder, PEERS)
        return
    require(arguments.folder, [peer for peer in PEERS if peer in arguments.systems])
    lend_ctranslate2(arguments.folder)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    systems = [
        (system, precision)
        for system in arguments.systems
        for precision in PRECISIONS[system]
        if precision in arguments.precisions
    ]
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        arguments.scratch = Path(folder)
        for name in [*arguments.models, *(["trained"] if arguments.model else [])]:
            results[name] = measure_subject(name, systems, arguments)
            print_subject(name, results[name], arguments.precisions)
    write_result("decode-speed", {"models": results}, PEERS, arguments.out)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, several = parser.add_argument, {"nargs": "*"}
    add("--setup", action="store_true", help="only make the peers' environments")
    add("--folder", type=Path, default=Path("build/peers"), help="where they are")
    add("--models", default=["small", "base"], choices=["small", "base"], **several)
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
    arguments = parser.parse_args()
    if (arguments.source is None) != (arguments.reference is None):
        parser.error("--source and --reference must be given together")
    if arguments.model and not arguments.source and "MULTI30K" not in os.environ:
        parser.error("MULTI30K must be set to the folder of Multi30k, or --source given")
    return arguments


def measure_subject(
    name: str, systems: list[tuple[str, str]], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Measure all systems in all settings with one model."""
    from decode_peers.subjects import random_subject, trained_subject

    folder = arguments.scratch
    if name == "trained":
        files = (arguments.source, arguments.reference)
        subject = trained_subject(arguments.model, files, arguments.lines, folder, systems)
    else:
        subject = random_subject(name, arguments.sentences, folder, systems)
    result: dict[str, Any] = {"title": subject.title, "settings": {}}
    for setting in settings_of(len(subject.sentences), arguments):
        measured = measure_setting(subject, setting, systems, arguments)
        result["settings"][setting.name] = {
            "beam": setting.beam,
            "sentences": setting.num_sentences,
            "systems": measured,
            "ratios": ratios(name, setting.name, measured),
        }
    return result


def settings_of(num_sentences: int, arguments: argparse.Namespace) -> list[Setting]:
    """Return the settings that were asked for."""
    return [
        Setting(
            name,
            arguments.beam if name.endswith("beam") else 1,
            (1,) if name.startswith("single") else tuple(arguments.batches),
            min(arguments.single, num_sentences) if name.startswith("single") else num_sentences,
        )
        for name in arguments.settings
    ]


def measure_setting(
    subject: Any,
    setting: Setting,
    systems: list[tuple[str, str]],
    arguments: argparse.Namespace,
) -> dict[str, dict[str, Any]]:
    """Let every system find its best variant, then run all in turn, several times."""
    sentences = subject.sentences[: setting.num_sentences]
    few = sentences[: max(TRIED, 2 * max(setting.batches))]
    variants = {}
    for system in systems:
        choices = variants_of(system[0], setting)
        seconds = [
            run(system, choice, subject, setting.beam, few, arguments)["seconds"]
            for choice in choices
            if len(choices) > 1
        ]
        variants[system] = choices[seconds.index(min(seconds)) if seconds else 0]
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {system: [] for system in systems}
    for _ in range(arguments.repetitions):
        for system in systems:
            done = run(system, variants[system], subject, setting.beam, sentences, arguments)
            runs[system].append(done)
    outputs = {system: subject.ids_of(runs[system][-1]["outputs"]) for system in systems}
    compared = outputs.get(("pellucid", "float32"))
    return {
        " ".join(system): {
            "variant": variants[system],
            **summarize(subject, runs[system], outputs[system], compared),
        }
        for system in systems
    }


def variants_of(system: str, setting: Setting) -> list[dict[str, Any]]:
    """List what a system may choose from."""
    cores = os.cpu_count() or 1
    # One sentence at a time is the case of a user at a keyboard, whom workers would not help.
    crowds = {1, cores} if max(setting.batches) > 1 else {1}
    choices: dict[str, list[dict[str, Any]]] = {
        "pellucid": [{"workers": workers} for workers in sorted(crowds)],
        "hugging_face": [{"attention": "sdpa"}, {"attention": "eager"}],
        "ctranslate2": [{"workers": 1, "threads": cores}, {"workers": cores, "threads": 1}],
    }
    return [{"batch": batch, **choice} for batch in setting.batches for choice in choices[system]]


def run(
    system: tuple[str, str],
    variant: dict[str, Any],
    subject: Any,
    beam: int,
    sentences: list[dict[str, Any]],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Run one system once, in a separate process."""
    name, precision = system
    work = {
        "model": str(subject.folders[system]),
        "precision": precision,
        "beam": beam,
        "stopping": arguments.stopping,
        "use_minimum_length": arguments.minimum_length and subject.is_fixed,
        "sentences": sentences,
        **variant,
    }
    python = sys.executable if name == "pellucid" else python_of(arguments.folder, name)
    found = run_script(python, SCRIPTS / f"run_{name}.py", work, arguments.scratch)
    print(
        f"{subject.name}, beam {beam}: {name} {precision} {variant} "
        f"{sum(map(len, found['outputs'])) / found['seconds']:,.0f} tokens/s",
        file=sys.stderr,
        flush=True,
    )
    return found


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
