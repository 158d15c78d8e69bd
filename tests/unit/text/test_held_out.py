"""Pairs set aside for validation and test."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from pellucid.check.data_check import check_data
from pellucid.check.scan import corpora
from pellucid.config import DataConfig
from pellucid.config.data import Split
from pellucid.errors import ConfigurationError, DataError
from pellucid.text.reading.held_out import HeldOut, hold_out
from pellucid.text.reading.sentence_pairs import find_aside, read_pairs

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
    limit = min(number, max(1, count // 10))
    for split in SPLITS[1:]:
        # A source with both of its pairs may be the first of a tiny text.
        assert limit - 1 <= len(parts[split]) <= max(2, limit)


def test_pairs_of_frequent_sources_and_targets_stay_in_the_training_text() -> None:
    pairs = [(f"s{n}", "Danke." if n % 2 else f"t{n}") for n in range(2000)]
    pairs += [("Come in!", f"komm {n}") for n in range(500)]
    held_out = hold_out(pairs, 1000)
    splits = Counter(held_out.split_of(*pair) for pair in pairs)
    assert splits == {"train": 2000, "validation": 250, "test": 250}
    assert held_out.split_of("s1", "Danke.") == "train"
    assert held_out.split_of("Come in!", "komm 7") == "train"


@pytest.mark.parametrize("number", [1, 5, 200])
def test_few_rare_pairs_among_many_frequent_ones_are_found(number: int) -> None:
    pairs = [(f"s{n}", "OK" if n % 50 else f"t{n}") for n in range(2000)]
    held_out = hold_out(pairs, number)
    splits = Counter(held_out.split_of(*pair) for pair in pairs)
    assert splits["validation"] == splits["test"] == min(number, 20)
    assert splits["train"] == 2000 - 2 * min(number, 20)


def test_text_of_several_targets_each_is_split_though_none_is_unique() -> None:
    pairs = [(f"s{n}", f"t{n % 400}") for n in range(2000)]
    held_out = hold_out(pairs, 1000)
    splits = Counter(held_out.split_of(*pair) for pair in pairs)
    assert splits["validation"] >= 10
    assert splits["test"] >= 10
    assert splits["train"] >= 1000


def test_text_of_three_targets_is_refused_with_the_cause() -> None:
    pairs = [(f"s{n}", ("ja", "nein", "OK")[n % 3]) for n in range(2000)]
    with pytest.raises(
        DataError, match=r'of 2,000 pairs nearly all .* settings=\{"data\.validation": FILE\}\.$'
    ):
        hold_out(pairs, 1000)


def test_text_whose_targets_are_all_set_aside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tx\nb\tx\nc\tx\n")
    with pytest.raises(DataError, match="must leave pairs to learn from, but all 3 have"):
        list(read_pairs(DataConfig(train=("a.tsv",), split=5), "train", tmp_path))


def test_pairs_whose_target_is_set_aside_are_counted(tmp_path: Path) -> None:
    pairs = [(f"s{n}", f"t{n // 2}") for n in range(600)]
    (tmp_path / "a.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs))
    data = DataConfig(train=("a.tsv",), split=50)
    counts = {split: len(list(read_pairs(data, split, tmp_path))) for split in SPLITS}
    left = find_aside(data, tmp_path).num_same_target
    assert sum(counts.values()) + left == 600
    assert left > 50
    report = check_data(data, tmp_path)
    said = next(one for one in report.findings if one.kind == "set aside")
    assert said.count == left
    assert said.severity == "warning"
    assert said.sentence.startswith(f"{left} pairs leave the training text (")


def test_one_pair_that_leaves_is_one(tmp_path: Path) -> None:
    pairs = [*((f"s{n}", f"t{n}") for n in range(30)), ("again", "t3")]
    (tmp_path / "a.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs))
    report = check_data(DataConfig(train=("a.tsv",), split=3), tmp_path)
    said = next(one for one in report.findings if one.kind == "set aside")
    assert said.sentence.startswith("1 pair leaves the training text (")


def cleaned(pairs: list[tuple[str, str]], share: float) -> list[tuple[str, str]]:
    draw = random.Random(7)
    return [pair for pair in pairs if draw.random() >= share]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_what_an_earlier_model_set_aside_is_set_aside_again_and_nothing_it_learned(
    share: float,
) -> None:
    pairs = [(f"s{n}", f"t{n}") for n in range(12_000)]
    first = hold_out(pairs, 1000)
    earlier = HeldOut.of_record(first.to_record())
    assert (earlier.splits, earlier.targets) == (first.splits, first.targets)
    rest = cleaned(pairs, share)
    second = hold_out(rest, 1000, earlier)
    again = [(first.split_of(*pair), second.split_of(*pair)) for pair in rest]
    assert all(before == after for before, after in again)
    assert not second.doubtful
    # Without it, some pairs that the first model learned are in the second one's test text.
    alone = hold_out(rest, 1000)
    learned = [p for p in rest if alone.split_of(*p) == "test" and first.split_of(*p) == "train"]
    assert bool(learned) is (share > 0)


def test_new_text_is_set_aside_next_to_what_an_earlier_model_set_aside() -> None:
    pairs = [(f"s{n}", f"t{n}") for n in range(12_000)]
    first = hold_out(pairs[:6000], 500)
    second = hold_out(pairs, 1000, first)
    for pair in pairs[:6000]:
        assert second.split_of(*pair) == first.split_of(*pair)
    new = Counter(second.split_of(*pair) for pair in pairs[6000:])
    assert new["test"] > 300
    assert not second.doubtful
    # Text that has nothing to do with the earlier one is split as if there were none.
    other = [(f"x{n}", f"y{n}") for n in range(4000)]
    assert hold_out(other, 300, first).splits == hold_out(other, 300).splits


def test_pairs_that_an_earlier_model_may_know_are_counted_if_it_set_too_few_aside() -> None:
    pairs = [(f"s{n}", f"t{n}") for n in range(12_000)]
    first = hold_out(pairs, 5)
    second = hold_out(pairs, 1000, first)
    splits = Counter(second.split_of(*pair) for pair in pairs)
    assert splits["test"] == 100
    assert second.doubtful == {"validation": 95, "test": 95}


def test_a_model_that_set_nothing_aside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"s{n}\tt{n}\n" for n in range(60)))
    data = DataConfig(train=("a.tsv",), split=5, set_aside_as="run")
    for manifest in (None, "{}", '{"data": {"set_aside": {"test": "?"}}}', "[]"):
        if manifest is not None:
            (tmp_path / "run").mkdir(exist_ok=True)
            (tmp_path / "run" / "manifest.json").write_text(manifest)
        with pytest.raises(ConfigurationError, match=r"data\.set_aside_as must name a model"):
            list(read_pairs(data, "test", tmp_path))


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
        ({"train_alignments": ("l.txt",)}, "or leave train_alignments out"),
    ],
)
def test_split_and_files_that_contradict_it_are_refused(
    names: dict[str, tuple[str, ...]], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        DataConfig(train=("a.tsv",), split=5, **names)
