"""Training from text files solves an exact task on sequences that it has never seen."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import pellucid
from pellucid.config import Recipe, validate
from pellucid.training.loop import train

LETTERS = "abcdefgh"
TASKS: dict[str, Callable[[list[str]], list[str]]] = {
    "reverse": lambda letters: letters[::-1],
    "sort": sorted,
}


def make_pairs(task: str, count: int) -> list[tuple[str, str]]:
    numbers = random.Random(7)
    sources: dict[str, None] = {}
    while len(sources) < count:
        # Sequences of one letter are so few that training would hold those of the test.
        length = numbers.randint(2, 5)
        sources[" ".join(numbers.choice(LETTERS) for _ in range(length))] = None
    return [(source, " ".join(TASKS[task](source.split()))) for source in sources]


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> None:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))


@pytest.mark.sample(task="reverse")
@pytest.mark.parametrize("task", sorted(TASKS))
def test_training_on_a_toy_task_solves_unseen_sequences(task: str, tmp_path: Path) -> None:
    pairs = make_pairs(task, 3300)
    test, validation, training = pairs[:200], pairs[200:220], pairs[220:]
    write_pairs(tmp_path / "train.tsv", training)
    write_pairs(tmp_path / "validation.tsv", validation)
    recipe = validate(
        Recipe,
        {
            "data": {"train": "train.tsv", "validation": "validation.tsv"},
            "tokenizer": {"kind": "words"},
            "model": {
                "d_model": 48,
                "d_ff": 96,
                "num_heads": 4,
                "num_encoder_layers": 2,
                "num_decoder_layers": 2,
            },
            "training": {
                "max_tokens_per_batch": 500,
                "learning_rate": 0.005,
                "warmup_steps": 50,
                "schedule": "linear",
                "dropout": 0.0,
                "label_smoothing": 0.0,
                "max_steps": 400,
                "validate_every": 400,
            },
        },
        "test",
    )
    summary = train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    translator = pellucid.load(summary.bundle)
    translations = translator.translate([source for source, _ in test])
    num_right = sum(
        translation.text == target
        for translation, (_, target) in zip(translations, test, strict=True)
    )
    assert num_right >= 0.99 * len(test), f"{task}: {num_right} of {len(test)} right"
