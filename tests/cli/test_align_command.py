"""``pellucid align``: links, errors against gold links, two directions, and what is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from of_subwords import SUBWORDS

from pellucid.bundle import load_bundle, resolve_model
from pellucid.corpora import Example, make_split

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]
HEAD = ("--head", "decoder.1.cross.2", "--map", "head", "--convention", "predicts")


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    """Take pairs whose words the packaged model knows, as it warns of others."""
    tokenizer = load_bundle(resolve_model("demo")).tokenizer
    unknown = tokenizer.config.unk_id
    known = [
        one
        for one in make_split("validation", count=40)
        if unknown not in tokenizer.encode_source(one.source) + tokenizer.encode_target(one.target)
    ]
    return known[:7]


@pytest.fixture
def files(examples: list[Example], write_lines: WriteLines) -> tuple[str, ...]:
    return (
        *("--source", write_lines("source", *(e.source for e in examples))),
        *("--target", write_lines("target", *(e.target for e in examples))),
    )


@pytest.fixture
def gold(examples: list[Example], write_lines: WriteLines) -> str:
    lines = (" ".join(f"{i}-{j}" for i, j in e.alignment) for e in examples)
    return write_lines("gold", *lines)


def to_links(line: str) -> set[tuple[int, ...]]:
    return {tuple(map(int, link.split("-"))) for link in line.split()}


def test_align_without_options_takes_the_head_that_was_taught_links(
    run_here: Run, files: tuple[str, ...]
) -> None:
    done = run_here("align", "demo", *files)
    said = "Links are read from layer 1 head 0, predicts, which was taught word links."
    assert (done.returncode, done.stderr) == (0, f"note: {said}\n")
    asked = run_here(
        *("align", "demo", *files, "--head", "decoder.1.cross.0", "--map", "head"),
        *("--convention", "predicts", "--link-rule", "all"),
    )
    assert done.stdout == asked.stdout
    other = run_here("align", "demo", *files, "--convention", "reads")
    assert "of 21 views" in other.stderr


def test_align_without_options_names_what_it_chose(
    run_here: Run, files: tuple[str, ...], examples: list[Example]
) -> None:
    done = run_here("align", SUBWORDS, *files)
    assert done.returncode == 0
    assert "of 42 views" in done.stderr
    assert "by 7 pairs" in done.stderr
    assert "Give 50 or more" in done.stderr
    lines = done.stdout.split("\n")
    assert lines.pop() == ""
    for line, example in zip(lines, examples, strict=True):
        assert max(i for i, _ in to_links(line)) < len(example.source.split())


def test_align_of_one_view_says_nothing_else_and_json_has_the_same_links(
    run_here: Run, files: tuple[str, ...], examples: list[Example], tmp_path: Path
) -> None:
    plain = run_here("align", "demo", *files, *HEAD)
    assert (plain.returncode, plain.stderr) == (0, "")
    output = tmp_path / "links"
    done = run_here("align", "demo", *files, *HEAD, "--json", "-o", str(output))
    assert (done.returncode, done.stdout) == (0, "")
    records = [json.loads(line) for line in output.read_text().splitlines()]
    assert [record["line"] for record in records] == list(range(7))
    assert [record["source"] for record in records] == [e.source for e in examples]
    for record, line in zip(records, plain.stdout.splitlines(), strict=True):
        assert {tuple(link) for link in record["alignment"]} == to_links(line)
    assert run_here("align", "demo", *files, *HEAD, "-o", str(output)).returncode == 2


def test_align_with_gold_has_every_view_and_an_interval(
    run_here: Run, files: tuple[str, ...], gold: str, tmp_path: Path
) -> None:
    table = run_here("align", "demo", *files, "--gold", gold)
    assert (table.returncode, table.stderr) == (0, "")
    lines = table.stdout.splitlines()
    assert lines[0].split()[-2:] == ["predicts", "reads"]
    assert len(lines) == 1 + 21 + 3
    links = tmp_path / "links"
    done = run_here("align", "demo", *files, "--gold", gold, "--json", "-o", str(links))
    record = json.loads(done.stdout)
    assert len(record["views"]) == 42
    best = record["best"]
    assert best == min(record["views"], key=lambda view: view["error"])
    assert 0 <= best["low"] <= best["error"] <= best["high"] < 0.3
    assert best["num_sentences"] == 7
    assert f"error {100 * best['error']:.1f} % [{100 * best['low']:.1f}" in lines[-3]
    # The links that -o wrote are those whose error was reported.
    found, right = 0, 0
    written = map(json.loads, links.read_text().splitlines())
    for one, line in zip(written, Path(gold).read_text().splitlines(), strict=True):
        hypothesis = {tuple(link) for link in one["alignment"]}
        found += len(hypothesis) + len(to_links(line))
        right += 2 * len(hypothesis & to_links(line))
    assert best["error"] == pytest.approx(1 - right / found)


def test_align_in_two_directions_joins_them(
    run_here: Run, files: tuple[str, ...], gold: str
) -> None:
    options = ("--reverse", SUBWORDS, "--reverse-head", "decoder.1.cross.2", *HEAD)
    each = {}
    for method in ("intersection", "grow-diag-final", "union"):
        done = run_here("align", SUBWORDS, *files, *options, "--symmetrize", method)
        assert (done.returncode, done.stderr) == (0, "")
        each[method] = [to_links(line) for line in done.stdout.splitlines()]
    forward = run_here("align", SUBWORDS, *files, *HEAD, "--link-rule", "best").stdout.splitlines()
    for one, small, middle, large in zip(forward, *each.values(), strict=True):
        assert small <= middle <= large
        assert small <= to_links(one) <= large
    scored = run_here("align", SUBWORDS, *files, *options, "--gold", gold)
    assert "--reverse best: layer 1 head 2, predicts" in scored.stdout
    assert scored.stdout.splitlines()[-1].startswith("grow-diag-final: error ")


def test_align_lines_that_cannot_be_aligned_are_empty_and_the_code_is_3(
    run_here: Run, write_lines: WriteLines
) -> None:
    words = (
        *("--source", write_lines("source", "The pizza", "pizza " * 400, "", "The oven")),
        *("--target", write_lines("target", "La pizza", "La pizza", "", "Le four")),
    )
    done = run_here("align", "demo", *words, *HEAD)
    assert done.returncode == 3
    assert done.stderr.startswith("error: line 2: A source must have at most 256 tokens")
    assert done.stderr.count("\n") == 1
    assert [bool(line) for line in done.stdout.split("\n")] == [True, False, False, True, False]


def test_align_target_that_the_vocabulary_cannot_write_is_aligned_with_a_note(
    run_here: Run, bundle_folder: Path, write_lines: WriteLines
) -> None:
    words = (
        *("--source", write_lines("source", "The pizza")),
        *("--target", write_lines("target", "La brioche")),
    )
    done = run_here("align", str(bundle_folder), *words, "--head", "decoder.0.cross.0", *HEAD[2:])
    assert done.returncode == 0
    assert {j for _, j in to_links(done.stdout)} == {0, 1}
    assert "cannot write (line 1: brioche)" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--head", "decoder.2"), "layer must be from 0 to 1"),
        (("--head", "decoder.*.cross.4"), "head must be from 0 to 3"),
        (("--head", "encoder.1"), "--head must be cross-attention of the decoder"),
        (("--reverse", "demo", "--reverse-head", "decoder.0.self"), "--reverse-head must be cross"),
        (
            ("--head", "*.*.*.1", "--map", "layer-mean"),
            "--map layer-mean cannot be combined with --head",
        ),
        (("--symmetrize", "union"), "--symmetrize needs --reverse, a second model"),
        (("--reverse-head", "decoder.1"), "--reverse-head needs --reverse, a second model"),
        (("--reverse", "demo", "--reverse-head", "decoder.7"), "layer must be from 0 to 1"),
        (("--convention", "writes"), "must be one of predicts, reads, but is 'writes'"),
        (("--gold", "nowhere"), "nowhere does not"),
    ],
)
def test_align_what_does_not_exist_is_one_sentence(
    run_here: Run, files: tuple[str, ...], options: tuple[str, ...], said: str
) -> None:
    done = run_here("align", "demo", *files, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("0-0 1:1", "gold:7"),
        ("0-99", "gold:7"),
        ("99p0", "gold:7"),
        (None, "has 6"),
    ],
)
def test_align_bad_gold_names_the_file_and_the_line(
    run_here: Run, files: tuple[str, ...], write_lines: WriteLines, last: str | None, said: str
) -> None:
    path = write_lines("gold", *["0-0"] * 6, *([] if last is None else [last]))
    done = run_here("align", "demo", *files, "--gold", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_align_history_is_refused_and_names_the_command_that_has_it(run_here: Run) -> None:
    done = run_here("align", "run", "--source=x", "--target=y", "--history")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Give pellucid history RUN instead" in done.stderr
