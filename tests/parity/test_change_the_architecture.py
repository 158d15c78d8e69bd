"""The page on changing the architecture: its lines, applied to a copy of the package, work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "change-the-architecture.md"

CHECK = """
import sys
from pathlib import Path

import pellucid
from pellucid.bundle import load_bundle
from pellucid.native.weight_shapes import find_obstacle
from test_trace_parity import CASES, SOURCE, TARGET, assert_equals_numpy, save_random

assert pellucid.__file__.startswith(sys.argv[1]), pellucid.__file__
for case in ("equal lengths", "the paper's"):
    folder = save_random(Path(sys.argv[1]) / case, **CASES[case])
    translator = pellucid.load(folder)
    for given in ({"translation": TARGET}, {"max_length": 7}):
        trace = translator.look(SOURCE, everything=True, float64=True, **given)
        assert_equals_numpy(trace, folder)
        assert not trace.problems
    print(find_obstacle(load_bundle(folder).config.model, "float32"))
    print((trace["encoder.0.self.key"] ** 2).mean(-1).std() < 1e-3)
"""


def read_changes() -> dict[str, list[str]]:
    """The hunks of each file on the page."""
    found: dict[str, list[str]] = {}
    for block in re.findall(r"```diff\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        for part in re.split(r"^--- ", block, flags=re.MULTILINE)[1:]:
            name, *hunks = re.split(r"\n@@\n|\n@@$", part)
            found.setdefault(name, []).extend(hunk.rstrip("\n") for hunk in hunks)
    return found


def apply(hunk: str, text: str) -> str:
    """Replace the lines that a hunk takes away, with those around it, which stand once."""
    lines = hunk.split("\n")
    before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
    after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
    assert text.count(before) == 1, before
    return text.replace(before, after)


def test_changes_on_the_page_are_few_lines() -> None:
    lines = [line for hunks in read_changes().values() for h in hunks for line in h.split("\n")]
    added = [line for line in lines if line.startswith("+")]
    assert 10 < len(added) < 40


def test_changes_on_the_page_make_a_model_that_equals_numpy(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("models", "__pycache__", "*.html")
    shutil.copytree(ROOT / "src" / "pellucid", tmp_path / "src" / "pellucid", ignore=ignored)
    shutil.copytree(ROOT / "tests" / "parity", tmp_path / "tests" / "parity", ignore=ignored)
    for name, hunks in read_changes().items():
        text = (tmp_path / name).read_text(encoding="utf-8")
        for hunk in hunks:
            text = apply(hunk, text)
        (tmp_path / name).write_text(text, encoding="utf-8")
    places = (tmp_path / "src", tmp_path / "tests" / "parity", ROOT / "tests" / "shared")
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:4] == ["model.equal_lengths is True", "True", "None", "False"]
