"""Paths, gradients and noise: the numbers of a second Transformer, and what is refused."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import InputError
from pellucid.inside import PATCHINGS, Pair, causal_trace, patch, patch_corpus
from pellucid.machine.randomness import generator
from pellucid.translate.translator import Translator

sys.path.insert(0, str(Path(__file__).parent))
from numpy_transformer import NumpyTransformer

Array = np.ndarray
Edit = Callable[[Array], Array]
A, B = (f"The {one} came out of the oven and it tasted good." for one in ("pizza", "cake"))
WORDS = {"why": "elle", "other": "il"}


class Edited(NumpyTransformer):
    """The second Transformer, with functions of some arrays in their place."""

    edits: Mapping[str, Edit]

    def keep(self, name: str, array: Array) -> Array:
        return super().keep(name, self.edits.get(name, lambda one: one)(array))

    def runs(self, ids: Any, read: Any, edits: Mapping[str, Edit] | None = None) -> Any:
        self.edits = edits or {}
        return dict(self.run(ids, read))


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


@pytest.fixture(scope="module")
def second(demo: Translator) -> Edited:
    return Edited(demo.bundle.folder)


@pytest.fixture(scope="module")
def pairs(demo: Translator) -> tuple[Pair, Pair]:
    return demo.pair(A, float64=True), demo.pair(B, float64=True)


class Asked:
    """What both sentences are asked: elle or il, after A's beginning."""

    def __init__(self, pairs: tuple[Pair, Pair]) -> None:
        self.a, self.b = pairs
        self.row = self.a.predicted_tokens.index("elle")
        self.read = [self.a.tokenizer.config.target_start_id, *self.a.target_ids[: self.row]]
        self.ids = self.a.target_ids[self.row], self.a.tokenizer.encode_target("il")[0]

    def lead(self, arrays: Mapping[str, Array]) -> float:
        logits = arrays["decoder.logits"][-1]
        return float(logits[self.ids[0]] - logits[self.ids[1]])


def put(vector: Array, index: Any) -> Edit:
    def edit(array: Array) -> Array:
        array = array.copy()
        array[index] = vector[index]
        return array

    return edit


ATTENTIONS = [
    *(f"encoder.{n}.self" for n in (0, 1)),
    *(f"decoder.{n}.{kind}" for n in (0, 1) for kind in ("self", "cross")),
]
_OF_SELF = "encoder.1.self.query encoder.1.self.key encoder.1.self.value"
PATHS = [
    (
        "encoder.1.self.1",
        "decoder.*.cross.value",
        ["decoder.0.cross.value", "decoder.1.cross.value"],
    ),
    (
        "encoder.0.self.2",
        "encoder.1.self",
        [f"encoder.1.self.{s}" for s in ("query", "key", "value")],
    ),
    ("encoder.0", "decoder.1.cross.3", ["decoder.1.cross.key", "decoder.1.cross.value"]),
    ("decoder.0.cross.1", "decoder.1.cross.*.query", ["decoder.1.cross.query"]),
    ("decoder.0.cross.1", "decoder.1.feed_forward", ["decoder.1.feed_forward.inner"]),
    ("decoder.1.cross.1", "decoder.logits", ["decoder.logits"]),
]


@pytest.mark.parametrize(("sender", "reader", "read_by"), PATHS)
def test_paths_equal_those_of_a_second_transformer(
    pairs: tuple[Pair, Pair], second: Edited, sender: str, reader: str, read_by: list[str]
) -> None:
    asked = Asked(pairs)
    of_a, of_b = (second.runs(one.source_ids, asked.read) for one in pairs)
    position = pairs[1].source_tokens.index("it") if "encoder" in sender else asked.row
    *site, head = sender.split(".")
    name = ".".join([*site, "context"]) if len(site) == 3 else f"{sender}.feed_forward.norm"
    index: Any = (int(head), position) if len(site) == 3 else position
    frozen = [f"{one}.output" for one in ATTENTIONS if not name.startswith(one)]
    edits = {one: put(of_b[one], slice(None)) for one in frozen}
    edits[name] = put(of_a[name], index)
    on_the_way = second.runs(pairs[1].source_ids, asked.read, edits)
    only = int(reader[-1]) if reader[-1].isdigit() else slice(None)
    readers = {one: put(on_the_way[one], only) for one in read_by}
    changed = asked.lead(second.runs(pairs[1].source_ids, asked.read, readers))
    share = (changed - asked.lead(of_b)) / (asked.lead(of_a) - asked.lead(of_b))
    found = patch(*pairs, f"{sender} > {reader}", [position], **WORDS)
    assert found.matrix[0, 0] == pytest.approx(share, abs=1e-9)
    assert found.name == "path-patching"
    assert found.title.endswith(f"elle against il, by way of {reader}")
    assert found.row_labels == (f"{sender}.context" if len(site) == 3 else name,)


def test_several_readers_are_named_in_each_row_and_a_corpus_takes_paths(
    demo: Translator, pairs: tuple[Pair, Pair]
) -> None:
    sites = ["encoder.1.self.1 > decoder.*.cross", "encoder.1.self.1 > decoder.0.cross"]
    found = patch(*pairs, sites, [8], **WORDS)
    assert found.row_labels == tuple(one.replace(".1 >", ".1.context >") for one in sites)
    corpus = patch_corpus(demo, [A, B], sites=sites[:1], **WORDS)
    assert corpus.shares.rows == found.row_labels[:1]
    near = patch_corpus(demo, [A, B], sites="encoder.1", by_gradient=True, **WORDS)
    own = patch(*pairs, "encoder.1", by_gradient=True, **WORDS)
    assert near.shares.values[0, -1] == pytest.approx(own.matrix[0, -1], abs=1e-6)


@pytest.mark.parametrize(
    ("site", "name", "head"),
    [
        ("encoder.*.self.3", "encoder.0.self.context", 3),
        ("encoder.1.self.1", "encoder.1.self.context", 1),
        ("encoder.0.self.2.key", "encoder.0.self.key", 2),
        ("encoder.input", "encoder.input", None),
        ("decoder.0.cross.3", "decoder.0.cross.context", 3),
        ("decoder.1.self.weights", "decoder.1.self.weights", None),
    ],
)
def test_shares_by_the_gradient_are_slopes_of_a_second_transformer(
    pairs: tuple[Pair, Pair], second: Edited, site: str, name: str, head: int | None
) -> None:
    asked = Asked(pairs)
    of_a, of_b = (second.runs(one.source_ids, asked.read) for one in pairs)
    found = patch(*pairs, site, **WORDS, by_gradient=True)
    assert found.title == f"attribution-patching, {site[:7]}, elle against il"
    step = of_a[name] - of_b[name]
    for column in (1, len(found.column_labels) - 1):
        is_whole = column == len(found.column_labels) - 1
        position = slice(None) if is_whole else column
        heads: Any = slice(None) if head is None and step.ndim == 3 else head
        index = (heads, position) if step.ndim == 3 else position
        leads = []
        for size in (1e-4, -1e-4):
            moved = put(of_b[name] + size * step, index)
            leads.append(asked.lead(second.runs(pairs[1].source_ids, asked.read, {name: moved})))
        slope = (leads[0] - leads[1]) / 2e-4
        share = slope / (asked.lead(of_a) - asked.lead(of_b))
        assert found.matrix[0, column] == pytest.approx(share, abs=1e-6)


def test_by_the_gradient_all_positions_together_are_their_sum(pairs: tuple[Pair, Pair]) -> None:
    a, b = pairs

    def first(logits: torch.Tensor) -> torch.Tensor:
        return logits[a.target_ids[0]]

    near = patch(a, b, "encoder", row=0, metric=first, by_gradient=True)
    assert near.matrix[:, -1] == pytest.approx(near.matrix[:, :-1].sum(axis=1), abs=1e-9)
    with pytest.raises(InputError, match="computed of the logits by PyTorch"):
        patch(a, b, row=0, metric=lambda one: float(one[5].detach()), by_gradient=True)


def test_traces_of_causes_equal_those_of_a_second_transformer(
    pairs: tuple[Pair, Pair], second: Edited
) -> None:
    a = pairs[0]
    asked = Asked(pairs)
    places = [a.source_tokens.index("pizza")]
    whole = second.runs(a.source_ids, asked.read)
    table = second.table("source")
    size = 3 * math.sqrt(table.shape[1]) * table.std(ddof=1)
    effects, totals = [], []

    def probability(arrays: Mapping[str, Array]) -> float:
        odds = np.exp(arrays["decoder.logits"][-1] - arrays["decoder.logits"][-1].max())
        return float(odds[asked.ids[0]] / odds.sum())

    name = "encoder.1.feed_forward.norm"
    it = a.source_tokens.index("it")
    for sample in range(2):
        noise = generator(7, "causal-tracing", sample).standard_normal((1, table.shape[1]))

        def spoil(array: Array, noise: Array = noise) -> Array:
            array = array.copy()
            array[places] += size * noise
            return array

        edits = {"encoder.embedding": spoil}
        low = probability(second.runs(a.source_ids, asked.read, edits))
        edits[name] = put(whole[name], it)
        effects.append(probability(second.runs(a.source_ids, asked.read, edits)) - low)
        totals.append(probability(whole) - low)
    found = causal_trace(a, "pizza", "encoder.1", [it], why="elle", num_samples=2, seed=7)
    assert found.matrix[0, 0] == pytest.approx(np.mean(effects), abs=1e-9)
    assert found.matrix[0, -1] == pytest.approx(np.mean(effects), abs=1e-9)
    total = f"elle without pizza, total effect {np.mean(totals):.3f}"
    assert found.title == f"causal-tracing, encoder, probability of {total}"


def test_a_restored_word_has_the_total_effect(pairs: tuple[Pair, Pair]) -> None:
    a = pairs[0]
    options = {"num_samples": 1, "positions": [1]}
    found = causal_trace(a, ["pizza"], "encoder.embedding", why="elle", other="il", **options)
    total = float(found.title.rpartition(" ")[2])
    assert found.matrix[0, 0] == pytest.approx(total, abs=1e-3)
    assert "logits of elle against il without pizza" in found.title
    row = a.predicted_tokens.index("elle")
    by_row = causal_trace(a, "1", "encoder.embedding", row=row, **options)
    assert "probability of elle without pizza, " in by_row.title
    by_word = causal_trace(a, "pizza", "encoder.embedding", why="elle", **options)
    np.testing.assert_array_equal(by_row.matrix, by_word.matrix)


@pytest.mark.parametrize(
    ("site", "sentence"),
    [
        ("encoder.1.self.1 > decoder.0.crss", "Did you mean 'decoder.0.cross'"),
        ("encoder.1.self.1 >", "leads to ''. Write it behind the sign"),
        ("encoder.1.slf.1 > decoder.1.cross", "Did you mean 'encoder.1.self"),
        ("encoder.1.self.1 > encoder.0.self", "does not read encoder.1.self.context"),
        ("encoder.1.self.1 > decoder.1.self", "reads the other part of the model"),
        ("decoder.0.cross.1 > decoder.1.cross.value", "does not read decoder.0.cross.context"),
        ("encoder.0.self.1.query > encoder.0.self.value", "does not read encoder.0.self.query"),
        ("encoder.1.self.1 > decoder.1.cross.9", "A head must be from 0 to 3"),
        ("encoder.1.self.1 > decoder.1.cross.context", "leads to 'decoder.1.cross.context'"),
    ],
)
def test_paths_that_do_not_exist_are_refused_before_anything_runs(
    pairs: tuple[Pair, Pair], monkeypatch: pytest.MonkeyPatch, site: str, sentence: str
) -> None:
    monkeypatch.setattr("pellucid.inside.patches.two_runs.Patching._answer", None)
    with pytest.raises(InputError, match=sentence):
        patch(*pairs, site, row=0)


def test_a_path_is_not_approximated(pairs: tuple[Pair, Pair]) -> None:
    with pytest.raises(InputError, match="by_gradient cannot be combined with a path"):
        patch(*pairs, "encoder.0 > decoder.1.cross", row=0, by_gradient=True)


@pytest.mark.parametrize(
    ("words", "options", "sentence"),
    [
        ("piza", {"why": "elle"}, "Did you mean 'pizza'"),
        ("pizza", {"why": "ele"}, "Did you mean 'elle'"),
        ("pizza", {}, "A word of the translation .why. or a row must be named"),
        ("pizza", {"other": "il"}, "other needs why"),
        ("pizza", {"why": "elle", "other": "elle"}, "must not be 'elle' itself"),
        ("pizza", {"why": "elle", "row": 2}, "why cannot be combined with row"),
        ("pizza", {"why": "elle", "sites": "encoder.5"}, "Did you mean 'encoder.1'"),
        ("pizza", {"why": "elle", "num_samples": 0}, "num_samples must be at least 1"),
        ("pizza", {"row": 99}, "A row must be from 0 to"),
        ([], {"why": "elle"}, "No word to spoil was given"),
    ],
)
def test_what_cannot_be_traced_is_refused(
    pairs: tuple[Pair, Pair], words: Any, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        causal_trace(pairs[0], words, **options)


def test_every_way_to_patch_is_in_the_table(pairs: tuple[Pair, Pair]) -> None:
    sites = {"path-patching": "encoder.1.self.1 > decoder.1.cross"}
    for name, one in PATCHINGS.items():
        assert one.name == name
        site = sites.get(name, "encoder.1")
        if name == "causal-tracing":
            found = one.make(pairs[0], "pizza", site, [8], why="elle", num_samples=1)
        else:
            given = {"by_gradient": name == "attribution-patching"}
            found = one.make(*pairs, site, [8], **WORDS, **given)
        assert found.name == name
        assert one.is_signed
