"""Parts of the model: what each adds to a logit, what its gradient says, and what heads read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_pairs import FORMS, small_pair
from torch import Tensor

import pellucid
from pellucid.config.head_address import heads_of_model
from pellucid.errors import InputError
from pellucid.inside import PART_MEASURES, Pair, Replace, measure
from pellucid.inside.pair import Keeper, attention_at
from pellucid.lessons.walks.walk import read_outputs
from pellucid.translate.translator import Translator

TEXT = "The pizza came out of the oven and it tasted good."

MORE: dict[str, dict[str, Any]] = {
    "rms": {"norm": "pre", "norm_kind": "rms"},
    "rms after": {"norm_kind": "rms", "stack_norm": True},
    "groups": {"num_heads": 4, "num_key_value_heads": 2, "projection_bias": True},
    "units": {"decoder": "ssru"},
    "norm of the input": {"input_norm": True, "positions": "learned", "gated_feed_forward": True},
    "turned": {"positions": "rotary", "d_key": 4},
}
ALL_FORMS = {**FORMS, **MORE}


@pytest.fixture(params=list(ALL_FORMS))
def pair(request: pytest.FixtureRequest, bundle_folder: Path) -> Pair:
    return small_pair(bundle_folder, **ALL_FORMS[request.param])


@pytest.fixture
def plain_pair(bundle_folder: Path) -> Pair:
    return small_pair(bundle_folder)


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


@pytest.mark.parametrize("part", [None, "encoder"])
def test_parts_add_up_to_the_logit_in_every_form(pair: Pair, part: str | None) -> None:
    found = measure(pair, "logit-attribution", part)
    logits_TV = pair.logits()
    expected = logits_TV[range(len(pair.target_ids)), list(pair.target_ids)]
    np.testing.assert_allclose(found.matrix.sum(axis=0), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.differences or (), expected, rtol=0, atol=1e-12)


class Without:
    """A probe that leaves one part out, while all else keeps what it was in the whole run.

    Norms go on with the deviations of that run, other sub-layers with their outputs, and attention
    with its weights: what is left of the model is linear.
    """

    def __init__(self, pair: Pair, part: str, position: int | None, *, opens_cross: bool) -> None:
        keeper = Keeper(("output", "weights", "residual", "norm", "input", "embedding"))
        pair.logits(probe=keeper)
        self.model = pair.model
        self.clean = keeper.found
        self.part = part
        self.position = slice(None) if position is None else position
        self.opens_cross = opens_cross
        self.before: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, x: Tensor) -> Tensor | None:
        name = f"{site}.{stage}"
        owner = self.part.rpartition(".")[0]
        is_last = site in ("encoder", "decoder")
        if stage == "context" and owner == site:
            x = x.clone()
            x[:, int(self.part.rpartition(".")[2]), self.position] = 0
            return x
        if name == self.part or (stage == "output" and site == self.part):
            x = x.clone()
            x[:, self.position] = 0
            return x
        if stage == "weights":
            return self.clean[name]
        if stage == "output" and site != owner:
            return None if self.opens_cross and site.endswith("cross") else self.clean[name]
        place = site.split(".")[0]
        if stage == "norm" and (is_last or self.model.config.norm == "post"):
            return self.normed(site, x)
        # What enters the last norm of a part.
        if stage in ("residual", "norm"):
            self.before[site] = self.before[place] = x
        return None

    def normed(self, site: str, x: Tensor) -> Tensor:
        """Apply a norm to what enters it now, with the deviations of the whole run."""
        config = self.model.config
        place, *rest = site.split(".")
        kind = "_norm" if rest and rest[1] in ("feed_forward", "recurrent") else "_attention_norm"
        path = f"{place}.layers.{rest[0]}.{rest[1]}{kind}" if rest else f"{place}.norm"
        norm: Any = self.model.get_submodule(path)
        clean = self.clean[f"{site}.residual"] if rest else self.entered(place)
        now = self.before[site if rest else place]
        if config.norm_kind == "layer":
            clean = clean - clean.mean(dim=-1, keepdim=True)
            now = now - now.mean(dim=-1, keepdim=True)
        deviation = (clean.square().mean(dim=-1, keepdim=True) + config.layer_norm_epsilon).sqrt()
        result: Tensor = now / deviation * norm.weight
        result = result + norm.bias if config.norm_kind == "layer" else result
        self.before[place] = result
        return result

    def entered(self, place: str) -> Tensor:
        stage = "norm" if self.model.config.norm == "post" else "residual"
        return self.clean[f"{place}.1.feed_forward.{stage}"]


@pytest.mark.parametrize("part", ["decoder", "encoder"])
def test_each_part_is_what_a_run_without_it_lacks(pair: Pair, part: str) -> None:
    """The same number from runs of the model itself, one for each part."""
    found = measure(pair, "logit-attribution", part)
    opens_cross = part == "encoder"
    ids = list(pair.target_ids)
    rows = range(len(ids))
    whole = pair.logits()[rows, ids]
    checked = 0
    for name, numbers in zip(found.row_labels, found.matrix, strict=True):
        # Biases are everywhere; a norm of the input is not shown to a probe.
        is_hidden = pair.model.config.input_norm and name.endswith(("embedding", "positions"))
        if name == "(biases)" or is_hidden:
            continue
        probe = Without(pair, name, None, opens_cross=opens_cross)
        lacking = whole - pair.logits(probe=probe)[rows, ids]
        np.testing.assert_allclose(numbers, lacking, rtol=0, atol=1e-12, err_msg=name)
        checked += 1
    assert checked >= (8 if part == "decoder" else 10)


def test_encoder_parts_of_one_row_stand_at_their_source_position(plain_pair: Pair) -> None:
    make = PART_MEASURES["logit-attribution"].make
    found = make(plain_pair, part="encoder", row=3)
    summed = measure(plain_pair, "logit-attribution", "encoder").matrix[:, 3]
    np.testing.assert_allclose(found.matrix.sum(axis=1), summed, atol=1e-12)
    assert found.column_labels == (*plain_pair.source_tokens, "(own row)")
    id_ = plain_pair.target_ids[3]
    whole = plain_pair.logits()[3, id_]
    row = found.row_labels.index("encoder.1.self.1")
    for position in range(len(plain_pair.source_ids)):
        probe = Without(plain_pair, "encoder.1.self.1", position, opens_cross=True)
        lacking = whole - plain_pair.logits(probe=probe)[3, id_]
        assert found.matrix[row, position] == pytest.approx(float(lacking), abs=1e-12)


def test_difference_of_two_words_is_the_sum_of_its_parts(demo: Translator) -> None:
    contrast = demo.pair(TEXT, float64=True).why("elle", "il")
    for part in (None, "encoder"):
        found = contrast.measure("logit-attribution", part)
        assert found.matrix.sum() == pytest.approx(contrast.difference, abs=1e-12)
        assert found.differences == pytest.approx((contrast.difference,), abs=1e-12)
    assert found.title == "logit-attribution, encoder, elle − il"
    head, row, _ = deciding()
    one = contrast.measure("logit-attribution", head)
    assert one.row_labels == (head,)
    assert one.differences is None
    assert one.matrix[0, one.column_labels.index(row)] == one.matrix.max() > 0


def test_head_gradients_are_the_slopes_of_the_gates(pair: Pair) -> None:
    found = measure(pair, "head-gradients")
    heads = list(heads_of_model(pair.model.config))
    assert found.row_labels == tuple(map(str, heads))
    for head, numbers in zip(heads, found.matrix, strict=True):

        def logs(gate: float, head: Any = head) -> Tensor:
            def put(x: Tensor) -> Tensor:
                x[:, head.head] *= gate
                return x

            return pair.log_probabilities(probe=Replace({f"{head.site}.context": put}))

        slope = (logs(1 + 1e-6) - logs(1 - 1e-6)) / 2e-6
        np.testing.assert_allclose(numbers, slope, rtol=1e-6, atol=1e-6)


def test_head_gradients_are_for_a_word_in_the_head_that_decides_it(demo: Translator) -> None:
    contrast = demo.pair(TEXT, float64=True).why("elle", "il").measure("head-gradients")
    assert contrast.column_labels == ("elle − il",)
    assert contrast.matrix[contrast.row_labels.index(deciding()[0]), 0] > 0.5


def deciding() -> list[str]:
    """The head, row and column of the line that decides the pronoun of the packaged model."""
    return re.split("[:>]", read_outputs()["cells"]["pronoun"])


def of_head(weight: Tensor, head: int, heads: int) -> np.ndarray:
    """The rows of a projection that belong to a head, as ``(D, width)``."""
    found: np.ndarray = weight.detach().double().chunk(heads)[head].T.numpy()
    return found


def norms_between(pair: Pair, writer: str, reader: str) -> np.ndarray:
    """The matrix of all norms on the residual stream between two sub-layers, written by hand."""
    config = pair.model.config
    size = config.d_model
    through = np.eye(size)
    order = {"encoder": ("self", "feed_forward"), "decoder": ("self", "cross", "feed_forward")}
    part = writer.split(".")[0]
    sites = [f"{part}.{layer}.{kind}" for layer in (0, 1) for kind in order[part]]
    end = len(sites) if part != reader.split(".")[0] else sites.index(reader)
    norms: list[Any] = []
    if config.norm == "post":
        for site in sites[sites.index(writer) : end]:
            _, layer, kind = site.split(".")
            module = kind if kind == "feed_forward" else f"{kind}_attention"
            norms.append(pair.model.get_submodule(f"{part}.layers.{layer}.{module}_norm"))
    elif end == len(sites):
        norms.append(pair.model.get_submodule("encoder.norm"))
    else:
        _, layer, kind = reader.split(".")
        norms.append(pair.model.get_submodule(f"{part}.layers.{layer}.{kind}_attention_norm"))
    center = np.eye(size) - 1 / size
    for norm in norms:
        is_centered = isinstance(norm, torch.nn.LayerNorm)
        through = through @ (center if is_centered else np.eye(size))
        through = through @ np.diag(norm.weight.detach().double())
    return through


@pytest.mark.parametrize("form", ["post", "pre with biases", "rms"])
def test_composition_scores_equal_those_of_whole_matrices(bundle_folder: Path, form: str) -> None:
    pair = small_pair(bundle_folder, **ALL_FORMS[form])
    steps = (
        ("encoder.0.self", "encoder.1.self", "qkv"),
        ("decoder.0.cross", "decoder.1.self", "qkv"),
        ("decoder.1.self", "decoder.1.cross", "q"),
        ("encoder.0.self", "decoder.1.cross", "kv"),
    )
    for writer, reader, sides in steps:
        first, second = (attention_at(pair.model, site) for site in (writer, reader))
        through = norms_between(pair, writer, reader)
        for side in sides:
            found = measure(pair, f"{side}-composition")
            for one, other in ((0, 1), (1, 1)):
                output = of_head(first.output.weight.T, one, 2).T
                written = of_head(first.value.weight, one, 2) @ output @ through
                query, key, value = (
                    of_head(getattr(second, name).weight, other, 2)
                    for name in ("query", "key", "value")
                )
                behind = of_head(second.output.weight.T, other, 2).T
                matrix = {"q": query @ key.T, "k": key @ query.T, "v": value @ behind}[side]
                sizes = np.linalg.norm(written) * np.linalg.norm(matrix)
                expected = np.linalg.norm(written @ matrix) / sizes
                row = found.row_labels.index(f"{writer}.{one}")
                column = found.column_labels.index(f"{reader}.{other}")
                assert found.matrix[row, column] == pytest.approx(expected, abs=1e-12)


def test_composition_of_heads_that_do_not_meet_is_zero(plain_pair: Pair) -> None:
    found = measure(plain_pair, "q-composition")
    row = found.row_labels.index("encoder.0.self.0")
    read = {
        name for name, value in zip(found.column_labels, found.matrix[row], strict=True) if value
    }
    assert read == {"encoder.1.self.0", "encoder.1.self.1"}
    keys = measure(plain_pair, "k-composition", "encoder")
    assert set(keys.row_labels) == {f"encoder.{n}.self.{h}" for n in (0, 1) for h in (0, 1)}
    assert "decoder.0.cross.1" in keys.column_labels
    assert "decoder.0.self.1" not in keys.column_labels
    assert keys.matrix.max() <= 1


@pytest.mark.parametrize("name", list(PART_MEASURES))
def test_every_measure_of_parts_has_a_row_for_each(plain_pair: Pair, name: str) -> None:
    asked = PART_MEASURES[name]
    for place in (None, "encoder", "encoder.0.self", "*.*.self.1"):
        found = measure(plain_pair, name, place)
        assert found.name == name
        assert found.matrix.shape == (len(found.row_labels), len(found.column_labels))
        assert found.is_signed == asked.is_signed
        assert np.isfinite(found.matrix).all()
    assert all(label.endswith(".self.1") for label in found.row_labels)


@pytest.mark.parametrize(
    ("name", "head", "says"),
    [
        ("logit-atribution", None, "Did you mean 'logit-attribution'"),
        ("head-gradients", "encoder.7", "A layer must be from 0 to 1"),
        ("head-gradients", "encoder.0.self.9", "A head must be from 0 to 1"),
        ("logit-attribution", "decoder.0.slef", "Did you mean 'self'"),
        ("head-gradients", "encoder.0.feed_forward", "head-gradients has no part"),
        ("q-composition", "decoder.1.cross", "q-composition has no part decoder.1.cross"),
    ],
)
def test_parts_that_are_not_there_are_refused(
    plain_pair: Pair, name: str, head: str | None, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        measure(plain_pair, name, head)


def test_measures_of_parts_refuse_what_they_cannot_answer(
    demo: Translator, plain_pair: Pair
) -> None:
    with pytest.raises(InputError, match="steps: it has no integral"):
        measure(plain_pair, "head-gradients", steps=3)
    changed = replace(plain_pair, changes=Replace({"encoder.0.self.context": lambda x: x * 2}))
    with pytest.raises(InputError, match="logit-attribution takes cuts of whole heads only"):
        measure(changed, "logit-attribution")
    assert measure(changed, "head-gradients").matrix.any()
    pair = demo.pair(TEXT)
    with pytest.raises(InputError, match="q-composition is of the weights"):
        pair.why("elle", "il").measure("q-composition")
    with pytest.raises(InputError, match="The other word must not be 'elle' itself"):
        pair.why("elle", "elle")
