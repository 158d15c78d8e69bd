"""The programs of the guide to Python are short, complete, and run."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from page_code import ROOT, Block, read_blocks
from small_imported import write_imported

import pellucid
from pellucid.corpora import make_split

PAGE = ROOT / "docs" / "guides" / "python.md"
PROGRAMS = read_blocks(PAGE)
LONGEST = 10


def write_what_is_named(folder: Path) -> None:
    """Write the files that the programs name."""
    (folder / "text.en").write_text("The soup was cold.\nThe cat slept.\n", "utf-8")
    rows = [f"{pair.source}\t{pair.target}\n" for pair in make_split("train", count=300)]
    (folder / "pairs.tsv").write_text("".join(rows), "utf-8")


def run_program(block: Block, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a program as a module of its own; what takes minutes takes a few updates."""
    train = pellucid.train

    def train_briefly(texts: str, **choices: Any) -> Any:
        settings = {"training.max_steps": 2, "model.d_model": 32, "data.split": 10}
        settings |= choices["settings"]
        return train(texts, settings=settings, progress=False)

    def convert(folder: str, out: str) -> Any:
        write_imported(Path(out))
        return type("Converted", (), {"model": Path(out)})

    monkeypatch.setattr(pellucid, "train", train_briefly)
    monkeypatch.setattr(pellucid, "convert", convert)
    names: dict[str, Any] = {"__name__": "program"}
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        exec(block.text, names)
    return names | {"shown": shown.getvalue()}


@pytest.mark.usefixtures("no_report")
@pytest.mark.parametrize("block", PROGRAMS, ids=lambda one: str(one.line))
def test_program_runs_and_is_short(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line for line in block.text.splitlines() if line]
    assert len(lines) <= LONGEST
    monkeypatch.chdir(tmp_path)
    write_what_is_named(tmp_path)
    found = run_program(block, monkeypatch)
    if "app" in found:
        found["app"].stop()
    assert found["shown"] or "print" not in block.text or (tmp_path / "text.fr").is_file()


def test_every_program_of_the_guide_is_there() -> None:
    assert len(PROGRAMS) >= 13
