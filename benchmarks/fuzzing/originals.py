"""Whole inputs that mutations begin with: text, recipes, bundles, runs and imported models."""

from __future__ import annotations

import importlib
import json
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["RECIPES", "make_originals"]

TESTS = Path(__file__).parents[2] / "tests"
ENGLISH = "the a small big red dog cat man sees finds eats runs on in park house"
FRENCH = "le un petit grand rouge chien chat homme voit trouve mange court sur dans parc lieu"

RECIPE = """\
[data]
train = ["train.en", "train.fr"]
validation = ["validation.en", "validation.fr"]
source_language = "en"
target_language = "fr"

[tokenizer]
kind = "sentencepiece"
vocabulary_size = 330
sharing = "joint"

[model]
d_model = 16
d_ff = 32
num_heads = 2
num_encoder_layers = 1
num_decoder_layers = 1

[training]
max_tokens_per_batch = 400
warmup_steps = 2
learning_rate = 0.01
max_steps = 3
validate_every = 2
log_every = 1
validation_samples = 2
device = "cpu"
dropout = 0.1
seed = 1

[decoding]
beam = 1
max_length_ratio = 2.0
max_length_offset = 3
"""

OWN_TOML = """\
tokens = ["Pizza", "is", "awesome"]
x = [[0.1, 2.13], [0.11, 2.13], [0.21, 3.13]]
w_query = [[0.78, 2.0], [0.9, 1.7]]
w_key = [[1, 0], [0, 1]]
w_value = [[1, 2, 3], [4, 5, 6]]
mask = "causal"
scale = true
"""
OWN_KEYS = """\
query = [[1, 0, 1]]
key = [[2, 0, 2], [0, 3, 0]]
value = [[10], [20]]
tokens = ["asks"]
key_tokens = ["left", "right"]
mask = [[true, false]]
scale = false
"""
OWN_CSV = "a,b,c\n1,2,0.5\n3,4,1e-3\n-5,6,7\n"

RECIPES = {
    "subwords": RECIPE,
    "words": RECIPE.replace('"sentencepiece"', '"words"'),
    "separate": RECIPE.replace('"joint"', '"separate"\nmodel_type = "unigram"')
    .replace("[model]", '[model]\ntied_embeddings = "none"')
    .replace("330", "280"),
}


def make_originals(folder: Path, run: Callable[..., None]) -> None:
    """Write every whole input into a folder.

    Args:
        folder: an empty folder.
        run: runs one command of pellucid in a folder, and raises an error if it fails.
    """
    text = folder / "text"
    text.mkdir()
    _write_text(text)
    for name, recipe in RECIPES.items():
        shutil.copytree(text, folder / name)
        (folder / name / "recipe.toml").write_text(recipe)
        run(["train", "recipe.toml", "-o", "run"], folder / name)
    (folder / "attend").mkdir()
    for name, content in (("x.toml", OWN_TOML), ("keys.toml", OWN_KEYS), ("x.csv", OWN_CSV)):
        (folder / "attend" / name).write_text(content)
    archive = TESTS / "parity" / "marian_archive"
    shutil.copytree(archive, folder / "marian", ignore=shutil.ignore_patterns("*.py", "scores*"))
    _write_hugging_face(folder / "hugging_face")


def _write_text(folder: Path) -> None:
    dice = random.Random(5)
    for name, count in (("train", 60), ("validation", 5)):
        rows = [[dice.randrange(16) for _ in range(dice.randint(2, 9))] for _ in range(count)]
        english = [" ".join(ENGLISH.split()[index] for index in row) for row in rows]
        french = [" ".join(FRENCH.split()[index] for index in row) for row in rows]
        links = [" ".join(f"{place}-{place}" for place in range(len(row))) for row in rows]
        for ending, lines in (("en", english), ("fr", french), ("align", links)):
            (folder / f"{name}.{ending}").write_text("\n".join(lines) + "\n")
        pairs = list(zip(english, french, strict=True))
        (folder / f"{name}.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in pairs))
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps({"source": one, "target": two}) + "\n" for one, two in pairs)
        )
    (folder / "glossary.tsv").write_text("dog\tchien\nred cat\tchat rouge\n")
    (folder / "require.txt").write_text("chien\n\nchat\tgrand\n\n\n")


def _write_hugging_face(folder: Path) -> None:
    """Write a random model as Hugging Face's tools do, which they must be installed for."""
    sys.path.insert(0, str(TESTS / "shared"))
    try:
        importlib.import_module("small_marian").write_theirs(folder)
    finally:
        sys.path.pop(0)
