"""A training small enough for a test: its text, its recipe, and readers of its files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from pellucid.config import Recipe, validate

Changes = dict[str, dict[str, Any]]

NUM_WORDS = 14
SOURCE_TEXT = "the a small big red dog cat man sees finds eats runs on in park house"
TARGET_TEXT = "le un petit grand rouge chien chat homme voit trouve mange court sur dans parc"


NO_REPORT = (
    "from pellucid.training.report import report_page\nreport_page.write_report = lambda run: None"
)
"""A program that begins so trains without a report, which takes longer than a small training."""


def write_text(folder: Path) -> None:
    """Write two small parallel texts, in which each word has one translation, and their links."""
    numbers = random.Random(5)
    for name, count in (("train", 400), ("validation", 30)):
        rows = [
            [numbers.randrange(NUM_WORDS) for _ in range(numbers.randint(2, 9))]
            for _ in range(count)
        ]
        for suffix, words in (("en", SOURCE_TEXT.split()), ("fr", TARGET_TEXT.split())):
            lines = [" ".join(words[index] for index in row) for row in rows]
            (folder / f"{name}.{suffix}").write_text("\n".join(lines) + "\n")
        links = [" ".join(f"{place}-{place}" for place in range(len(row))) for row in rows]
        (folder / f"{name}.align").write_text("\n".join(links) + "\n")


def make_recipe(**changes: dict[str, Any]) -> Recipe:
    values: Changes = {
        "data": {
            "train": ["train.en", "train.fr"],
            "validation": ["validation.en", "validation.fr"],
        },
        "tokenizer": {"vocabulary_size": 350},
        "model": {
            "d_model": 16,
            "d_ff": 32,
            "num_heads": 2,
            "num_encoder_layers": 1,
            "num_decoder_layers": 1,
        },
        "training": {
            "max_tokens_per_batch": 400,
            "warmup_steps": 10,
            "dropout": 0.1,
            "max_steps": 23,
            "validate_every": 10,
            "log_every": 5,
        },
    }
    for section, entries in changes.items():
        values[section] = values.get(section, {}) | entries
    return validate(Recipe, values, "test")


def model_bytes(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def read_metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
