"""``pellucid translate --align``: word links in the same call, in every form, and resumed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from small_imported import write_imported

from pellucid.bundle import Bundle
from pellucid.cli.lines.resumable import ResumableOutput
from pellucid.inside.align.attention_links import align_pairs
from pellucid.inside.align.link_views import View
from pellucid.text.learned import LearnedText
from pellucid.translate.translator import Translator

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]
LINES = ["the cat sleeps", "", "a dog eats an apple", "near the cat"]
HEAD = ("--align", "--align-head", "decoder.1.cross.0", "--set", "decoding.max_length=9")
VIEW = View(1, "head", 0, "predicts")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return write_imported(tmp_path_factory.mktemp("links") / "imported", ())


@pytest.fixture
def translate(bundle: Bundle, run_here: Run) -> Run:
    def translate(*options: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        stdin = "".join(f"{line}\n" for line in LINES)
        done = run_here("translate", str(bundle.folder), *options, stdin=stdin)
        assert done.returncode == code, done.stderr
        return done

    return translate


def test_plain_translations_are_followed_by_the_links_that_align_gives(
    bundle: Bundle, translate: Run
) -> None:
    plain = translate(*HEAD[3:]).stdout.splitlines()
    done = translate(*HEAD)
    rows = [line.rpartition(" ||| ") for line in done.stdout.splitlines()]
    assert [text for text, _, _ in rows] == plain
    assert rows[1] == ("", " ||| ", "")
    assert "note: Links are read from layer 1 head 0, predicts.\n" in done.stderr
    for line, (text, _, links) in zip(LINES, rows, strict=True):
        for link in links.split():
            i, j = map(int, link.split("-"))
            assert i < len(line.split())
            assert j < len(text.split())
    assert rows[0][2]


def test_links_are_those_of_a_replay_of_the_same_tokens(bundle: Bundle) -> None:
    translator = Translator(bundle.model, bundle.tokenizer, bundle=bundle)
    aligner = translator.aligner(head="decoder.1.cross.0")
    found = translator.translate(LINES, align=aligner, max_length=9, beam=1)
    checked = 0
    for line, one in zip(LINES, found, strict=True):
        # Only where cutting the text again gives the tokens that were written.
        if one.ids and bundle.tokenizer.encode_target(one.text) == list(one.ids):
            (pair,) = align_pairs(bundle.model, bundle.tokenizer, [line], [one.text], [VIEW])
            assert set(one.best.alignment or ()) == pair.links[0]
            checked += 1
    assert found[0].alignment == found[0].best.alignment
    assert found[1].alignment == ()
    assert found[0].source_words == ("the", "cat", "sleeps")
    again = translator.translate(LINES, max_length=9, beam=1)
    assert [one.text for one in again] == [one.text for one in found]
    assert again[0].alignment is None


@pytest.mark.parametrize(
    "options",
    [("--beam", "3", "--n-best", "2"), ("--sample", "--n-best", "3", "--set", "decoding.seed=5")],
)
def test_every_hypothesis_has_links(translate: Run, options: tuple[str, ...]) -> None:
    rows = [line.split(" ||| ") for line in translate(*HEAD, *options).stdout.splitlines()]
    records = [
        json.loads(line) for line in translate(*HEAD, *options, "--json").stdout.splitlines()
    ]
    flat = [
        " ".join(f"{i}-{j}" for i, j in hypothesis["alignment"])
        for record in records
        for hypothesis in record["hypotheses"]
    ]
    assert [row[4].strip() for row in rows] == flat
    assert records[0]["source_words"] == LINES[0].split()
    for record in records:
        for hypothesis in record["hypotheses"]:
            assert hypothesis["words"] == hypothesis["text"].split()
    assert "alignment" not in translate(*HEAD[3:], "--json").stdout


def test_links_of_subwords_are_places_in_the_tokens(translate: Run) -> None:
    for line in translate(*HEAD, "--words-by", "subwords", "--json").stdout.splitlines():
        record = json.loads(line)
        for hypothesis in record["hypotheses"]:
            assert hypothesis["words"] == hypothesis["tokens"]
            ends = [k for k, token in enumerate(hypothesis["tokens"]) if token == "</s>"]
            assert not {j for _, j in hypothesis["alignment"]} & set(ends)


def test_links_of_a_split_line_count_the_words_of_the_whole_line(bundle: Bundle) -> None:
    learned = LearnedText(dict.fromkeys("The cat sleeps. A dog eats.", 100))
    translator = Translator(bundle.model, bundle.tokenizer, bundle=bundle, learned=learned)
    aligner = translator.aligner(head="decoder.1.cross.0")
    line = "The cat sleeps. A dog eats."
    (found,) = translator.translate([line], align=aligner, clean=False)
    best = found.best
    assert found.notes.parts == len(best.parts) == 2
    assert found.source_words == tuple(line.split())
    own = len(best.parts[0].text.split())
    for i, j in best.alignment or ():
        assert (i < 3) == (j < own)  # no link from one sentence into the other
    assert {i for i, _ in best.alignment or ()} == set(range(6))


def test_resumed_output_has_the_links_of_an_uninterrupted_one(
    bundle: Bundle,
    run_here: Run,
    write_lines: WriteLines,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["the", "cat", "sleeps", "near", "a", "dog", "eats", "an", "apple"]
    lines = [" ".join(pair) for pair in product(words, words)]
    source = write_lines("in", *lines[:70])
    monkeypatch.setattr("pellucid.cli.lines.translation_job.MAX_LINES", 60)
    options = (
        "translate",
        str(bundle.folder),
        "-i",
        source,
        "--align",
        "--set",
        "decoding.max_length=5",
    )
    whole, other = tmp_path / "whole", tmp_path / "other"
    assert run_here(*options, "-o", str(whole)).returncode == 0
    commit = ResumableOutput.commit

    def stop(self: ResumableOutput, *arguments: Any) -> None:
        commit(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ResumableOutput, "commit", stop)
        assert run_here(*options, "-o", str(other)).returncode == 130
    refused = run_here(*options, "--words-by", "script", "-o", str(other))
    assert (refused.returncode, "--align" in refused.stderr) == (2, True)
    done = run_here(*options, "-o", str(other))
    assert done.returncode == 0
    assert "the most consistent" in done.stderr  # the rest of the lines would be too few
    assert "by 60 lines" in done.stderr
    assert other.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--words-by", "subwords"), "--words-by needs --align"),
        (("--words-by", "spaces"), "--words-by needs --align"),
        (("--align-head", "decoder.1"), "--align-head needs --align"),
        (("--align", "--align-head", "1"), "must be encoder, decoder or *"),
        (("--align", "--align-head", "encoder.1"), "--align-head must be cross-attention"),
        (("--align", "--subwords"), "Give --words-by subwords instead"),
        (("--align", "--align-head", "decoder.9"), "layer"),
    ],
)
def test_options_of_links_are_refused_without_them(
    translate: Run, options: tuple[str, ...], said: str
) -> None:
    assert said in translate(*options, code=2).stderr


def test_head_that_was_taught_links_is_read(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bundle, "guided_head", property(lambda _: (0, 1)))
    translator = Translator(bundle.model, bundle.tokenizer, bundle=bundle)
    aligner = translator.aligner()
    translator.translate(LINES, align=aligner, max_length=5)
    assert aligner.take_sentence() == (
        "Links are read from layer 0 head 1, predicts, which was taught word links."
    )
    assert aligner.take_sentence() == ""


def test_lines_that_repeat_each_other_do_not_choose_the_head(bundle: Bundle) -> None:
    translator = Translator(bundle.model, bundle.tokenizer)
    aligner = translator.aligner()
    translator.translate(LINES[:1] * 60, align=aligner, max_length=3)
    assert aligner.take_sentence().startswith(
        "Links are read from layer 1 mean of heads, predicts."
    )
