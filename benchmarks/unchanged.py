"""Outputs that a change of structure must not change: weights, translations, traces, printed text.

    python benchmarks/unchanged.py record build/before
    python benchmarks/unchanged.py record build/after
    python benchmarks/unchanged.py compare build/before build/after

Each recording takes about four minutes on two cores. Make both on one machine: the last digits of
floating-point sums depend on the processor. Everything runs as `pellucid COMMAND` in a separate
process, on the built-in corpus and the packaged model, so that code may move between the two.

- Training: 40 steps on each back end; the hash of the weights, and the metrics without times.
- Translating: 200 sentences, greedy, with a beam of 5, sampled and constrained, in each precision.
- Looking: `--everything` of five sentences, and a file of each other kind.
- Printing: standard output, standard error and exit code of a command of each kind, errors too.

`compare` prints the first lines that differ, and exits with 1 if any do. Files whose names end in
`.txt` hold words for people; all others must be equal byte for byte.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SMALL = ("training.max_steps=40", "training.validate_every=20", "training.log_every=10")

TRAININGS: dict[str, tuple[str, ...]] = {
    "kernels-float32": ("training.kernels='own'", "training.precision='float32'"),
    "kernels-bfloat16": ("training.kernels='own'", "training.precision='bfloat16'"),
    "pytorch-float32": (
        "training.kernels='pytorch'",
        "training.precision='float32'",
        "training.processes=1",
    ),
    "pytorch-bfloat16-in-rows": (
        "training.kernels='pytorch'",
        "training.precision='bfloat16'",
        "training.processes=1",
    ),
    "pytorch-two-processes": ("training.kernels='pytorch'", "training.processes=2"),
    "pytorch-guided-head": (
        "training.kernels='pytorch'",
        "data.train_alignments=['train.align']",
        "training.guided_head=decoder.1.cross.0",
        "training.dropout=0.1",
    ),
    "kernels-everything": (
        "training.optimizer='muon'",
        "training.r_drop=1.0",
        "training.averaging='running'",
        "training.accumulate=2",
        "training.dropout=0.1",
        "training.attention_dropout=0.1",
        "training.token_dropout=0.1",
        "tokenizer.model_type='unigram'",
        "tokenizer.vocabulary_size=1000",
        "training.subword_samples=8",
        "training.max_gradient_norm=1.0",
    ),
}
"""Settings of each training."""

DECODINGS: dict[str, tuple[str, ...]] = {
    "greedy": ("--beam", "1", "--json"),
    "beam": ("--beam", "5", "--n-best", "3"),
    "beam-json": ("--beam", "5", "--json"),
    "sampled": (
        *("--sample", "--json", "--set", "decoding.temperature=0.8"),
        *("--set", "decoding.top_k=12", "--set", "decoding.seed=7"),
    ),
    "constrained": ("--beam", "4", "--require", "le", "--forbid", "une", "--json"),
    "strict": ("--beam", "4", "--set", "decoding.strict=true", "--json"),
    "bfloat16": ("--precision", "bfloat16", "--json"),
    "int8": ("--precision", "int8", "--json"),
    "ensemble": ("--ensemble", "demo", "--json"),
}
"""Options of each way to translate."""

SENTENCES = (
    "The pizza came out of the oven and it tasted good .",
    "The money is in the bank .",
    "Not on your life !",
    "The European area is here .",
    "Good",
)

PRINTED: dict[str, tuple[str, ...]] = {
    "help": ("--help",),
    "version": ("--version",),
    "inspect": ("inspect", "demo"),
    "inspect-json": ("inspect", "demo", "--json"),
    "inspect-nothing": ("inspect", "nowhere"),
    "score": ("score", "demo", "--source", "{test}.en", "--target", "{test}.fr", "--json"),
    "score-tokens": ("score", "demo", "--source", "{test}.en", "--target", "{test}.fr", "--tokens"),
    "evaluate": ("evaluate", "--hypothesis", "{test}.fr", "--reference", "{test}.fr", "--json"),
    "evaluate-model": ("evaluate", "demo", "--source", "{test}.en", "--reference", "{test}.fr"),
    "align": ("align", "demo", "--source", "{test}.en", "--target", "{test}.fr"),
    "align-gold": (
        *("align", "demo", "--source", "{test}.en", "--target", "{test}.fr"),
        *("--gold", "{test}.align", "--json"),
    ),
    "look": ("look", "demo", SENTENCES[0]),
    "look-row": ("look", "demo", SENTENCES[0], "--row", "3", "--show", "verify"),
    "look-heads": ("look", "demo", SENTENCES[0], "--show", "heads"),
    "look-change": ("look", "demo", SENTENCES[0], "--change", "cut decoder.1.cross.0"),
    "look-measure": ("look", "demo", SENTENCES[0], "--measure", "alti"),
    "look-trust": ("look", "demo", SENTENCES[0], "--show", "trust", "--measure", "weights"),
    "why": ("why", "demo", SENTENCES[0], "elle", "--not", "il"),
    "look-lens": ("look", "demo", SENTENCES[0], "--show", "lens"),
    "look-compare": ("look", "demo", SENTENCES[0], "--compare-text", SENTENCES[1]),
    "look-words": (
        *("look", "demo", SENTENCES[0], "--row", "2", "--show", "words"),
        *("--head", "decoder.0.self"),
    ),
    "look-no-such-head": ("look", "demo", SENTENCES[0], "--head", "decoder.99"),
    "attend": ("attend", "pizza"),
    "attend-json": ("attend", "not-on-your-life", "--json"),
    "attend-lets-go": ("attend", "lets-go"),
    "attend-money": ("attend", "show-me-the-money"),
    "attend-unknown": ("attend", "pizzza"),
    "export": ("export", "demo", "--format", "marian", "-o", "{out}/marian"),
    "convert": ("convert", "{out}/marian", "-o", "{out}/converted"),
    "translate-wrong-option": ("translate", "demo", "--beam", "0"),
    "train-unknown-key": ("train", "tiny-en-fr", "--set", "training.lerning_rate=1"),
    "check": ("check", "{recipe}"),
    "no-command": ("trian",),
}
"""Commands whose output is recorded."""

TIMES = re.compile(
    r"[\d,.]+ (tokens/s|min|minutes|seconds|s|h|GiB|MiB|MB|GB)\b|\"seconds\": [\d.]+"
)
"""Times and sizes, which differ between two runs of the same code."""


def record(out: Path) -> None:
    """Run everything, and write the results into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    out = out.resolve()
    _run("corpus", "-o", str(out / "corpus"))
    test = out / "two-hundred"
    for suffix in ("en", "fr", "align"):
        lines = (out / "corpus" / f"test.{suffix}").read_text().splitlines()[:200]
        test.with_suffix(f".{suffix}").write_text("\n".join(lines) + "\n")
    recipe = out / "recipe.toml"
    recipe.write_text(
        (Path(__file__).parents[1] / "src/pellucid/recipes/tiny-en-fr.toml").read_text()
    )
    # Subwords: all that the recipe says of whole words and of word links is left out.
    words = re.compile(
        r'^(kind = "words"|min_word_count|train_alignments|guided_).*\n', re.MULTILINE
    )
    subwords = out / "subwords.toml"
    subwords.write_text(words.sub("", recipe.read_text()))
    for name, settings in TRAININGS.items():
        has_subwords = any(one.startswith("tokenizer.") for one in settings)
        _record_training(out, name, subwords if has_subwords else recipe, (*SMALL, *settings))
    for name, options in DECODINGS.items():
        result = out / f"translated-{name}.jsonl"
        _run("translate", "demo", "-i", f"{test}.en", "-o", str(result), *options)
        print(result.name)
    for number, sentence in enumerate(SENTENCES):
        path = out / f"trace-{number}.npz"
        _run("look", "demo", sentence, "--everything", "-o", str(path), "--overwrite")
    for suffix in ("html", "svg", "png", "json"):
        picture = out / f"look.{suffix}"
        _run("look", "demo", SENTENCES[0], "-o", str(picture), "--overwrite")
    names = {"test": str(test), "out": str(out), "recipe": str(recipe)}
    for name, command in PRINTED.items():
        done = _run(*(word.format(**names) for word in command), is_fine=False)
        said = f"exit code {done.returncode}\n{done.stdout}\n--- standard error\n{done.stderr}"
        said = TIMES.sub("TIME", said.replace(str(out), "OUT"))
        (out / f"printed-{name}.txt").write_text(said)
        print(f"printed-{name}")


def _record_training(out: Path, name: str, recipe: Path, settings: tuple[str, ...]) -> None:
    run = out / "runs" / name
    options = [word for setting in settings for word in ("--set", setting)]
    _run("train", str(recipe), "-o", str(run), *options)
    newest = max((run / "checkpoints").iterdir())
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found = {
        "weights": _hash(newest / "model.safetensors"),
        "best": _hash(run / "bundle" / "model.safetensors"),
        "metrics": [{k: v for k, v in entry.items() if k != "seconds"} for entry in metrics],
    }
    (out / f"trained-{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    log = re.sub(r"^\d\d\d\d-\d\d-\d\d \S+", "DATE", (run / "log.txt").read_text(), flags=re.M)
    (out / f"log-{name}.txt").write_text(TIMES.sub("TIME", log.replace(str(out), "OUT")))
    print(f"trained-{name}", found["weights"][:16])


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(*arguments: str, is_fine: bool = True) -> subprocess.CompletedProcess[str]:
    # Threads that wait without spinning: other work on the machine must not make this slower.
    environment = os.environ | {
        "COLUMNS": "100",
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "passive",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pellucid", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if is_fine and done.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return done


def compare(before: Path, after: Path) -> int:
    """Print what differs between two recordings; return 1 if anything does."""
    names = sorted({path.name for folder in (before, after) for path in _results(folder)})
    different = [name for name in names if _read(before / name) != _read(after / name)]
    for name in different:
        print(f"\nDIFFERENT: {name}")
        old, new = (_read(folder / name) for folder in (before, after))
        if old is None or new is None or name.endswith((".npz", ".png")):
            print("  not in both" if old is None or new is None else "  other bytes")
            continue
        texts = (text.decode(errors="replace").splitlines() for text in (old, new))
        lines = list(difflib.unified_diff(*texts, lineterm="", n=0))[2:]
        print("\n".join(f"  {line[:160]}" for line in lines[:40]))
    hard = [name for name in different if not name.endswith(".txt")]
    print(
        f"\n{len(names)} results, {len(different)} different, of which {len(hard)} are not words: "
        f"{', '.join(hard) or 'none'}"
    )
    return int(bool(different))


def _results(folder: Path) -> Iterator[Path]:
    wanted = ("trained-*", "log-*", "translated-*", "trace-*", "look.*", "printed-*")
    return (path for pattern in wanted for path in folder.glob(pattern) if path.is_file())


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record").add_argument("folder", type=Path)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        return compare(given.before, given.after)
    record(given.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
