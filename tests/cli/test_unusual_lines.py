"""``pellucid translate`` on lines unlike the training text, and what it says about them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest
from of_subwords import SUBWORDS

import pellucid
from pellucid.cli.lines.decoding_options import ConstraintOptions, given_treatment
from pellucid.cli.lines.translation_job import TranslationJob

Run = Callable[..., subprocess.CompletedProcess[str]]

KNOWN = (
    "The pizza came out of the oven and it tasted good.",
    "The cat is red.",
    "The dog ate the pizza.",
)


@pytest.fixture(scope="module")
def known() -> list[str]:
    return [found.text for found in pellucid.load(SUBWORDS).translate(KNOWN)]


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        (" ", "\u00a0", "U+00A0 NO-BREAK SPACE"),
        (" ", "\t", "U+0009 TAB"),
        (" ", "\u2009", "U+2009 THIN SPACE"),
        (" ", "\u3000", "U+3000 IDEOGRAPHIC SPACE"),
        (" ", "\u202f", "U+202F NARROW NO-BREAK SPACE"),
        (" ", " \u200b", "U+200B ZERO WIDTH SPACE"),
        (" ", "\u2581", "U+2581"),
        ("i", "\u00adi", "U+00AD SOFT HYPHEN"),
        (" ", " \ufeff", "U+FEFF ZERO WIDTH NO-BREAK SPACE"),
        # Neighbors of what users have reported.
        (" ", "\u2007\u2007", "U+2007 FIGURE SPACE"),
        ("t", "t\u2060", "U+2060 WORD JOINER"),
        ("e", "ｅ", "ｅ U+FF45"),
        (" ", "\x0b", "U+000B"),
    ],
)
def test_spaces_and_invisible_characters_do_not_change_a_translation(
    old: str, new: str, name: str, run_here: Run, known: list[str]
) -> None:
    stdin = "".join(f"{line.replace(old, new)}\n" for line in KNOWN)
    done = run_here("translate", SUBWORDS, stdin=stdin)
    assert (done.returncode, done.stdout.splitlines()) == (0, known)
    assert done.stderr.startswith("warning: 3 lines (1, 2, 3) have spaces, marks or invisible")
    assert name in done.stderr
    assert done.stderr.count("\n") == 1
    raw = run_here("translate", SUBWORDS, "--no-clean", stdin=stdin)
    assert raw.stdout.splitlines() != known
    assert "--no-clean" not in raw.stderr


def test_direction_marks_around_a_line_are_around_its_translation(
    run_here: Run, known: list[str]
) -> None:
    done = run_here("translate", SUBWORDS, stdin=f"\u202b{KNOWN[0]}\u202c\n")
    assert done.stdout == f"\u202b{known[0]}\u202c\n"


def test_unknown_characters_are_named_with_their_lines_and_in_json(run_here: Run) -> None:
    stdin = f"{KNOWN[1]}\nThe cat is 日本 😀.\nThe caf\u00e9 is 日.\n"
    done = run_here("translate", SUBWORDS, stdin=stdin)
    assert (
        "2 lines (2, 3) have characters that the model has never seen: “日” (U+65E5)" in done.stderr
    )
    assert "text outside the model's vocabulary" in done.stderr
    records = [
        json.loads(line)
        for line in run_here("translate", SUBWORDS, "--json", stdin=stdin).stdout.splitlines()
    ]
    assert records[0]["notes"] == {}
    assert records[1]["notes"]["unknown"] == {"日": 1, "本": 1, "😀": 1}
    assert 0.1 < records[1]["notes"]["rare_characters"] < 0.3
    assert 0.3 < records[1]["notes"]["unknown_tokens"] < 0.8
    assert records[2]["source"] == "The café is 日."


def test_known_single_sentences_are_translated_as_they_are_and_in_silence(run_here: Run) -> None:
    stdin = "".join(f"{line}\n" for line in (*KNOWN, "", "  The cat  is red. ", "The cat is red"))
    for options in ((), ("--json",), ("--beam", "3", "--n-best", "2")):
        done = run_here("translate", SUBWORDS, *options, stdin=stdin)
        plain = run_here(
            "translate", SUBWORDS, "--no-clean", "--split", "none", *options, stdin=stdin
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == plain.stdout


@pytest.mark.parametrize(
    ("joint", "places"),
    [
        (" ", "1"),
        ("  ", "1"),
        ("\t", "1"),
        ("\u00a0", "1"),
        (' "', "1"),
    ],
)
def test_no_sentence_of_a_line_is_lost(
    joint: str, places: str, run_here: Run, known: list[str]
) -> None:
    done = run_here("translate", SUBWORDS, stdin=f"{joint.join(KNOWN)}\n{KNOWN[0]}\n")
    found, single = done.stdout.splitlines()
    assert single == known[0]
    assert [sentence for sentence in known if sentence.rstrip(".") in found][:1] == known[:1]
    assert found.count(".") == len(KNOWN)
    assert f"Line {places} was split into sentences" in done.stderr
    whole = run_here("translate", SUBWORDS, "--split", "none", stdin=f"{joint.join(KNOWN)}\n")
    assert whole.stdout.count(".") < len(KNOWN)


def test_abbreviations_and_decimals_do_not_split_a_line(run_here: Run) -> None:
    stdin = "Mr. Smith paid 3.50 to Dr. Jones at 5 p.m. in St. Louis\n"
    done = run_here("translate", SUBWORDS, stdin=stdin)
    assert "split" not in done.stderr


def test_line_that_a_prefix_keeps_whole_is_said_to(run_here: Run) -> None:
    stdin = f"{KNOWN[1]} {KNOWN[2]}\n{KNOWN[1]}\n"
    done = run_here("translate", SUBWORDS, "--prefix", "Le", stdin=stdin)
    assert "Line 1 has more sentences" in done.stderr
    assert done.stdout.splitlines()[1].startswith("Le chat")


def test_translations_that_look_wrong_are_counted_and_described(run_here: Run) -> None:
    stdin = f"a\n{KNOWN[0]}\n1234567890\n"
    done = run_here("translate", SUBWORDS, stdin=stdin)
    assert done.returncode == 0
    last = done.stderr.splitlines()[-1]
    assert last.startswith("warning: 2 translations look wrong. Read them, or let --retry search")
    assert "repeating themselves (line 1)" in last
    assert "words for a line without letters (line 3)" in last
    records = [
        json.loads(line)
        for line in run_here("translate", SUBWORDS, "--json", stdin=stdin).stdout.splitlines()
    ]
    assert "repeats" in records[0]["notes"]["flags"]
    assert records[1]["notes"] == {}
    again = run_here("translate", SUBWORDS, "--retry", "--json", stdin=stdin)
    better = [json.loads(line) for line in again.stdout.splitlines()]
    assert better[0]["notes"]["retried"]
    assert "repeats" not in better[0]["notes"]["flags"]
    assert better[1] == records[1]


def test_options_without_effect_are_said_to_have_none(run_here: Run) -> None:
    done = run_here("translate", SUBWORDS, "--unknown", "source-word", stdin="")
    assert "--unknown has no effect" in done.stderr


def test_state_of_an_output_records_how_lines_are_treated() -> None:
    nothing = ConstraintOptions("", (), (), None, {}, {})
    translator = pellucid.load(SUBWORDS)
    options = {"clean": True, "unknown": "token", "retry": False}
    one, *others = (
        TranslationJob(
            translator, {}, nothing, "plain", given_treatment(options | {"split": how}), ()
        ).identify()
        for how in ("sentences", "long", "none")
    )
    assert one["--clean"]
    assert one["--split"] == "sentences"
    assert [other["--split"] for other in others] == ["long", "none"]
