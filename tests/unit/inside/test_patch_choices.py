"""What a patch asks about: a word, a row, a metric; and maps that save and show themselves."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor

import pellucid
from pellucid.errors import DataError, InputError
from pellucid.inside import Pair, measure, patch, patch_corpus
from pellucid.inside.patches import two_runs
from pellucid.translate.translator import Translator

A, B = (f"The {one} came out of the oven and it tasted good." for one in ("pizza", "cake"))


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


@pytest.fixture(scope="module")
def pairs(demo: Translator) -> tuple[Pair, Pair]:
    return demo.pair(A, float64=True), demo.pair(B, float64=True)


def test_patch_asks_about_a_word_as_the_command_does(
    demo: Translator, pairs: tuple[Pair, Pair]
) -> None:
    found = patch(*pairs, why="elle", other="il")
    assert found.title == "patching, encoder, elle against il"
    # By hand: B reads A's beginning, so that the pronouns are the first difference.
    written = demo.translate(A).text
    by_hand = demo.pair(B, written.replace("elle", "il"), float64=True)
    np.testing.assert_allclose(found.matrix, patch(pairs[0], by_hand).matrix, atol=1e-12)
    number = pairs[0].predicted_tokens.index("elle")
    assert patch(*pairs, why=number, other="il").title == found.title
    again = pairs[1].patch(pairs[0], why="elle", other="il")
    np.testing.assert_array_equal(again.matrix, found.matrix)


@pytest.mark.parametrize("site", ["encoder.0", "encoder.1.self.2.value", "decoder.0.cross.context"])
def test_patches_of_a_batch_equal_patches_one_by_one(
    pairs: tuple[Pair, Pair], site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = patch(*pairs, site, why="elle", other="il")
    # A batch never has less than one sentence.
    monkeypatch.setattr(two_runs, "MOST_TOKENS", 1)
    alone = patch(*pairs, site, why="elle", other="il")
    np.testing.assert_allclose(together.matrix, alone.matrix, atol=1e-12)
    assert np.abs(together.matrix).max() > 0.01


def test_patch_asks_about_a_row_or_a_metric(pairs: tuple[Pair, Pair]) -> None:
    a, b = pairs
    ids = a.target_ids[0], b.target_ids[0]
    plain = patch(a, b, row=0)

    def difference(logits: Tensor) -> Tensor:
        assert logits.ndim == 1
        return logits[ids[0]] - logits[ids[1]]

    own = patch(a, b, "encoder", row=0, metric=difference)
    np.testing.assert_allclose(own.matrix, plain.matrix, atol=1e-12)
    assert own.title == "patching, encoder, difference"
    last = patch(a, b, iter(["encoder.1"]), row=len(a.target_ids) - 1, metric=lambda x: x.max())
    assert last.matrix.shape[0] == 1


def test_patch_warns_that_there_are_other_differences(pairs: tuple[Pair, Pair]) -> None:
    with pytest.warns(UserWarning, match=r"differ in \d places, and .* the first: La against Le"):
        patch(*pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        patch(*pairs, row=0)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"why": "ell", "other": "il"}, "The word to explain must be one of the translation"),
        ({"other": "il"}, "other needs why"),
        ({"why": "elle", "row": 1}, "why cannot be combined with row"),
        ({"row": 99}, "row must be from 0 to"),
        ({"row": 2}, "Row 2 must predict different tokens"),
        ({"row": 0, "metric": lambda logits: logits}, "one finite number of the logits"),
        ({"row": 0, "metric": lambda logits: 1.0}, "differ in their"),
        ({"row": 0, "sites": []}, "No site was given"),
        ({"row": 0, "positions": []}, "No position was given"),
        ({"row": 0, "sites": "encodr.0"}, "Did you mean 'encoder.0'"),
    ],
)
def test_choice_without_a_meaning_is_refused(
    pairs: tuple[Pair, Pair], asked: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        patch(*pairs, **asked)


def test_corpus_is_patched_for_a_word_of_each_pair(demo: Translator) -> None:
    lines = [A, B, A.replace("good", "bad"), B.replace("good", "bad")]
    found = patch_corpus(demo, iter(lines), why="elle", other="il", words="it")
    assert found.num_pairs == 2
    column = found.shares.columns.index("it")
    assert found.shares.values[-1, column] > 0.8
    each = patch_corpus(demo, lines, why=["elle", "elle"], other=["il", "il"], words=["it"])
    np.testing.assert_array_equal(each.shares.values, found.shares.values)
    part = patch_corpus(demo, lines, why=["elle", "nothing"], other="il")
    assert part.num_pairs == 1
    assert "lines 3 and 4" in part.left_out[0]
    with pytest.raises(DataError, match="why must be one for each of 2 pairs"):
        patch_corpus(demo, lines, why=["elle"])


def test_map_saves_and_shows_itself(
    pairs: tuple[Pair, Pair], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = patch(*pairs, row=0)
    for ending in ("svg", "png", "csv"):
        found.save(tmp_path / f"map.{ending}")
        assert (tmp_path / f"map.{ending}").stat().st_size > 100
    rows = list(csv.reader((tmp_path / "map.csv").read_text("utf-8").splitlines()))
    assert tuple(rows[0][1:]) == found.column_labels
    assert tuple(row[0] for row in rows[1:]) == found.row_labels
    numbers = np.array([row[1:] for row in rows[1:]], float)
    np.testing.assert_array_equal(numbers, found.matrix)
    found.show()
    assert "La against Le" in capsys.readouterr().out
    frame = pytest.importorskip("pandas") and found.frame()
    assert frame.shape == found.matrix.shape


def test_measures_take_changes(demo: Translator, pairs: tuple[Pair, Pair]) -> None:
    change = "average decoder.1.cross.0"
    weights = measure(pairs[0], "weights", "decoder.1.cross.0", changes=change).matrix
    np.testing.assert_allclose(weights, 1 / len(pairs[0].source_ids), atol=1e-12)
    assert pairs[0].measure("gradients", changes=change).matrix.shape[0] == len(pairs[0].read_ids)
    cut = "cut decoder.1.cross.0"
    found = measure(pairs[0], "alti", changes=cut)
    by_weights = demo.changed(cut).pair(A, demo.translate(A).text, float64=True)
    np.testing.assert_allclose(found.matrix, by_weights.measure("alti").matrix, atol=1e-9)
    with pytest.raises(InputError, match="alti takes cuts of whole heads only"):
        measure(pairs[0], "alti", changes=change)
    with pytest.raises(InputError, match="head must be from 0"):
        measure(pairs[0], "alti", changes="cut decoder.1.cross.9")
