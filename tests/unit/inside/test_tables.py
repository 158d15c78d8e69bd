"""Traces, maps and tables with labels; probes that name what they replace."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import InputError
from pellucid.inside import Replace, Trace, measure, study
from pellucid.inside.ask import arrays_of
from pellucid.inside.pair import make_pair
from pellucid.inside.record.data_frames import named_array
from pellucid.text.tokenizers.whole_words import without_joiner
from pellucid.translate.translator import Translator

TEXT = "The soup was cold."


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


@pytest.fixture(scope="module")
def trace(demo: Translator) -> Trace:
    return demo.look(TEXT, everything=True)


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both packages, pretended: they return what they are given."""

    def make(name: str) -> Any:
        if name == "pandas":
            return SimpleNamespace(DataFrame=dict)
        return SimpleNamespace(DataArray=lambda array, **named: (array, named))

    monkeypatch.setattr("pellucid.errors.import_module", make)


@pytest.mark.usefixtures("packages")
def test_frame_has_a_row_for_each_number_with_its_place_and_tokens(trace: Trace) -> None:
    name = "decoder.1.cross.weights"
    array, found = trace[name], trace.to_pandas(name)
    labels = ["head", "target", "reads", "predicts", "source", "source_token", "value"]
    assert list(found) == labels
    assert {len(column) for column in found.values()} == {array.size}
    for row in (0, 7, array.size - 1):
        head, target, source = (int(found[one][row]) for one in ("head", "target", "source"))
        assert found["value"][row] == array[head, target, source]
        assert found["reads"][row] == trace.target_tokens[target]
        assert found["predicts"][row] == trace.predicted_tokens[target]
        assert found["source_token"][row] == trace.source_tokens[source]


@pytest.mark.usefixtures("packages")
def test_xarray_has_named_axes_and_tokens_of_both_sides_of_self_attention(trace: Trace) -> None:
    array, named = trace.to_xarray("encoder.0.self.scores")
    assert named["dims"] == ["head", "source", "source_key"]
    assert array is trace["encoder.0.self.scores"]
    assert named["coords"]["source_token"][0] == "source"
    assert tuple(named["coords"]["source_token"][1]) == trace.source_tokens
    assert named["coords"]["source_key_token"][0] == "source_key"
    assert tuple(named["coords"]["source_key_token"][1]) == trace.source_tokens


@pytest.mark.parametrize("model", ["demo", "demo-recurrent"])
def test_axes_of_every_array_have_its_lengths(model: str) -> None:
    translator = pellucid.load(model)
    trace = translator.look(TEXT, everything=True)
    for wanted in arrays_of(translator.bundle.config.model):
        axes, _ = named_array(trace, wanted.name)
        assert tuple(len(numbers) for _, numbers, _ in axes) == trace[wanted.name].shape
        assert len({axis for axis, *_ in axes}) == len(axes)
        for _, numbers, tokens in axes:
            assert all(len(words) == len(numbers) for words in tokens.values())
        letters = {"S": "source", "T": "target", "H": "head", "1": "row"}
        expected = [letters.get(letter, "width") for letter in wanted.axes]
        found = [axis.removesuffix("_key") for axis, *_ in axes]
        assert found == expected, wanted.name


def test_frame_of_chosen_heads_has_their_numbers(demo: Translator) -> None:
    from pellucid.inside import Ask

    trace = demo.look(TEXT, ask=Ask(["*.*.*.1", "*.*.*.3"]))
    ((_, heads, _), *_), _ = named_array(trace, "decoder.0.self.weights")
    assert tuple(heads) == (1, 3)
    axes, array = named_array(trace, "decoder.0.self.3")
    assert [axis for axis, *_ in axes] == ["target", "target_key"]
    assert np.array_equal(array, trace.arrays["decoder.0.self.weights"][1])


@pytest.mark.parametrize(("method", "package"), [("to_pandas", "pandas"), ("to_xarray", "xarray")])
def test_table_without_its_package_says_what_to_install(
    method: str, package: str, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"pip install {package}"):
        getattr(trace, method)("decoder.1.cross.weights")
    with pytest.raises(InputError, match="Did you mean"):
        getattr(trace, method)("decoder.1.cross.weight")


def test_tables_of_the_real_packages_hold_the_numbers(trace: Trace) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("xarray")
    name = "encoder.1.self.weights"
    array = trace.to_xarray(name)
    frame = trace.to_pandas(name)
    assert array.sel(head=2).sum("source_key").values == pytest.approx(1.0, abs=1e-5)
    sums = frame.groupby(["head", "source"])["value"].sum()
    assert sums.to_numpy() == pytest.approx(1.0, abs=1e-5)


class Cells(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.titles: list[float] = []
        self.words: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag == "td":
            self.titles.append(float(dict(attrs)["title"]))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_map_in_a_notebook_is_a_table_and_its_repr_is_short(demo: Translator) -> None:
    pair = make_pair(demo.bundle, TEXT, demo.translate([TEXT])[0].ids)
    for name in ("norms", "gradients"):
        found = measure(pair, name)
        text = found._repr_html_()
        cells = Cells(text)
        assert cells.titles == pytest.approx(found.matrix.ravel().tolist(), rel=1e-5)
        assert set(map(without_joiner, found.column_labels)) <= set(cells.words)
        assert any(found.source in word for word in cells.words)
        assert not cells.tags & {"script", "img", "link"}
        assert len(repr(found)) < 700


def test_study_table_in_a_notebook_shows_missing_numbers_as_dashes(demo: Translator) -> None:
    found = study(demo.bundle, [TEXT], heads=["decoder.1.self.*"])
    text = found.heads._repr_html_()
    assert "–" in Cells(text).words
    assert set(found.heads.rows) <= set(Cells(text).words)
    assert "background:#" not in text
    assert len(repr(found.heads)) < 500


def test_labels_in_a_notebook_cannot_be_markup(demo: Translator) -> None:
    from pellucid.inside.show.static import static_table

    text = static_table(np.array([[np.nan, 2.0]]), ["<b>"], ["<i>", "&"], "<script>")
    assert not re.search(r"<b>|<i>|<script>", text)


def test_replace_changes_the_results_that_it_names(demo: Translator) -> None:
    pair = make_pair(demo.bundle, TEXT, demo.translate([TEXT])[0].ids)
    name = "encoder.0.self.weights"
    even = Replace({name: lambda weights: torch.ones_like(weights) / weights.shape[-1]})
    assert not torch.equal(pair.logits(probe=even), pair.logits())
    trace = demo.look(TEXT, changes=even)
    assert np.allclose(trace[name], 1 / len(trace.source_tokens))


@pytest.mark.parametrize(
    "name", ["encoder.0.self.weigths", "encoder.7.self.weights", "decoder.0.weights"]
)
def test_replace_of_a_result_that_does_not_exist_is_refused_with_the_closest(
    name: str, demo: Translator
) -> None:
    pair = make_pair(demo.bundle, TEXT, demo.translate([TEXT])[0].ids)
    probe = Replace({name: torch.zeros_like})
    for run in (lambda: pair.logits(probe=probe), lambda: demo.look(TEXT, changes=probe)):
        with pytest.raises(InputError, match=rf"'{re.escape(name)}' does not exist\. Did you mean"):
            run()
