"""``pellucid vectors``: the file, the exit codes, and standard output."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pellucid
from pellucid.inside import load_vectors

Run = Callable[..., subprocess.CompletedProcess[str]]
LINES = "The pizza came out of the oven and it tasted good.\n\nThe dog ate it.\n"
PLACE = ("--at", "encoder.1.feed_forward.norm")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.en").write_text(LINES)
    return tmp_path


def test_line_that_fails_is_named_and_the_others_are_written(run_here: Run) -> None:
    done = run_here(
        *("vectors", "demo", "--source", "a.en", *PLACE, "--words", "it", "-o", "x.npz")
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: line 2: ")
    assert done.stderr.count("\n") == 1
    found = load_vectors("x.npz")
    assert found.rows[["line", "position", "word", "text", "token"]].tolist() == [
        *((0, 8, 8, "it", "it"), (2, 3, 3, "it", "it"))
    ]
    again = run_here("vectors", "demo", "--source", "a.en", *PLACE, "-o", "x.npz")
    assert again.returncode == 2
    assert "add --overwrite" in again.stderr


def test_pairs_give_the_translations(run_here: Run) -> None:
    Path("pairs.tsv").write_text("The dog ate it.\tLe chien la dévora.\n")
    done = run_here("vectors", "demo", "pairs.tsv", "--at", "decoder.1.cross.0", "-o", "x.npz")
    assert (done.returncode, done.stderr) == (0, "")
    assert load_vectors("x.npz").rows["text"].tolist()[:3] == ["Le", "chien", "la"]


def test_changes_are_those_of_the_function_and_are_named(run_here: Run) -> None:
    Path("b.en").write_text("The dog ate it.\n")
    changes = ("average encoder.1.self.*", "cut encoder.0.self.2")
    given = [word for change in changes for word in ("--change", change)]
    done = run_here("vectors", "demo", "--source", "b.en", *PLACE, *given, "-o", "x.npz")
    assert (done.returncode, done.stderr) == (0, "")
    found = load_vectors("x.npz")
    assert found.about["changes"] == ", ".join(changes)
    wanted = pellucid.load("demo").changed(changes).pair("The dog ate it.").see({"norm"})[PLACE[1]]
    np.testing.assert_allclose(found.vectors, wanted.numpy(), atol=2e-5)


def test_standard_output_gets_the_file() -> None:
    Path("b.en").write_text("The dog ate it.\n")
    program = "import sys; from pellucid.cli.main import run; sys.exit(run(sys.argv[1:]))"
    command = ("-c", program, "vectors", "demo", "--source", "b.en", *PLACE, "-o", "-.npz")
    done = subprocess.run([sys.executable, *command], capture_output=True, check=True)
    with np.load(io.BytesIO(done.stdout)) as file:
        assert file["vectors"].shape == (6, 96)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--source", "a.en", *PLACE), "Give one -o FILE."),
        (("--source", "a.en", *PLACE, "-o", "-"), "Give -o -.npz, which says the form."),
        (("--source", "a.en", "-o", "x.npz"), "Give --at PLACE."),
        (("--source", "a.en", *PLACE, "-o", "x.zarr"), "must end in .npz or .parquet, but"),
        (("--source", "a.en", *PLACE, "-o", "no/x.npz"), "no does not"),
        (("a.en", "one.fr", *PLACE, "-o", "x.npz"), "must have equally many lines"),
        (("--source", "empty.en", *PLACE, "-o", "x.npz"), "at least one line"),
        (("--source", "a.en", "--at", "encoder.2", "-o", "x.npz"), "Did you mean"),
        (("--source", "a.en", *PLACE, "--words", "pizzas", "-o", "x.npz"), "Did you mean 'pizza'?"),
    ],
)
def test_mistake_is_one_sentence(run_here: Run, arguments: tuple[str, ...], sentence: str) -> None:
    Path("empty.en").touch()
    Path("one.fr").write_text("Une ligne.\n")
    done = run_here("vectors", "demo", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path("x.npz").exists()
