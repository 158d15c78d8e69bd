"""The sentences by which models of the course are judged are not in its text."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from pellucid.corpora import make_split
from pellucid.corpora.course.kept_out import hash_of, is_kept_out

GOLDEN = Path(__file__).parent.parent.parent / "golden"
HASHES = frozenset(
    files("pellucid.corpora.course").joinpath("kept_out.txt").read_text(encoding="utf-8").split()
)


@pytest.mark.parametrize("name", ["blind", "open", "second", "third"])
def test_each_sentence_of_the_sets_is_kept_out(name: str) -> None:
    path = GOLDEN / f"beginner_{name}.tsv"
    if not path.exists():
        pytest.skip("The set is elsewhere.")
    sentences = [line.split("\t")[0] for line in path.read_text(encoding="utf-8").splitlines()]
    assert [one for one in sentences if one and hash_of(one) not in HASHES] == []


def test_capitals_and_marks_do_not_hide_a_sentence() -> None:
    assert hash_of("He gives me a flower.") == hash_of("he gives me a flower !")
    assert is_kept_out(["He", "gives", "me", "a", "flower"])
    assert is_kept_out(["today", "is", "Sunday,", "and", "tomorrow", "is", "Monday"])
    assert not is_kept_out(["he", "gives", "me", "a", "house"])


def test_text_of_the_course_has_no_such_sentence() -> None:
    examples = make_split("train", count=4000, grammar="course")
    assert not [one.source for one in examples if hash_of(one.source) in HASHES]


def test_no_piece_of_french_has_a_space() -> None:
    # A noun such as *pomme de terre* is three pieces, each linked to its English word.
    examples = make_split("train", count=9000, grammar="course")
    found = [one for one in examples if "pommes de terre" in one.target]
    assert found
    for one in found:
        pieces = one.target.split(" ")
        place = next(j for j, piece in enumerate(pieces) if piece.startswith("terre"))
        sources = {i for i, j in one.alignment if j == place}
        assert all("potatoes" in one.source.split(" ")[i].lower() for i in sources)
