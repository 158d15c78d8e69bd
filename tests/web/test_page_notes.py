"""The page prepares a line as `pellucid translate` does, and says what is unusual about it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from page_in_node import compare

import pellucid
from pellucid.inside.show.model_page import carry_model
from pellucid.text.cleaning import character_name
from pellucid.text.learned import length_bound
from pellucid.text.outside import close_words
from pellucid.text.tokenizers.tokenizer import SPECIAL_TOKENS
from pellucid.text.tokenizers.whole_words import without_joiner
from pellucid.translate.judging import repeats
from pellucid.translate.records import line_notes

LINES = (
    "The pizza is good.",
    "The pizza is good. ",
    "  The pizza is good.",
    "\tThe pizza is good.\t",
    "The pizza\xa0",
    "\xa0The pizza is good.\u3000",
    "\u2003The\tpizza  is\xa0 good .\u200b",
    "\x85The\x1cpizza",
    "The\u200bpizza is\xadgood.",
    "\ufeffThe pizza is good.",
    "\u200fThe pizza\u200e is good.",
    "The pizza isn’t good…",
    "It is “good” – or not — «yes».",
    "Ｔｈｅ ｐｉｚｚａ is ①good½.",
    "cafe\u0301 café",
    "The 😀 is good",
    "The 中文 pizza",
    "Straße ﬁne",
    "a\u0301\u0301b",
    "K is not \u212a",
    "A\u180eB",
    "THE PIZZA IS GOOD.",
    'The "pizza" is good.',
    '"The pizza" and zebra(pizza)',
    "THE DOG ATE THE SOUP AND the cat",
    " ".join(f"zebra{number}" for number in range(12)),
    "Café\u2019s L\u0130ON stra\u00dfe ''x''",
    "(The cat)",
    "the dog",
    "Kitten zebra dogs.",
    "zebra zebra",
    "7",
    "7 8 9.",
    "?",
    "good good good good good good",
    "The The The The The The The",
    "The little dog ate the soup because it was hungry and the cat ate the pizza because "
    "it was good and the baby ate the cake because it was cold.",
    "word " * 100,
    "don't well-known",
    "x\u200dy",
    "“",
    "‘The’ `cat´",
    "ﷺ",
    "A\tB",
    "e-mail e‑mail e‐mail",
)


def write_notes(model: str, file: Path) -> Path:
    """Write a model, lines, and what the package finds of them."""
    translator = pellucid.load(model)
    lines: list[dict[str, Any]] = []
    for line in LINES:
        options: dict[str, Any] = {"beam": 1, "split": "none", "precision": "float32"}
        (found,) = translator.translate([line], **options)
        assert found.error is None, (line, found.error)
        notes = found.notes
        lines.append(
            {
                "line": line,
                # The package puts direction marks around its translation again.
                "text": found.text.strip().strip("\u200e\u200f"),
                "flags": notes.flags,
                "words": line_notes(translator, line)["words"],
                "changed": list(map(character_name, {**notes.replaced, **notes.dropped})),
                "unknown": list(map(character_name, notes.unknown)),
            }
        )
    draw = random.Random(5)
    sequences = []
    for _ in range(300):
        sides = [draw.choices(range(draw.randint(1, 4)), k=draw.randint(1, 30)) for _ in range(2)]
        bound = length_bound(len(sides[1]))
        found_repeats = repeats(*sides)
        sequences.append(
            {"source": sides[0], "target": sides[1], "repeats": found_repeats, "bound": bound}
        )
    known = set(map(without_joiner, translator.tokenizer.vocabulary("source")))
    vocabulary = sorted(known - set(SPECIAL_TOKENS))
    words = (
        "kitten",
        "Pizza",
        "PIZZA",
        "dogs",
        "oevn",
        "éclair",
        "x",
        "hungrier",
        "The",
        "gaod",
        "OVEN",
    )
    close = {word: close_words(word, vocabulary) for word in words}
    fixture = {
        "model": carry_model(translator.bundle),
        "lines": lines,
        "sequences": sequences,
        "vocabulary": vocabulary,
        "close": close,
    }
    file.write_text(json.dumps(fixture), encoding="utf-8")
    return file


def test_lines_are_prepared_and_judged_as_the_package_does(node: str, tmp_path: Path) -> None:
    names = ("demo", "demo-untrained")
    files = [write_notes(name, tmp_path / f"{name}.json") for name in names]
    flags = {flag for one in json.loads(files[1].read_text())["lines"] for flag in one["flags"]}
    assert {"repeats", "unfinished", "unsure", "stuck"} <= flags
    for found in compare(node, files, tmp_path, "notes"):
        assert not found["wrong"], "\n".join(found["wrong"])
