"""The size of every room is written down, and no room outgrows it unnoticed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ALLOWED_GROWTH = 0.05
MOST_FILES_IN_FOLDER = 18


@pytest.fixture(scope="module")
def sizes() -> ModuleType:
    """The script that counts."""
    spec = importlib.util.spec_from_file_location("sizes", Path(__file__).parent / "sizes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_outgrown(
    written: dict[str, tuple[int, int]], counted: dict[str, tuple[int, int]]
) -> list[str]:
    """List the rooms that are larger than written down, or not written down."""
    found = []
    for room, (lines, _) in counted.items():
        most = int(written.get(room, (0, 0))[0] * (1 + ALLOWED_GROWTH))
        if lines > most:
            found.append(
                f"{room} has {lines:,} lines, more than {most:,}. Make it smaller, or say why in "
                "the commit that raises its figure: make size"
            )
    return found


def test_no_room_outgrows_its_figure(sizes: ModuleType, root: Path) -> None:
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    written = sizes.read_table(page)
    counted = sizes.count_rooms(root / "src" / "pellucid")
    outgrown = find_outgrown(written, counted)
    assert not outgrown, "\n".join(outgrown)
    assert set(written) == {*counted, "all"}


def test_no_folder_holds_more_files_than_can_be_overseen(root: Path) -> None:
    package = root / "src" / "pellucid"
    folders = {path.parent for path in package.rglob("*.py")}
    counts = {
        str(folder.relative_to(package)): sum(
            path.name != "__init__.py" for path in folder.glob("*.py")
        )
        for folder in folders
    }
    full = {folder: count for folder, count in counts.items() if count > MOST_FILES_IN_FOLDER}
    assert not full, full


def test_guard_outgrown_and_unknown_rooms_are_found() -> None:
    assert find_outgrown({"model": (100, 3)}, {"model": (106, 3)})
    assert find_outgrown({}, {"model": (1, 1)})
    assert not find_outgrown({"model": (100, 3)}, {"model": (105, 3)})


def test_guard_docstrings_comments_and_blank_lines_do_not_count(sizes: ModuleType) -> None:
    source = '"""A\nmodule."""\n\n# a comment\nX = """one\ntwo"""\n\n\ndef f():\n    """Do."""\n'
    assert sizes.count_lines(source) == 3
