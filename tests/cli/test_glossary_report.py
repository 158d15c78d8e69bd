"""A glossary in documents and lines, by the packaged model: what is written and reported."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import polib
import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]

TERMS = ("source,target,case", "dog,chien|*free*", "pizza,tarte|*free*", "soup,potage", "cat,chat")
TEXTS = ("The dogs are red.", "Dogs eat pizzas.", "The soup was cold.", "Cat", "The door is open.")


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    path = tmp_path / "app.po"
    path.write_text("\n".join(f'msgid "{one}"\nmsgstr ""\n' for one in TEXTS))
    return path


def command(tmp_path: Path, write_lines: WriteLines, report: str) -> tuple[str, ...]:
    glossary = ("--glossary", write_lines("terms.csv", *TERMS), "--set", "glossary.match=forms")
    files = ("-i", str(tmp_path / "app.po"), "-o", str(tmp_path / "fr.po"))
    return ("translate", "demo", *files, *glossary, "--report", str(tmp_path / report))


def test_report_says_for_each_text_and_term_what_became_of_it(
    run_here: Run, catalog: Path, write_lines: WriteLines, tmp_path: Path
) -> None:
    done = run_here(*command(tmp_path, write_lines, "r.jsonl"), "--mark", "unsure")
    assert done.returncode == 0, done.stderr
    written = polib.pofile(str(tmp_path / "fr.po"))
    assert [one.msgstr for one in written][:3] == [
        "Les chiens sont rouges.",
        "Les chiens mangent des tartes.",
        "La soupe était froide.",
    ]
    assert [one.fuzzy for one in written] == [False, True, True, True, False]
    *rows, last = map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines())
    assert [row["reason"].split(" (")[0].lower() for row in rows] == [
        "check a glossary term: “tartes”",
        "a term of the glossary is missing: soup → potage",
        "check a glossary term: “chat”",
    ]
    assert "times less likely than “Les chiens mangent des pizzas.”" in rows[0]["reason"]
    assert [one["outcome"] for one in rows[0]["terms"]] == ["form", "form"]
    assert [row["reasons"][0] for row in rows] == [row["reason"] for row in rows]
    counted = {
        one["source"]: (one["hits"], one["forms"], one["misses"]) for one in last["glossary"]
    }
    assert counted == {
        "dog": (0, {"chiens": 2}, {}),
        "pizza": (0, {"tartes": 1}, {}),
        "soup": (0, {}, {"the model's vocabulary lacks a part of it": 1}),
        "cat": (1, {}, {}),
    }
    assert written[3].msgstr.lower() == "chat"
    assert "note: Glossary: 5 terms were found in 4 of 5 texts." in done.stderr
    assert "dog → chiens (allowed form of chien), twice" in done.stderr
    assert "soup → potage (the model's vocabulary lacks a part of it)." in done.stderr


def test_placeholder_that_was_put_back_is_not_reported_as_missing(
    run_here: Run, catalog: Path, write_lines: WriteLines, tmp_path: Path
) -> None:
    texts = (
        "The old man sees %d dogs in the <b>garden</b>.",
        "With %d pictures",
        "With %d friends",
        "The soup of %d cats",
    )
    catalog.write_text("\n".join(f'msgid "{one}"\nmsgstr ""\n' for one in texts))
    done = run_here(*command(tmp_path, write_lines, "r.jsonl"))
    *rows, _ = map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines())
    put_back = "placeholders were lost, and stand where word links put them"
    reasons = [row["reasons"] for row in rows if put_back in row["reasons"]]
    # A model loses the placeholders of some of these texts.
    assert reasons
    assert not any("%d" in reason for row in reasons for reason in row)
    assert '"%d"' not in done.stderr


def test_each_reason_of_a_text_is_in_the_report_and_the_first_one_first(
    run_here: Run, catalog: Path, write_lines: WriteLines, tmp_path: Path
) -> None:
    catalog.write_text('msgid "The soup of the cat zyx."\nmsgstr ""\n')
    assert run_here(*command(tmp_path, write_lines, "r.jsonl")).returncode == 0
    row = json.loads((tmp_path / "r.jsonl").read_text().splitlines()[0])
    kinds = [one.split(":")[0] for one in row["reasons"]]
    assert row["reason"] == row["reasons"][0]
    assert kinds[0] == "a term of the glossary is missing"
    assert kinds[-1] == "unknown to the model"


def test_page_has_a_table_of_terms(
    run_here: Run, catalog: Path, write_lines: WriteLines, tmp_path: Path
) -> None:
    assert run_here(*command(tmp_path, write_lines, "r.html")).returncode == 0
    page = (tmp_path / "r.html").read_text()
    assert "4 terms of the glossary" in page
    assert "<td>dog</td><td>chien</td><td>0</td><td>chiens (2×)</td><td></td>" in page
    assert "<td>1 × not in the model&#x27;s vocabulary</td>" in page


def test_folder_counts_the_terms_of_all_files(
    run_here: Run, write_lines: WriteLines, tmp_path: Path
) -> None:
    (tmp_path / "en").mkdir()
    for name in ("a", "b"):
        (tmp_path / "en" / f"{name}.json").write_text('{"a": "The dogs are red.", "b": "The cat."}')
    glossary = ("--glossary", write_lines("terms.csv", *TERMS), "--set", "glossary.match=forms")
    places = (str(tmp_path / "en"), "-o", str(tmp_path / "fr"))
    done = run_here("translate", "demo", *places, *glossary, "--report", str(tmp_path / "r.jsonl"))
    assert done.returncode == 0, done.stderr
    last = json.loads((tmp_path / "r.jsonl").read_text().splitlines()[-1])
    assert {
        one["source"]: one["hits"] + sum(one["forms"].values()) for one in last["glossary"]
    } == {
        "dog": 2,
        "cat": 2,
    }


def test_json_has_the_terms_of_each_line(run_here: Run, write_lines: WriteLines) -> None:
    glossary = write_lines("g.tsv", "dog\tchien|*free*")
    words = ("--glossary", glossary, "--set", "glossary.match=forms", "--json")
    done = run_here("translate", "demo", *words, stdin="The dogs are red.\nThe door.\n")
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["terms"] == [
        {"source": "dog", "target": "chien", "outcome": "form", "written": "chiens"}
    ]
    assert "terms" not in second


def test_translation_that_has_its_terms_is_the_one_without_a_glossary(
    run_here: Run, write_lines: WriteLines
) -> None:
    text = "The dog ate the soup. The cat sees the old house.\n"
    glossary = write_lines("g.tsv", "dog\tchien", "soup\tsoupe", "old house\tvieille maison")
    plain = run_here("translate", "demo", "--json", stdin=text)
    held = run_here("translate", "demo", "--json", "--glossary", glossary, stdin=text)
    plain_object, held_object = json.loads(plain.stdout), json.loads(held.stdout)
    assert [one["outcome"] for one in held_object.pop("terms")] == ["hit"] * 3
    assert held_object == plain_object
