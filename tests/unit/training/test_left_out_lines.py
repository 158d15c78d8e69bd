"""Lines that cannot be used cost themselves, not the run: bad pairs, broken links, long pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_runs import make_recipe, write_text

from pellucid.check.findings import Finding
from pellucid.check.link_check import check_links, read_links
from pellucid.errors import ConfigurationError, DataError
from pellucid.training.run.folder import RunFolder
from pellucid.training.start.prepare import PreparedData, prepare_data

GUIDED: dict[str, Any] = {
    "data": {"train_alignments": "train.align"},
    "training": {"guided_head": "decoder.0.cross.1"},
}


def prepare(folder: Path, **changes: dict[str, Any]) -> tuple[PreparedData, str]:
    """Prepare a run; return what it reads, and its log."""
    recipe = make_recipe(**changes)
    run = RunFolder(folder / "run", recipe)
    with run.locked(), run.created():
        prepared = prepare_data(recipe, folder, run)
    log = folder / "run" / "log.txt"
    return prepared, log.read_text() if log.exists() else ""


def change_lines(path: Path, changes: dict[int, str | None]) -> None:
    """Change lines of a file by their number from 1; None removes a line."""
    lines: list[str | None] = list(path.read_text().splitlines())
    for number, line in changes.items():
        lines[number - 1] = line
    path.write_text("".join(f"{line}\n" for line in lines if line is not None))


def findings(folder: Path) -> list[Finding]:
    return check_links(make_recipe(**GUIDED).data, folder)


def test_broken_links_cost_the_links_of_their_own_pair(tmp_path: Path) -> None:
    write_text(tmp_path)
    change_lines(tmp_path / "train.align", {7: "0-0 1-x", 51: "0-0 3-30"})
    prepared, log = prepare(tmp_path, **GUIDED)
    assert "Word links: 2 lines cannot be used, and the pair is trained without links: " in log
    assert "train.align:7 (not a link), 51 (no such word)" in log
    assert prepared.links is not None
    assert len(prepared.links) == len(prepared.store) == 400
    for pair in (6, 50):  # only </s> is linked
        assert len(prepared.links.source(pair)) == 1
    assert len(prepared.links.source(5)) > 1


def test_links_of_another_text_are_refused(tmp_path: Path) -> None:
    write_text(tmp_path)
    change_lines(tmp_path / "train.align", dict.fromkeys(range(1, 60), "0-0 40-40"))
    with pytest.raises(DataError, match=r"59 of 400 lines cannot be used: .*train\.align:1, 2, 3"):
        prepare(tmp_path, **GUIDED)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("0-0 1:2", "1 not a link"),
        ("0-0 -1-2", "1 not a link"),
        ("0-0 0-99", "1 no such word"),
        ("99p0", "1 no such word"),
        ("\u00b2-0", "1 not a link"),
    ],
)
def test_check_names_each_broken_line(tmp_path: Path, line: str, kind: str) -> None:
    write_text(tmp_path)
    assert not findings(tmp_path)
    change_lines(tmp_path / "train.align", {51: line})
    (finding,) = findings(tmp_path)
    assert (finding.severity, finding.count) == ("warning", 1)
    assert f"({kind}): train.align:51 (" in finding.sentence
    assert finding.examples[0].source == line


def test_check_says_that_links_count_from_one(tmp_path: Path) -> None:
    write_text(tmp_path)
    path = tmp_path / "train.align"
    numbers = [
        " ".join(f"{i}-{i}" for i in range(1, 1 + len(line.split())))
        for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(numbers) + "\n")
    (finding,) = findings(tmp_path)
    assert finding.severity == "error"
    assert "seem to count from 1: subtract 1" in finding.sentence


def test_check_says_that_links_lead_the_other_way(tmp_path: Path) -> None:
    write_text(tmp_path)
    for number in (101, 102):
        rows = [f"{number} a b c", f"d e {number} f"]
        for name, row in zip(("train.en", "train.fr"), rows, strict=True):
            change_lines(tmp_path / name, dict.fromkeys(range(1, 60), row))
    change_lines(tmp_path / "train.align", dict.fromkeys(range(1, 60), "2-0 0-1 1-2 3-3"))
    (finding,) = findings(tmp_path)
    assert "seem to lead from target to source" in finding.sentence


SHORT = [("x y a b", "A B")]
"""The target is shorter: links the other way round lead outside."""
VARIED = [(f"the {a} {b}", f"{b.upper()} le {a.upper()}") for a in "abcdefgh" for b in "klmnopqr"]
"""Each link has a word in both orders, but in the wrong one it joins ever different words."""


@pytest.mark.parametrize(
    ("pairs", "right", "wrong"),
    [(SHORT, "2-0 3-1", "0-2 1-3"), (VARIED, "0-1 1-2 2-0", "1-0 2-1 0-2")],
)
def test_check_finds_reversed_links_without_equal_words(
    tmp_path: Path, pairs: list[tuple[str, str]], right: str, wrong: str
) -> None:
    write_text(tmp_path)
    for side, name in enumerate(("train.en", "train.fr")):
        rows = {number: pairs[number % len(pairs)][side] for number in range(1, 401)}
        change_lines(tmp_path / name, dict(rows))
    change_lines(tmp_path / "train.align", dict.fromkeys(range(1, 401), right))
    assert not findings(tmp_path)
    change_lines(tmp_path / "train.align", dict.fromkeys(range(1, 401), wrong))
    (finding,) = findings(tmp_path)
    assert "seem to lead from target to source" in finding.sentence


def test_check_counts_lines_without_links_and_names_a_file_without_any(tmp_path: Path) -> None:
    write_text(tmp_path)
    change_lines(tmp_path / "train.align", dict.fromkeys((3, 50), ""))
    (finding,) = findings(tmp_path)
    assert (finding.severity, finding.count) == ("note", 2)
    assert "2 lines of train.align (0.50 %) without a link" in finding.sentence
    change_lines(tmp_path / "train.align", dict.fromkeys(range(1, 401), ""))
    (finding,) = findings(tmp_path)
    assert (finding.severity, finding.count) == ("warning", 400)
    assert "train.align holds no links: every line is empty" in finding.sentence


def test_check_says_that_there_are_too_few_lines_of_links(tmp_path: Path) -> None:
    write_text(tmp_path)
    change_lines(tmp_path / "train.align", {400: None})
    (finding,) = findings(tmp_path)
    assert finding.severity == "error"
    assert "ends before line 400" in finding.sentence


def test_skipped_pairs_take_their_links_with_them(tmp_path: Path) -> None:
    write_text(tmp_path)
    sides = [(tmp_path / name).read_text().splitlines() for name in ("train.en", "train.fr")]
    rows = [f"{source}\t{target}" for source, target in zip(*sides, strict=True)]
    rows[3] = rows[399] = "no tab"
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")
    table = {"train": "train.tsv", "on_bad_line": "skip"}
    prepared, log = prepare(
        tmp_path, data=table | GUIDED["data"], training={"guided_head": "decoder.0.cross.1"}
    )
    assert "Left out 2 lines of the training text: " in log
    assert "train.tsv:4, 400 (1 column)" in log
    assert prepared.store.dropped["unreadable"] == 2
    assert prepared.links is not None
    for pair in range(398):
        ends = len(prepared.store.source(pair)) - 1, len(prepared.store.target(pair)) - 1
        assert (prepared.links.source(pair)[-1], prepared.links.target(pair)[-1]) == ends


def test_bad_lines_of_the_validation_text_are_named_as_well(tmp_path: Path) -> None:
    write_text(tmp_path)
    path = tmp_path / "validation.fr"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\xff\n", 1))
    with pytest.raises(DataError, match=r"validation\.fr:1"):
        prepare(tmp_path)
    prepared, log = prepare(tmp_path, data={"on_bad_line": "skip"})
    assert "Left out 1 line of the validation text: " in log
    assert len(prepared.validation) == 29


def test_long_validation_pairs_are_counted_before_the_start(tmp_path: Path) -> None:
    write_text(tmp_path)
    change_lines(tmp_path / "validation.en", {3: "the dog " * 1500})
    prepared, log = prepare(tmp_path)
    assert "1 of 30 validation pairs are longer than model.max_source_length = " in log
    assert len(prepared.validation) == 30


@pytest.mark.parametrize("name", ["validation.en", "validation.fr"])
def test_validation_text_that_is_too_long_throughout_is_refused(tmp_path: Path, name: str) -> None:
    write_text(tmp_path)
    change_lines(tmp_path / name, dict.fromkeys(range(1, 31), "le chien " * 1500))
    with pytest.raises(DataError, match=r"all 30 are longer than model\.max_source_length = \d+"):
        prepare(tmp_path)


def test_links_without_numbers_of_pairs_follow_one_another(tmp_path: Path) -> None:
    from pellucid.text.reading.sentence_pairs import SentencePair

    (tmp_path / "links").write_text("0-0\n1-1\n")
    pairs = [SentencePair("a b", "c d", "x:1"), SentencePair("e f", "g h", "x:2")]
    assert [line for _, line, _ in read_links(pairs, tmp_path / "links")] == ["0-0", "1-1"]


def test_resuming_with_other_text_names_the_way_to_train_on(tmp_path: Path) -> None:
    write_text(tmp_path)
    prepare(tmp_path)
    run = tmp_path / "run"
    change_lines(tmp_path / "train.en", {5: "the dog sees a cat"})
    with pytest.raises(
        ConfigurationError, match=rf'in another folder \(output\), with start="{run}"\.'
    ):
        prepare(tmp_path)
    more = {"train": [["train.en", "train.fr"], ["train.en", "train.fr"]]}
    with pytest.raises(ConfigurationError, match=rf'with start="{run}" to train its model on\.'):
        prepare(tmp_path, data=more)


def test_resuming_with_another_model_does_not_speak_of_text(tmp_path: Path) -> None:
    write_text(tmp_path)
    prepare(tmp_path)
    with pytest.raises(ConfigurationError, match=r"d_ff differs .* with output for a new run\.$"):
        prepare(tmp_path, model={"d_ff": 48})
