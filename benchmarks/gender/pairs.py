"""The text of the study of *it*: lines to learn from, and minimal pairs to test.

The two sentences of a pair have the same words up to the predicate, which fits one of their two
nouns. The nouns have different French genders. So both translations begin alike, and the first word
in which they differ is the pronoun: *elles dormaient*, *ils étaient difficiles à ouvrir*.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pellucid.corpora import Example, make_split
from pellucid.corpora.pronouns import FRAMES
from pellucid.files import new_folder

LEAST_COUNT = 3
"""A word of the tests occurs so often in training, at least: others are unknown to the models."""


def write_text(text: Path, *, draws: int = 100_000, num_pairs: int = 2000) -> Path:
    """Write the lines of training and validation, and the pairs, unless they are there.

    Args:
        text: the folder.
        draws: sentences of the corpus to choose the lines of training from.
        num_pairs: minimal pairs to test.
    """
    if text.is_dir():
        return text
    train = [one for one in make_split("train", count=draws) if one.construction in FRAMES]
    validation = [one for one in make_split("validation", count=2000) if one.construction in FRAMES]
    known = _known_words(train)
    drawn = make_split("pronoun", count=22 * num_pairs)
    pairs = [
        pair
        for pair in zip(drawn[::2], drawn[1::2], strict=True)
        if is_minimal(*pair) and known.issuperset(_words(pair))
    ][:num_pairs]
    assert len(pairs) == num_pairs, f"only {len(pairs)} pairs"
    with new_folder(text) as part:
        (part / "corpus").mkdir()
        for name, examples in (("train", train), ("validation", validation[:60])):
            for side in ("source", "target"):
                ending = "en" if side == "source" else "fr"
                lines = "".join(f"{getattr(one, side)}\n" for one in examples)
                (part / "corpus" / f"{name}.{ending}").write_text(lines, "utf-8")
        rows = [[record_of(one) for one in pair] for pair in pairs]
        (part / "pairs.json").write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
    return text


def is_minimal(a: Example, b: Example) -> bool:
    """True if two sentences differ in predicate and gender only, and have equally many words."""
    if not a.construction.startswith("subject") or len(a.source.split()) != len(b.source.split()):
        return False
    first, second = a.pronouns[0], b.pronouns[0]
    pronouns = a.target.split()[first.target], b.target.split()[second.target]
    return first.source_antecedent != second.source_antecedent and pronouns[0] != pronouns[1]


def _known_words(train: Sequence[Example]) -> set[str]:
    counts = Counter(_words(train))
    return {word for word, count in counts.items() if count >= LEAST_COUNT}


def _words(examples: Sequence[Example]) -> list[str]:
    """List the words of both sides, without their marks."""
    return [
        word.strip(".!?\u202f")
        for one in examples
        for word in f"{one.source} {one.target}".split(" ")
    ]


def record_of(example: Example) -> dict[str, object]:
    """Keep a sentence with the places of its pronoun and its antecedent, in words from 0."""
    (pronoun,) = example.pronouns
    return {
        "source": example.source,
        "target": example.target,
        "construction": example.construction,
        "pronoun": pronoun.source,
        "antecedent": pronoun.source_antecedent,
        "target_pronoun": pronoun.target,
    }
