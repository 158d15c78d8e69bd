"""Variants of the Transformer, trained on the built-in corpus: quality, also beyond training.

    OMP_NUM_THREADS=1 python benchmarks/variants.py --folder runs/variants

The text is a part of the corpus that a small model learns in a minute: sentences with a pronoun
whose antecedent decides its gender, of the most frequent words. A line of training has one or two
of them. Tests have one to four, so lines of three and four are longer than anything that was
trained, without a new construction. Each variant is trained with three seeds, the same number of
updates, and PyTorch's operations; variants of one seed read the same lines in the same order.

Each run is a cell in its own folder. A finished one is kept, so the same command continues.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from side_by_side.results import write_result

import pellucid
from pellucid.config import load_recipe
from pellucid.corpora import make_split
from pellucid.evaluation.corpus_scores import corpus_bleu_score
from pellucid.files import new_folder
from pellucid.training.loop import train
from pellucid.training.start.found_recipe import find_recipe

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
CONSTRUCTIONS = ("subject pronoun, place", "object pronoun")
NUM_WORDS = 160
IN_TRAINING = (1, 2)
"""Sentences of a line."""
TESTS = (1, 2, 3, 4)
Pair = tuple[str, str]


def main() -> None:
    """Train and test every cell that is not done, and write the results of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/variants"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--sentences", type=int, default=60_000, help="sentences to choose from")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    torch.set_num_threads(1)
    text = write_text(given.folder / "text", given.sentences)
    rows = []
    for seed in given.seeds:
        for name in given.variants:
            cell = given.folder / f"{name.replace(' ', '-')}-{seed}"
            file = cell / "cell.json"
            if not file.is_file():
                found = _train_and_test(text, cell, VARIANTS[name], seed, given.steps)
                file.write_text(json.dumps({"variant": name, "seed": seed, **found}))
            rows.append(json.loads(file.read_text()))
            print(json.dumps(rows[-1]), flush=True)
    lengths = json.loads((text / "lengths.json").read_text())
    write_result("variants", {"steps": given.steps, **lengths, "rows": rows}, (), given.out)


def _train_and_test(
    text: Path, cell: Path, changes: Sequence[str], seed: int, steps: int
) -> dict[str, Any]:
    recipe = load_recipe(
        find_recipe("tiny-en-fr")[0],
        (
            *(f"training.seed={seed}", f"training.max_steps={steps}"),
            *(f"training.validate_every={steps}", "training.kernels=pytorch"),
            *("training.processes=1", "training.score_penalty=0", "training.guided_head="),
            *("data.train_alignments=[]", "training.max_tokens_per_batch=800"),
            *("training.warmup_steps=40", "model.d_model=64", *changes),
            *(() if any("d_ff" in one for one in changes) else (f"model.d_ff={WIDTH}",)),
        ),
    )
    train(recipe, cell, recipe_folder=text)
    translator = pellucid.load(cell, precision="float32")
    right, bleu = {}, {}
    for size in TESTS:
        sides = (text / "corpus" / f"test-{size}.{side}" for side in ("en", "fr"))
        sources, wanted = (side.read_text("utf-8").splitlines() for side in sides)
        found = [one.text for one in translator.translate(sources, split="none")]
        right[size], bleu[size] = share_right(found, wanted), corpus_bleu_score(found, wanted)
    return {
        "right": right,
        "bleu": bleu,
        "weights": sum(one.numel() for one in translator.bundle.model.parameters()),
    }


def write_text(text: Path, count: int) -> Path:
    """Write the text of all cells, unless it is there."""
    if text.is_dir():
        return text
    drawn = {
        name: [
            (one.source, one.target)
            for one in make_split(name, seed=1, count=number)
            if one.construction in CONSTRUCTIONS and one.source[-1] in ".!?"
        ]
        for name, number in (("train", count), ("validation", 4000), ("test", 8000))
    }
    counts = Counter(word for source, _ in drawn["train"] for word in _words(source))
    common = {word for word, _ in counts.most_common(NUM_WORDS)}
    kept = {
        name: [pair for pair in pairs if common.issuperset(_words(pair[0]))]
        for name, pairs in drawn.items()
    }
    lines = {
        "train": join(kept["train"], IN_TRAINING),
        "validation": join(kept["validation"], IN_TRAINING)[:60],
        **{f"test-{size}": join(kept["test"], (size,)) for size in TESTS},
    }
    with new_folder(text) as part:
        (part / "corpus").mkdir()
        for name, pairs in lines.items():
            for side, ending in enumerate(("en", "fr")):
                written = "".join(f"{pair[side]}\n" for pair in pairs)
                (part / "corpus" / f"{name}.{ending}").write_text(written, "utf-8")
        words = {
            name: [size(len(one.split()) for one, _ in pairs) for size in (min, max)]
            for name, pairs in lines.items()
        }
        sizes = {name: len(pairs) for name, pairs in lines.items()}
        (part / "lengths.json").write_text(json.dumps({"lines": sizes, "words": words}))
    return text


def _words(line: str) -> list[str]:
    return re.findall(r"[\w']+|[.!?]", line.lower())


def join(pairs: Sequence[Pair], sizes: Sequence[int]) -> list[Pair]:
    """Make lines of so many sentences, each size as often as the others."""
    lines, start = [], 0
    while start + max(sizes) <= len(pairs):
        some = pairs[start : start + sizes[len(lines) % len(sizes)]]
        start += len(some)
        source, target = (" ".join(side) for side in zip(*some, strict=True))
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
