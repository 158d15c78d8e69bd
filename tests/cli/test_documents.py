"""``pellucid translate`` and ``train`` given documents instead of lines."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pellucid.text.reading.rows import kind_of_document

Run = Callable[..., subprocess.CompletedProcess[str]]

PO = 'msgid "The soup is good."\nmsgstr ""\n'


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fr.po", "a gettext catalog"),
        ("a/in.XLF", "a file of translation units"),
        ("in.tmx", "a file of translation units"),
        ("in.srt", "subtitles"),
        ("in.html", "a page with markup"),
        ("in.csv", "a table"),
        ("README.md", "text with markup"),
        ("talk.vtt.gz", "subtitles"),
        ("report.docx", "a document with a layout"),
        ("strings.resx", "a file of an interface's texts"),
        ("in.txt", None),
        ("train.en.gz", None),
        ("train.ts", None),
        ("lines", None),
        ("html", None),
        (".md", None),
        ("page.html.txt", None),
        ("-", None),
    ],
)
def test_kind_of_document_is_told_by_the_ending(name: str, kind: str | None) -> None:
    assert kind_of_document(name) == kind


@pytest.mark.parametrize("name", ["in.pdf", "in.rst.gz", "in.docx"])
def test_document_is_refused_before_the_model_is_loaded(
    run_here: Run, write_lines: Callable[..., str], name: str
) -> None:
    path = write_lines(name, PO)
    done = run_here("translate", "no-such-model", "-i", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert (
        f"must be lines of text, JSON Lines or a document that can be read (see --format), but "
        f"{path} is {kind_of_document(name)}" in done.stderr
    )
    assert "--format lines" in done.stderr


def test_document_is_translated_line_by_line_on_request(
    run_here: Run, write_lines: Callable[..., str]
) -> None:
    path = write_lines("in.md", "The soup is good.", "", "The soup is good.")
    done = run_here("translate", "demo", "-i", path, "--format", "lines")
    assert (done.returncode, done.stderr) == (0, "")
    first, empty, last = done.stdout.splitlines()
    assert first == last != empty == ""


def test_training_on_a_document_says_what_it_is(tmp_path: Path, run_here: Run) -> None:
    (tmp_path / "in.po").write_text(PO)
    recipe = tmp_path / "r.toml"
    recipe.write_text('[data]\ntrain = "in.po"\nvalidation = "in.po"\n')
    done = run_here("train", str(recipe), "--check")
    assert done.returncode == 2
    assert "'in.po' (data.validation). It is a gettext catalog" in done.stderr
    assert "Rename it" not in done.stderr
