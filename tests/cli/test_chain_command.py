"""`pellucid translate fr-en,en-de` as people type it: lines, JSON, links, documents, refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from relabeled import relabel

PO = """msgid "The %s was cold."
msgstr ""

msgid "The cat slept."
msgstr ""
"""
HTML = "<p>The <b>soup</b> was cold.</p>\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for pair in ("fr-en", "en-de", "de-it"):
        relabel(folder / pair, *pair.split("-"))
    return folder


def run(folder: Path, *given: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pellucid", *given],
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_lines_json_and_links_go_through_both_models(folder: Path) -> None:
    text = "The soup was cold.\nThe cat slept.\n"
    middle = run(folder, "translate", "fr-en", text=text).stdout
    last = run(folder, "translate", "en-de", text=middle)
    done = run(folder, "translate", "fr-en,en-de", text=text)
    assert done.returncode == 0
    assert done.stdout == last.stdout
    # The second model says what it does not know, by its name.
    assert "warning: en-de: 2 lines (1, 2) have words" in done.stderr
    assert "fr-en:" not in done.stderr

    records = [
        json.loads(line)
        for line in run(folder, "translate", "fr-en,en-de", "--json", text=text).stdout.splitlines()
    ]
    assert [one["through"][0]["translation"] for one in records] == middle.splitlines()
    n_best = ("--beam", "2", "--n-best", "2", "--align")
    rows = run(folder, "translate", "fr-en,en-de", *n_best, text=text).stdout.splitlines()
    assert [row.split(" ||| ")[0] for row in rows] == ["0", "0", "1", "1"]
    assert all(len(row.split(" ||| ")) == 5 for row in rows)


def test_documents_keep_tags_and_placeholders_through_both(folder: Path) -> None:
    (folder / "a.html").write_text(HTML, encoding="utf-8")
    done = run(folder, "translate", "fr-en,en-de", "-i", "a.html")
    assert done.returncode == 0
    assert done.stdout.count("<b>") == done.stdout.count("</b>") == 1
    (folder / "a.po").write_text(PO, encoding="utf-8")
    done = run(
        folder, "translate", "fr-en,en-de", "-i", "a.po", "-o", "b.po", "--report", "r.jsonl"
    )
    assert done.returncode == 0
    assert (folder / "b.po").read_text(encoding="utf-8").count("%s") == 2
    report = [json.loads(line) for line in (folder / "r.jsonl").open(encoding="utf-8")]
    (middle,) = report[0]["middle"]
    assert middle[0].startswith("Le %s ")


def test_json_lines_get_the_middle_text(folder: Path) -> None:
    line = json.dumps({"source": "The cat slept."}) + "\n"
    given = ("--format", "jsonl", "--json")
    found = json.loads(run(folder, "translate", "fr-en,en-de", *given, text=line).stdout)
    assert found["through"][0]["translation"] == "Le chat a dormi."


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("translate", "fr-en,de-it"), "fr-en writes en and de-it reads de"),
        (("translate", "fr-en,nowhere"), "nowhere does not exist"),
        (("translate", "fr-en,en-de", "--ensemble", "en-de"), "--ensemble cannot be combined"),
        (
            ("translate", "fr-en,en-de", "--align", "--align-head", "decoder.1"),
            "each has heads of its own",
        ),
        (("look", "fr-en,en-de", "The cat slept."), "Name one: fr-en"),
        (("serve", "x=fr-en,en-de"), "write pellucid serve fr-en en-de"),
    ],
)
def test_what_cannot_be_chained_is_refused_in_a_sentence(
    folder: Path, given: tuple[str, ...], said: str
) -> None:
    before = sorted(folder.iterdir())
    done = run(folder, *given, text="The cat slept.\n")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert sorted(folder.iterdir()) == before
