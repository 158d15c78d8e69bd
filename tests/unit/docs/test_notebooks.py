"""The notebooks show what their cells show, and the exercises of the course can be solved."""

from __future__ import annotations

import json
import re
import runpy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
MAKE = runpy.run_path(str(ROOT / "docs" / "make_notebook.py"))

pytestmark = pytest.mark.timeout(400)  # a course of 15 s, longer on a busy machine

Cells = list[dict[str, Any]]


@pytest.fixture(scope="module")
def course() -> Cells:
    cells: Cells = read("course")["cells"]
    return cells


def test_notebook_shows_what_its_cells_show() -> None:
    notebook = read("notebook")
    assert sum(cell["cell_type"] == "code" for cell in notebook["cells"]) > 3
    made = MAKE["completed"](notebook)
    shown, wanted = (without_rounding(one) for one in (made, notebook))
    assert shown == wanted, "run `python docs/make_notebook.py`"


def test_course_with_each_solution_in_the_cell_of_its_exercise_shows_the_same(
    course: Cells,
) -> None:
    # A student who solves the exercises must not break the cells that follow.
    solved = solve(course)
    assert [cell["id"] for cell in solved] != [cell["id"] for cell in course]
    made = MAKE["completed"]({"cells": solved})["cells"]
    for given, found in zip(solved, made, strict=True):
        outputs = [without_counts(one.get("outputs", [])) for one in (found, given)]
        assert outputs[0] == outputs[1], f"{given['id']}: run `python docs/make_notebook.py`"


def test_course_takes_two_hours_and_its_exercises_fit_into_their_parts(course: Cells) -> None:
    text = "\n".join(source(cell) for cell in course if cell["cell_type"] == "markdown")
    in_table = re.findall(r"^\| (\d) \| .* \| (\d+) \|$", text, flags=re.MULTILINE)
    in_headings = re.findall(r"^## (\d)\. .*\((\d+) minutes\)$", text, flags=re.MULTILINE)
    assert in_table == in_headings
    assert sum(int(minutes) for _, minutes in in_table) == 120
    for part in re.split(r"^## (?=\d\.)", text, flags=re.MULTILINE)[1:]:
        minutes = re.findall(r"\((\d+) minutes\)", part.split("\n## ")[0])
        assert sum(map(int, minutes[1:])) < int(minutes[0])


def test_every_exercise_has_an_empty_cell_and_a_solution_that_is_folded(course: Cells) -> None:
    texts = [source(cell) for cell in course if cell["cell_type"] == "markdown"]
    numbers = re.findall(r"\*\*Exercise (\d)\*\*", "\n".join(texts))
    assert numbers == [str(number) for number in range(1, 10)]
    assert list(empty_cells(course)) == numbers
    solutions = solution_cells(course)
    assert list(solutions) == numbers
    folded = [cell["metadata"]["jupyter"]["source_hidden"] for cell in solutions.values()]
    assert all(folded)


def test_guard_an_output_that_no_cell_shows_is_found(course: Cells) -> None:
    first = next(cell for cell in course if cell.get("outputs"))
    wrong = json.loads(json.dumps(first))
    wrong["outputs"][0]["text"] = ["Le gâteau.\n"]
    (made,) = MAKE["completed"]({"cells": [wrong]})["cells"]
    assert without_counts(made["outputs"]) == without_counts(first["outputs"])
    assert without_counts(made["outputs"]) != without_counts(wrong["outputs"])


def solve(cells: Cells) -> Cells:
    """Put each solution where the empty cell of its exercise is, and leave out the end."""
    solutions = solution_cells(cells)
    empty = {cell["id"]: number for number, cell in empty_cells(cells).items()}
    moved = [cell["id"] for cell in solutions.values()]
    kept = [cell for cell in cells if cell["id"] not in moved]
    return [solutions[empty[cell["id"]]] if cell["id"] in empty else cell for cell in kept]


def empty_cells(cells: Cells) -> dict[str, dict[str, Any]]:
    """Return the cells in which students write, by the numbers of the exercises."""
    found = {}
    for cell in cells:
        if match := re.match(r"# Exercise (\d)", source(cell)):
            assert all(line.startswith("#") for line in source(cell).splitlines())
            found[match[1]] = cell
    return found


def solution_cells(cells: Cells) -> dict[str, dict[str, Any]]:
    """Return the code after each text that begins with the number of an exercise."""
    found = {}
    for text, code in pairwise(cells):
        if match := re.match(r"\*\*(\d)\.\*\*", source(text)):
            found[match[1]] = code
    return found


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def read(name: str) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(MAKE["NOTEBOOKS"][name].read_text(encoding="utf-8"))
    return notebook


def without_rounding(value: Any) -> str:
    """Write a value as JSON; what is left of rounding depends on processor and threads."""
    return re.sub(r"\b\d\.\de-1[4-9]\b", "about 1e-16", json.dumps(value))


def without_counts(outputs: list[dict[str, Any]]) -> str:
    """Write outputs without the numbers of their cells."""
    return without_rounding(
        [{key: one[key] for key in one if key != "execution_count"} for one in outputs]
    )
