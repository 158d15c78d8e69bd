"""The demo as a whole, from its corpus to the report, at a size for tests."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import pellucid.demo
from pellucid.bundle import load_bundle
from pellucid.demo import run_demo
from pellucid.errors import ConfigurationError

COUNTS = {"train": 400, "validation": 12, "test": 11, "compositional": 13, "pronoun": 10}
CHANGES = ["training.max_steps=3", "training.validate_every=3"]
RECIPE = Path(str(files("pellucid") / "recipes" / "tiny-en-fr.toml"))


@pytest.fixture(autouse=True)
def _small_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pellucid.demo.make_split

    def part(name: str, *, seed: int = 1, count: int | None = None) -> object:
        return whole(name, seed=seed, count=COUNTS[name])  # type: ignore[arg-type]

    monkeypatch.setattr(pellucid.demo, "make_split", part)


@pytest.mark.report
def test_demo_leaves_a_bundle_a_report_and_a_page_and_shows_them_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "demo [new] <b>&"
    run_demo(out, recipe_file=RECIPE, changes=CHANGES)
    said = capsys.readouterr()
    first = said.out
    assert "demo [new] <b>&" in said.err.replace("\n", " ")
    for part in ("Translated exactly", "pronoun", "nearest noun", "The European Economic Area"):
        assert part in first
    assert "reads" in first
    num_weights = sum(p.numel() for p in load_bundle(out / "bundle").model.parameters())
    assert num_weights <= 640_000
    page = (out / "demo.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|<script|<link|@import|url\(", page)
    assert "The European Economic Area" in page
    assert "<b>" not in page
    look = (out / "look.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in look
    assert "all ten are in the training text" in look
    assert '"source_vocabulary"' in look, "the page runs the new model itself"
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "Training report" in report, "the demo's own page takes the place of the report"
    run_demo(out, recipe_file=RECIPE, changes=CHANGES)
    again = capsys.readouterr().out
    assert again == first


def test_demo_into_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ConfigurationError, match="holds something else"):
        run_demo(tmp_path, recipe_file=RECIPE, changes=CHANGES)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
