"""``-o FILE``: its ending decides the form, ``-`` is standard output, and nothing is replaced."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pellucid.cli.outputs import TERMINAL, choose_outputs
from pellucid.errors import InputError

Run = Callable[..., subprocess.CompletedProcess[str]]

SENTENCES = (
    "The pizza came out of the oven and it tasted good.",
    "The cake came out of the oven and it tasted good.",
)
COMMANDS = {
    "attend": ("attend", "pizza", "--page", "all"),
    "claim": ("claim", "scale", "--size", "toy"),
    "inspect": ("inspect", "demo"),
    "patch": ("patch", "demo", *SENTENCES, "--row", "0"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_dash_is_standard_output_and_json_the_same_in_a_file(
    run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    command = COMMANDS[name]
    assert run_here(*command, "-o", "-").stdout == run_here(*command).stdout
    assert not list(tmp_path.iterdir())
    done = run_here(*command, "--json", "-o", "x.json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((tmp_path / "x.json").read_text("utf-8"))
    assert run_here(*command, "-o", "x.json").returncode == 2
    again = run_here(*command, "-o", "x.json", "--overwrite")
    assert (again.returncode, again.stdout) == (0, "")


def test_forms_follow_from_endings_and_flags(tmp_path: Path) -> None:
    known = ("html", "csv", "npz", "txt")
    assert choose_outputs(None, known, overwrite=False) == TERMINAL
    names = [str(tmp_path / name) for name in ("a.CSV", "b.html.gz", "c.txt")]
    found = choose_outputs(names, known, overwrite=False)
    assert list(found.files.values()) == ["csv", "html", "text"]
    assert found.standard is None
    assert choose_outputs(names, known, overwrite=False, csv=True).standard == "csv"
    assert choose_outputs(["-"], known, overwrite=False).standard == "text"
    device = choose_outputs(["/dev/null"], known, overwrite=False, csv=True)
    assert list(device.files.values()) == ["csv"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a.docx"], "must end in .html or .npz, but is named a.docx"),
        (["a.npz.gz"], "NumPy does not unpack .gz"),
        (["a.html", "a.html"], "must have its own file, but .*a.html is named twice"),
        (["no/a.html"], "folder must exist"),
        (["is.html"], "must be a new file"),
        (["/dev/null"], "must end in"),
    ],
)
def test_outputs_that_cannot_be_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "is.html").touch()
    with pytest.raises(InputError, match=said):
        choose_outputs(names, ("html", "npz"), overwrite=False)


@pytest.mark.parametrize(
    ("command", "form", "begins"),
    [
        (("look", "demo", "The dog"), "html", b"<!doctype html>"),
        (("look", "demo", "The dog"), "npz", b"PK"),
        (("attend", "pizza"), "html", b"<!doctype html>"),
        (("inspect", "demo", "--draw", "whole"), "svg", b"<svg"),
    ],
)
def test_standard_output_takes_every_form(
    command: tuple[str, ...],
    form: str,
    begins: bytes,
    tmp_path: Path,
) -> None:
    words = [sys.executable, "-m", "pellucid", *command, "-o", f"-.{form}"]
    done = subprocess.run(words, capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(begins)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-o", "-.xyz"), "must end in .html"),
        (("-o", "-.html.gz"), "Standard output is not packed"),
        (("-o", "-.html", "-o", "-.npz"), "Standard output takes one form"),
        (("-o", "-.npz", "--beam", "2", "--n-best", "2"), "--n-best writes several files"),
    ],
)
def test_forms_that_standard_output_cannot_take_are_refused(
    run_here: Run, words: tuple[str, ...], said: str
) -> None:
    done = run_here("look", "demo", "The dog", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
