"""Each live picture names a cell, and the lesson says what cutting it does."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pellucid
from pellucid import Translator
from pellucid.errors import InputError
from pellucid.lessons.walks.walk import NAMES, SENTENCE, Statement, load_walk, read_outputs

_SCRIPT = runpy.run_path(str(Path(__file__).parents[3] / "docs/lessons/live_cells.py"))
find_cells = _SCRIPT["find_cells"]
say_cut = _SCRIPT["say_cut"]
_RECORDED = read_outputs()["walks"]
NAMED = read_outputs()["cells"]
"""The cells that differ between models, found when the outputs were recorded."""
DECIDES, _, _PLACES = NAMED["pronoun"].partition(":")
ROW = _PLACES.partition(">")[0]
OTHER = {"it": "tasted", "tasted": "it"}[ROW]
"""The word whose line the model does not need, though a reader may expect that it does."""
LIVE = [
    (one, shown["cut"])
    for name in NAMES
    for one, shown in zip(load_walk(name).statements, _RECORDED[name], strict=True)
    if one.live
]
# Several statements show one cell.
CELLS = {(one.sentence, one.live.split()[1]): (one, said) for one, said in LIVE}


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo", precision="float32")


def test_recorded_cells_are_those_that_decide_in_the_packaged_model(demo: Translator) -> None:
    assert find_cells(demo) == NAMED, "run make docs"


def test_lessons_of_a_model_without_a_line_that_decides_are_refused() -> None:
    with pytest.raises(InputError, match="none does in this model"):
        find_cells(pellucid.load("demo-untrained", precision="float32"))


def test_every_live_picture_names_a_row_and_says_what_its_cut_does(demo: Translator) -> None:
    assert len(LIVE) >= 97
    unknown = demo.tokenizer.config.unk_id
    for one, said in LIVE:
        is_shown = unknown not in demo.tokenizer.encode_source(one.sentence)
        assert ":" in one.live.split()[1], one.live
        assert bool(said) == is_shown, one.live


def test_most_live_pictures_show_a_line_that_turns_the_word() -> None:
    turning = Counter("becomes “il”" in said and "stays" not in said for _, said in LIVE)
    assert turning[True] >= 55, turning
    # No picture claims a line that does nothing without saying so.
    silent = [one.live for one, said in LIVE if said and not turning_or_said(said)]
    assert not silent


def turning_or_said(said: str) -> bool:
    return any(word in said for word in ("becomes", "stays the same", "words are added", "forbids"))


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell[0][:20]} {cell[1]}")
def test_model_does_what_the_lesson_says_of_the_cut(
    cell: tuple[str, str], demo: Translator
) -> None:
    statement, said = CELLS[cell]
    assert say_cut(demo, statement) == said


def test_slide_of_it_and_pizza_cuts_both_lines(demo: Translator) -> None:
    text = "The pizza came out of the oven and it tasted good."
    commands = load_walk("slides").statements[6].to_try
    written = []
    for command in commands:
        change = command.rpartition("--change ")[2].strip('"')
        written.append(demo.pair(text).what_if(change).after.text)
    # The commands cut the line of *it*, then that of *tasted*.
    assert [" il " in one for one in written] == [ROW == "it", ROW == "tasted"]
    assert [" elle " in one for one in written] == [ROW != "it", ROW != "tasted"]


def test_arithmetic_of_live_pictures_is_that_of_the_trace(demo: Translator) -> None:
    shown = {cell: one for cell, one in CELLS.items() if one[0].live.startswith("arithmetic")}
    assert shown
    for (sentence, place), _ in shown.items():
        part, layer, kind, head = place.partition(":")[0].split(".")
        trace = demo.look(sentence, everything=True)
        site = f"{part}.{layer}.{kind}"
        query, key, value, context = (
            trace[f"{site}.{name}"][int(head)] for name in ("query", "key", "value", "context")
        )
        scores = query @ key.T
        exponentials = np.exp(scores / np.sqrt(query.shape[-1]))
        weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(trace[f"{site}.scores"][int(head)], scores, atol=1e-5)
        np.testing.assert_allclose(trace[f"{site}.weights"][int(head)], weights, atol=1e-6)
        np.testing.assert_allclose(context, weights @ value, atol=1e-5)


def test_cut_that_is_wrong_is_noticed(demo: Translator) -> None:
    statement, said = CELLS[SENTENCE, NAMED["pronoun"]]
    other = Statement(**{**vars(statement), "live": f"head {DECIDES}:{OTHER}>pizza"})
    assert say_cut(demo, other) != said
