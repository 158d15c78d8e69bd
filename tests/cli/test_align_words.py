"""``pellucid align`` with given words, pairs in one file, scripts without spaces, and subwords."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from small_imported import write_imported
from small_runs import make_recipe

from pellucid.bundle import Bundle
from pellucid.check.link_check import check_links, linked_words
from pellucid.errors import DataError
from pellucid.text.token_words import split_pieces
from pellucid.training.start.training_pairs import link_tokens

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]
VIEW = ("--head", "decoder.1.cross.0", "--map", "head", "--convention", "predicts")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return write_imported(tmp_path_factory.mktemp("words") / "imported", ("fra",))


@pytest.fixture
def align(bundle: Bundle, run_here: Run) -> Run:
    def align(*options: str, code: int = 0, **streams: str) -> subprocess.CompletedProcess[str]:
        done = run_here("align", str(bundle.folder), *VIEW, *options, **streams)
        assert done.returncode == code, done.stderr
        return done

    return align


def records(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_words_given_equal_to_the_lines_give_the_same_links(
    align: Run, write_lines: WriteLines
) -> None:
    lines = [">>fra<< the cat sleeps", ">>fra<< a dog", ""]
    source, target = write_lines("s", *lines), write_lines("t", "le chat dort", "un chien", "")
    files = ("--source", source, "--target", target)
    plain = align(*files)
    words = ("--source-words", source, "--target-words", target)
    assert align(*files, *words).stdout == plain.stdout
    bare = write_lines("w", "the cat sleeps", "a dog", "")
    assert align(*files, "--source-words", bare).stdout == plain.stdout


def test_given_words_are_counted_and_a_line_that_differs_is_an_error_of_its_own(
    align: Run, write_lines: WriteLines
) -> None:
    source = write_lines("s", ">>fra<< the cat’s dog", ">>fra<< a dog", ">>fra<< the cat")
    target = write_lines("t", "le chat dort", "un chien", "le chat")
    words = write_lines("w", "the cat &apos;s do g", "a cat", "the cat")
    done = align(
        *("--source", source, "--target", target, "--source-words", words, "--json"), code=3
    )
    found = records(done)
    assert found[0]["source_words"] == ["the", "cat", "&apos;s", "do", "g"]
    assert max(i for i, _ in found[0]["alignment"]) == 4  # type: ignore[attr-defined]
    assert [one["error"] is None for one in found] == [True, False, True]
    assert "line 2: The source words must be those of the text, but word 1" in done.stderr
    assert found[2]["alignment"]


def test_gold_links_count_given_words(align: Run, write_lines: WriteLines) -> None:
    source = write_lines("s", ">>fra<< the cat’s")
    target = write_lines("t", "le chat")
    words, gold = write_lines("w", "the cat &apos;s"), write_lines("g", "2-1")
    files = ("--source", source, "--target", target, "--gold", gold)
    assert "names word 2" in align(*files, code=2).stderr
    assert "alignment error" in align(*files, "--source-words", words).stdout


def test_pairs_in_one_file_are_those_of_two(align: Run, write_lines: WriteLines) -> None:
    sources, targets = [">>fra<< the cat", "", ">>fra<< a dog"], ["le chat", "", "un chien"]
    two = ("--source", write_lines("s", *sources), "--target", write_lines("t", *targets))
    joined = [f"{s} ||| {t}" for s, t in zip(sources, targets, strict=True)]
    one = write_lines("p", *joined[:1], "", *joined[2:])
    assert align(one).stdout == align(*two).stdout
    stdin = "".join(f"{line}\n" for line in joined)
    assert align("-", stdin=stdin).stdout == align(*two).stdout


def test_lines_that_are_no_pairs_are_errors_of_their_own(
    align: Run, write_lines: WriteLines
) -> None:
    pairs = write_lines("p", "no pair", ">>fra<< the cat ||| le chat", "a ||| b ||| c", "a |||")
    done = align(pairs, code=3)
    assert [bool(line) for line in done.stdout.splitlines()] == [False, True, False, False]
    assert "line 1: A pair must be written SOURCE ||| TARGET, but has no |||" in done.stderr
    assert "line 3: A pair must be written SOURCE ||| TARGET, but has 2 times |||" in done.stderr
    gold = write_lines("g", "0-0", "0-0 1-1", "", "")
    assert "alignment error" in align(pairs, "--gold", gold, code=3).stdout


def test_files_of_lines_are_asked_for_or_refused(align: Run, write_lines: WriteLines) -> None:
    path = write_lines("p", "a ||| b")
    for options, said in (
        ((), "Add --source and --target"),
        (("--source", path), "Add --target"),
        ((path, "--target", path), "PAIRS cannot be combined with --target"),
        ((path, "--subwords"), "Give --words-by subwords instead"),
        (
            (path, "--words-by", "subwords", "--reverse", "x"),
            "--words-by=subwords cannot be combined with --reverse",
        ),
    ):
        assert said in align(*options, code=2).stderr


def test_scripts_without_spaces_are_cut_and_said_once(align: Run, write_lines: WriteLines) -> None:
    source = write_lines("s", ">>fra<< 我喜欢苹果", ">>fra<< the cat", ">>fra<< 你 好")
    target = write_lines("t", "le chat dort", "le chat", "le chat")
    files = ("--source", source, "--target", target)
    done = align(*files, "--json")
    assert [len(one["source_words"]) for one in records(done)] == [5, 2, 2]  # type: ignore[arg-type]
    assert done.stderr.count("cut by script") == 1
    assert "1 line (line 1) has no spaces" in done.stderr
    spaces = align(*files, "--words-by", "spaces", "--json")
    assert [len(one["source_words"]) for one in records(spaces)] == [1, 2, 2]  # type: ignore[arg-type]
    assert "script" not in spaces.stderr


def test_subword_links_join_the_tokens_of_the_model(
    bundle: Bundle, align: Run, write_lines: WriteLines
) -> None:
    line, target = ">>fra<< the cats", "le chat dort"
    done = align(write_lines("p", f"{line} ||| {target}"), "--words-by", "subwords", "--json")
    (found,) = records(done)
    tokenizer = bundle.tokenizer
    ids = tokenizer.encode_source(line), tokenizer.encode_target(target)
    assert found["source_words"] == tokenizer.source_tokens(ids[0])[:-1]
    assert found["target_words"] == tokenizer.target_tokens(ids[1])[:-1]
    places = {i for i, _ in found["alignment"]}  # type: ignore[attr-defined]
    # The first token is the language code, which has no word.
    assert places == set(range(1, len(ids[0]) - 1))


def test_training_links_count_the_words_that_align_counts(bundle: Bundle) -> None:
    tokenizer = bundle.tokenizer
    source, target = ">>fra<< 我喜欢", "le chat dort"
    assert linked_words(tokenizer, source, target) == ([*"我喜欢"], split_pieces(target))
    assert linked_words(None, source, target)[0] == [">>fra<<", *"我喜欢"]
    ids = tokenizer.encode_source(source), tokenizer.encode_target(target)
    assert len(link_tokens(tokenizer, source, target, ids, "0-2", "place:1")[0]) > 1
    with pytest.raises(DataError, match="names word 3 of a source that has 3"):
        link_tokens(tokenizer, source, target, ids, "3-2", "place:1")


def test_check_of_training_links_knows_the_codes_of_the_model_to_start_from(
    bundle: Bundle, tmp_path: Path, write_lines: WriteLines
) -> None:
    write_lines("train.en", *[">>fra<< the cat"] * 30)
    write_lines("train.fr", *["le chat"] * 30)
    write_lines("links", *["0-0 1-1"] * 29, "2-1")
    data = make_recipe(
        data={"train_alignments": ["links"]}, training={"guided_head": "decoder.0.cross.1"}
    ).data
    with_codes = check_links(data, tmp_path, bundle.tokenizer)
    assert [finding.count for finding in with_codes] == [1]
    assert "links:30" in with_codes[0].sentence
    assert check_links(data, tmp_path) == []
