"""Pairs set aside for validation and test."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pellucid.check.scan import corpora
from pellucid.config import DataConfig
from pellucid.config.data import Split
from pellucid.errors import DataError
from pellucid.text.reading.held_out import hold_out
from pellucid.text.reading.sentence_pairs import read_pairs

SPLITS: tuple[Split, ...] = ("train", "validation", "test")


def make_pairs(count: int) -> list[tuple[str, str]]:
    """Pairs of which some share a source, and some a target."""
    draw = random.Random(5)
    return [(f"s{draw.randrange(count)}", f"t{draw.randrange(count)}") for _ in range(count)]


@pytest.mark.parametrize(("count", "number"), [(7, 1000), (311, 1000), (311, 13), (5003, 101)])
def test_splits_share_no_source_and_training_no_target_of_the_others(
    count: int, number: int
) -> None:
    pairs = make_pairs(count)
    held_out = hold_out(pairs, number)
    parts = {split: [p for p in pairs if held_out.split_of(*p) == split] for split in SPLITS}
    sources = [{source for source, _ in parts[split]} for split in SPLITS]
    assert all(sources)
    assert sum(map(len, sources)) == len(set.union(*sources))
    targets = {target for split in SPLITS[1:] for _, target in parts[split]}
    assert not targets & {target for _, target in parts["train"]}
    assert len(sources[1]) == min(number, max(1, count // 10))


def test_the_split_does_not_depend_on_the_order_and_ignores_case_and_spaces() -> None:
    pairs = make_pairs(499)
    held_out = hold_out(pairs, 31)
    assert held_out == hold_out(sorted(pairs), 31)
    source = next(s for s, t in pairs if held_out.split_of(s, t) == "test")
    assert held_out.split_of(f"  {source.upper()} ", "x") == "test"


@pytest.mark.parametrize("number", [20, 1000])
def test_a_pair_less_moves_no_other_between_validation_and_test(number: int) -> None:
    pairs = [(f"source {n}", f"target {n}") for n in range(300)]
    before = hold_out(pairs, number).splits
    for gone in range(0, 300, 7):
        after = hold_out(pairs[:gone] + pairs[gone + 1 :], number).splits
        assert all(after[key] == split for key, split in before.items() if key in after)
        assert len(before.keys() ^ after.keys()) <= 3


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(DataError, match=r"at least three pairs .* but has 2"):
        hold_out([("a", "b"), ("A ", "c"), ("d", "e"), ("", "f")], 10)


def test_several_files_are_split_as_one_text_and_part_by_part(tmp_path: Path) -> None:
    pairs = make_pairs(997)
    for name, part in (("a.tsv", pairs[:600]), ("b.tsv", pairs[600:])):
        (tmp_path / name).write_text("".join(f"{s}\t{t}\n" for s, t in part))
    data = DataConfig(train=("a.tsv", "b.tsv"), split=41)
    held_out = hold_out(pairs, 41)
    for split in SPLITS:
        whole = [(p.source, p.target) for p in read_pairs(data, split, tmp_path)]
        assert whole == [pair for pair in pairs if held_out.split_of(*pair) == split]
        by_part = [
            (p.source, p.target)
            for corpus in corpora(data, split)
            for p in read_pairs(corpus.data, split, tmp_path)
        ]
        assert by_part == whole


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ({"validation": ("v.tsv",)}, "split takes the validation text"),
        ({"test": ("v.tsv",)}, "split takes the test text"),
        ({"train_alignments": ("l.txt",)}, "split leaves out lines"),
    ],
)
def test_split_and_files_that_contradict_it_are_refused(
    names: dict[str, tuple[str, ...]], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        DataConfig(train=("a.tsv",), split=5, **names)
