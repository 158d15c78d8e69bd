"""Variants of the Transformer, trained on the built-in corpus: quality, also beyond training.

    OMP_NUM_THREADS=1 python benchmarks/variants.py --folder runs/variants

Each variant is trained with three seeds, on a part of the demo's text, with a smaller model, fewer
updates and PyTorch's operations. A seed decides text, first weights and order, so variants of one
seed read the same. A line of training has one or two sentences, and at most `LONGEST` words. Tests
have lines of that length, and longer ones of two to four such sentences: longer than anything that
was trained, without a new construction.

Each run is a cell in its own folder. A finished one is kept, so the same command continues.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from side_by_side.results import write_result

import pellucid
from pellucid.cli.recipes import find_recipe
from pellucid.config import load_recipe
from pellucid.corpora import SplitName, make_split
from pellucid.evaluate.corpus import corpus_bleu_score
from pellucid.files import new_folder
from pellucid.machine.randomness import generator
from pellucid.train.loop import train

WIDTH = 96
VARIANTS: dict[str, tuple[str, ...]] = {
    "sinusoidal": (),
    "rotary": ("model.positions=rotary",),
    "alibi": ("model.positions=alibi",),
    "relative": ("model.positions=relative", "model.max_relative_distance=16"),
    "RMS norm": ("model.norm_kind=rms",),
    # Three matrices of two thirds of the width have as many weights as two.
    "gated": ("model.gated_feed_forward=true", f"model.d_ff={WIDTH * 2 // 3}"),
    "two heads of keys": ("model.num_key_value_heads=2",),
}
LONGEST = 14
"""Words of the longest source line in training."""
LENGTHS = {"1 to 7": (1, 7), "8 to 14": (8, 14), "15 to 21": (15, 21), "22 to 28": (22, 28)}
"""Words of the source lines of each test."""
Pair = tuple[str, str]


def main() -> None:
    """Train and test every cell that is not done, and write the results of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/variants"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=450)
    parser.add_argument("--lines", type=int, default=100, help="lines of each test")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for seed in given.seeds:
        for name in given.variants:
            cell = given.folder / f"{name.replace(' ', '-')}-{seed}"
            file = cell / f"cell-{given.lines}.json"
            if not file.is_file():
                found = _train_and_test(cell, VARIANTS[name], seed, given.steps, given.lines)
                file.write_text(json.dumps({"variant": name, "seed": seed, **found}))
            rows.append(json.loads(file.read_text()))
            print(json.dumps(rows[-1]), flush=True)
    found = {"steps": given.steps, "longest_in_training": LONGEST, "rows": rows}
    write_result("variants", found, (), given.out)


def _train_and_test(
    cell: Path, changes: Sequence[str], seed: int, steps: int, num_lines: int
) -> dict[str, Any]:
    recipe = load_recipe(
        find_recipe("demo")[0],
        (
            *(f"training.seed={seed}", f"training.max_steps={steps}"),
            *(f"training.validate_every={steps}", "training.kernels=pytorch"),
            *("training.processes=1", "training.score_penalty=0", "training.guided_head=[]"),
            *("data.train_alignments=[]", "training.max_tokens_per_batch=600"),
            *("training.warmup_steps=60", "model.d_model=48", f"model.d_ff={WIDTH}", *changes),
        ),
    )
    text = _text(cell.parent, seed)
    started = time.process_time()
    train(recipe, cell, recipe_folder=text)
    seconds = time.process_time() - started
    translator = pellucid.load(cell, precision="float32")
    tests = {"pronoun": _whole("pronoun", seed, num_lines)}
    for name, (low, high) in LENGTHS.items():
        lines = join(_whole("test", seed, 20 * num_lines), seed, (low, high))
        tests[name] = lines[:num_lines]
        assert len(tests[name]) == num_lines, name
    right, bleu = {}, {}
    for name, pairs in tests.items():
        found = [one.text for one in translator.translate([source for source, _ in pairs])]
        wanted = [target for _, target in pairs]
        right[name] = share_right(found, wanted)
        bleu[name] = corpus_bleu_score(found, wanted)
    return {
        "right": right,
        "bleu": bleu,
        "weights": sum(one.numel() for one in translator.own_bundle.model.parameters()),
        "seconds": round(seconds, 1),
    }


def _text(folder: Path, seed: int) -> Path:
    """Write the text of one seed, unless it is there, and return the folder of its corpus."""
    text = folder / f"text-{seed}"
    if not text.is_dir():
        with new_folder(text) as part:
            (part / "corpus").mkdir()
            for name, count in (("train", 12_000), ("validation", 100)):
                pairs = join(_whole(name, seed, count), seed, (1, LONGEST))
                for side, ending in enumerate(("en", "fr")):
                    written = "".join(f"{pair[side]}\n" for pair in pairs)
                    (part / "corpus" / f"{name}.{ending}").write_text(written, "utf-8")
    return text


def _whole(split: SplitName, seed: int, count: int) -> list[Pair]:
    """Draw sentences that end in a mark, so that a line can hold several, and fit into a line."""
    drawn = make_split(split, seed=seed, count=3 * count)
    pairs = [(one.source, one.target) for one in drawn if one.source[-1] in ".!?"]
    pairs = [pair for pair in pairs if len(pair[0].split()) <= LONGEST]
    assert len(pairs) >= count
    return pairs[:count]


def join(pairs: Sequence[Pair], seed: int, limits: tuple[int, int]) -> list[Pair]:
    """Make lines of as many sentences as fit into a drawn number of words within the limits.

    A line that stays below the limits is left out.
    """
    numbers, lines, start = generator(seed, "words in a line", 0), [], 0
    while start < len(pairs):
        low, high = limits
        room, end = int(numbers.integers(low, high + 1)), start
        while end < len(pairs) and room >= len(pairs[end][0].split()):
            room -= len(pairs[end][0].split())
            end += 1
        some = pairs[start : max(end, start + 1)]
        start += len(some)
        source, target = (" ".join(side) for side in zip(*some, strict=True))
        if low <= len(source.split()) <= high:
            lines.append((source, target))
    return lines


def share_right(translations: Sequence[str], targets: Sequence[str]) -> float:
    """Compute the share of sentences that are translated exactly, each at its place in its line."""
    num_right = num_sentences = 0
    for translation, target in zip(translations, targets, strict=True):
        written, wanted = split(translation), split(target)
        num_right += sum(a == b for a, b in zip(written, wanted, strict=False))
        num_sentences += len(wanted)
    return num_right / num_sentences


def split(line: str) -> list[str]:
    """Cut a line after the marks that end its sentences."""
    return re.split(r"(?<=[.!?]) ", line)


if __name__ == "__main__":
    main()
