"""Similar texts of a memory: what is found, its difference, and that the time does not grow."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from rapidfuzz.distance import Levenshtein

from pellucid.cli.lines.translation_memory import LEAST, Memory
from pellucid.decode.constraints.terms import cut_words

WORDS = [f"w{number}" for number in range(300)]


def make(path: Path, texts: list[str]) -> Memory:
    path.write_text("".join(f"{one}\tT {one}\n" for one in texts))
    return Memory(str(path), ("en", "fr"))


@pytest.mark.parametrize(
    ("text", "found", "difference"),
    [
        ("A red cat sees it.", "A blue cat sees it.", "A [-blue-]{+red+} cat sees it."),
        ("A blue cat sees.", "A blue cat sees it.", "A blue cat sees[- it-]."),
        ("A blue cat sees it.", "A blue cat sees it.", "A blue cat sees it."),
        ("A red dog sees it.", "", ""),  # two of six words and signs
        ("cat", "", ""),
        ("", "", ""),
        ("我的红猫在这里", "我的蓝猫在这里", "我的[-蓝-]{+红+}猫在这里"),
    ],
)
def test_suggestion_differs_in_a_quarter_of_the_words_at_most(
    tmp_path: Path, text: str, found: str, difference: str
) -> None:
    memory = make(tmp_path / "m.tsv", ["A blue cat sees it.", "Hello", "我的蓝猫在这里"])
    suggestion = memory.suggest(text)
    if not found:
        assert suggestion is None
        return
    assert suggestion is not None
    assert (suggestion.source, suggestion.translation) == (found, f"T {found}")
    assert suggestion.difference == difference


def test_placeholder_is_one_unit_of_a_difference(tmp_path: Path) -> None:
    text = "The red cat of the man who lives in the old house near us sees {}."
    memory = make(tmp_path / "m.tsv", [text.format("%s"), text.format("it").replace("red", "blue")])
    suggestion = memory.suggest(text.format("%(name)s"))
    assert suggestion is not None
    assert suggestion.difference == text.format("[-%s-]{+%(name)s+}")


def test_suggestions_are_those_that_a_comparison_with_every_text_finds(tmp_path: Path) -> None:
    numbers = random.Random(7)
    texts = [" ".join(numbers.choices(WORDS[:12], k=numbers.randint(3, 9))) for _ in range(400)]
    memory = make(tmp_path / "m.tsv", texts)
    num_found = 0
    for text in texts[:200]:
        changed = text.split(" ")
        changed[numbers.randrange(len(changed))] = "new"
        words = [one for one in cut_words(" ".join(changed)) if one != " "]
        each = [one.split(" ") for one in memory.targets]
        best = max(Levenshtein.normalized_similarity(words, one) for one in each)
        suggestion = memory.suggest(" ".join(changed))
        assert (suggestion.similarity if suggestion else 0) == (best if best >= LEAST else 0)
        num_found += suggestion is not None
    assert num_found > 50


def test_time_of_a_suggestion_does_not_grow_with_the_memory(tmp_path: Path) -> None:
    numbers = random.Random(11)

    def seconds(size: int) -> float:
        texts = [" ".join(numbers.choices(WORDS, k=10)) for _ in range(size)]
        memory = make(tmp_path / f"{size}.tsv", texts)
        started = time.process_time()
        for text in texts[:500]:
            assert memory.suggest(f"{text} more") is not None
        return time.process_time() - started

    small = min(seconds(2_000) for _ in range(3))
    assert seconds(20_000) < 4 * small
