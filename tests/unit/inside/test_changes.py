"""Changes to attention: their effect on weights and contexts, and how they are written."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from pellucid.bundle import load_bundle, resolve_model
from pellucid.config import ModelConfig
from pellucid.errors import InputError
from pellucid.inside import Ask, Pair, Trace
from pellucid.inside.changes.change import (
    AverageHead,
    Change,
    Changes,
    CutEdge,
    CutHead,
    ForceWeight,
    ReplaceWeights,
    cut_source_word,
    parse_change,
)
from pellucid.inside.changes.place import Place, all_heads, parse_place
from pellucid.inside.changes.written_changes import find_word, parse_changes
from pellucid.inside.pair import make_pair
from pellucid.inside.replayed_pair import replay
from pellucid.inside.show.model_page import trace_page
from pellucid.inside.show.view import HeadView
from pellucid.translate.translator import load

SOURCE = "The pizza came out of the oven ."
TARGET = "La pizza est sortie du four ."


@pytest.fixture(scope="module")
def pair(bundle_folder: Path) -> Pair:
    return make_pair(load_bundle(bundle_folder), SOURCE, TARGET, float64=True)


def see(pair: Pair, *changes: Change | str) -> Trace:
    probe = Changes(*(parse_change(one) if isinstance(one, str) else one for one in changes))
    return replay(pair, Ask(stages=("masked", "weights", "context")), changes=probe, float64=True)


def test_cut_head_gives_no_context_and_leaves_weights_and_other_heads(pair: Pair) -> None:
    before, after = see(pair), see(pair, "cut decoder.0.cross.1")
    name = "decoder.0.cross"
    assert np.abs(before[f"{name}.context"][1]).max() > 0
    assert not after[f"{name}.context"][1].any()
    np.testing.assert_array_equal(after[f"{name}.context"][0], before[f"{name}.context"][0])
    np.testing.assert_array_equal(after[f"{name}.weights"], before[f"{name}.weights"])
    assert np.abs(after["decoder.1.self.weights"] - before["decoder.1.self.weights"]).max()


def test_cut_head_takes_exactly_its_share_of_the_output(pair: Pair) -> None:
    stages = Ask(stages=("context", "output"))
    before = replay(pair, stages, float64=True)
    changes = Changes(parse_change("cut encoder.0.self.0"))
    after = replay(pair, stages, changes=changes, float64=True)
    layer = pair.model.encoder.layers[0]
    projection_DX = layer.self_attention.output.weight.detach().numpy()
    width = before["encoder.0.self.context"].shape[-1]
    share = before["encoder.0.self.context"][0] @ projection_DX[:, :width].T
    np.testing.assert_allclose(
        before["encoder.0.self.output"] - after["encoder.0.self.output"], share, atol=1e-12
    )


def test_cut_edge_masked_is_a_softmax_over_the_other_keys(pair: Pair) -> None:
    before, after = see(pair), see(pair, "cut encoder.0.self.1:2>5")
    weights, old = after["encoder.0.self.1"], before["encoder.0.self.1"]
    assert weights[2, 5] == 0
    others = np.delete(old[2], 5)
    np.testing.assert_allclose(np.delete(weights[2], 5), others / others.sum(), atol=1e-12)
    np.testing.assert_array_equal(np.delete(weights, 2, axis=0), np.delete(old, 2, axis=0))


def test_cut_edge_zeroed_leaves_the_other_weights_as_they_are(pair: Pair) -> None:
    before, after = see(pair), see(pair, "zero encoder.0.self.1:2>5")
    weights, old = after["encoder.0.self.1"], before["encoder.0.self.1"]
    expected = old.copy()
    expected[2, 5] = 0
    np.testing.assert_array_equal(weights, expected)


def test_row_with_every_edge_cut_has_no_weights_and_no_context(pair: Pair) -> None:
    after = see(pair, "cut decoder.0.cross.0:3>*")
    assert not after["decoder.0.cross"][0, 3].any()
    assert not after["decoder.0.cross.context"][0, 3].any()
    assert np.isfinite(after.log_probabilities).all()


def test_averaged_head_is_uniform_over_what_its_mask_allows(pair: Pair) -> None:
    weights_LM = see(pair, "average decoder.1.self.0")["decoder.1.self.0"]
    length = len(pair.target_ids)
    expected = np.tril(np.ones((length, length))) / np.arange(1, length + 1)[:, None]
    np.testing.assert_allclose(weights_LM, expected, atol=1e-12)
    weights_LM = see(pair, "average decoder.1.cross.0")["decoder.1.cross.0"]
    np.testing.assert_allclose(weights_LM, 1 / len(pair.source_ids), atol=1e-12)


def test_mean_head_in_the_encoder_has_the_mean_row_everywhere(pair: Pair) -> None:
    old = see(pair)["encoder.0.self.0"]
    weights_LM = see(pair, "mean encoder.0.self.0")["encoder.0.self.0"]
    np.testing.assert_allclose(weights_LM, np.broadcast_to(old.mean(axis=0), old.shape), atol=1e-12)


def test_mean_head_in_the_decoder_knows_only_of_rows_before(pair: Pair) -> None:
    old = see(pair)["decoder.0.self.1"]
    weights_LM = see(pair, "mean decoder.0.self.1")["decoder.0.self.1"]
    for row in range(len(old)):
        np.testing.assert_allclose(weights_LM[row], old[: row + 1].mean(axis=0), atol=1e-12)


def test_mean_after_a_cut_edge_keeps_the_edge_cut(pair: Pair) -> None:
    changes = ("cut encoder.0.self.0:1>4", "mean encoder.0.self.0")
    weights_LM = see(pair, *changes)["encoder.0.self.0"]
    assert weights_LM[1, 4] == 0
    assert weights_LM[0, 4] > 0
    np.testing.assert_allclose(weights_LM.sum(axis=1), 1, atol=1e-12)


def test_forced_weight_stands_and_the_others_share_the_rest(pair: Pair) -> None:
    old = see(pair)["decoder.1.cross.0"]
    weights_LM = see(pair, "force decoder.1.cross.0:3>2=0.8")["decoder.1.cross.0"]
    assert weights_LM[3, 2] == pytest.approx(0.8)
    others = np.delete(old[3], 2)
    np.testing.assert_allclose(np.delete(weights_LM[3], 2), 0.2 * others / others.sum())
    np.testing.assert_array_equal(np.delete(weights_LM, 3, axis=0), np.delete(old, 3, axis=0))


def test_forced_weight_scales_what_is_far_below_rounding() -> None:
    weights_BHLM = torch.full((1, 2, 5, 7), 1e-9)
    weights_BHLM[..., 2] = 1.0
    weights_BHLM[0, 1, 4, :2] = weights_BHLM[0, 1, 4, 3:] = 0.0
    may_attend = torch.ones(1, 2, 5, 7, dtype=torch.bool)
    ForceWeight(Place("decoder", 1, "cross", 0, 3, 2, is_edge=True), 0.2).apply(
        weights_BHLM, may_attend
    )
    expected = torch.full((7,), 0.8 / 6)
    expected[2] = 0.2
    torch.testing.assert_close(weights_BHLM[0, 0, 3], expected)
    # If nothing else has weight, the edge keeps all of it.
    ForceWeight(Place("decoder", 1, "cross", 1, 4, 2, is_edge=True), 0.2).apply(
        weights_BHLM, may_attend
    )
    assert weights_BHLM[0, 1, 4].tolist() == pytest.approx([0, 0, 0.2, 0, 0, 0, 0])


def test_a_trace_of_changes_says_so_and_what_its_rows_no_longer_do(bundle_folder: Path) -> None:
    translator = load(bundle_folder)
    zero = Changes(parse_change("zero decoder.1.cross.0:3>2"))
    trace = translator.look(SOURCE, translation=TARGET, changes=zero)
    assert trace.decoding["changes"] == str(zero)
    captions = {
        head: " ".join(HeadView(trace, "decoder", 1, "cross", head).caption()) for head in (0, 1)
    }
    assert f"CHANGED on the way: {zero}" in captions[0]
    assert "each row sums to 1" not in captions[0]
    assert "each row sums to 1" in captions[1]
    plain = translator.look(SOURCE, translation=TARGET)
    assert "changes" not in plain.decoding
    nothing_left = Changes(parse_change("zero decoder.1.cross.0:*>*"))
    page = trace_page(translator.look(SOURCE, translation=TARGET, changes=nothing_left))
    assert "CHANGED on the way" in page


def test_forced_weight_on_every_row_leaves_out_rows_that_may_not(pair: Pair) -> None:
    weights_LM = see(pair, "force decoder.0.self.1:*>2=1")["decoder.0.self.1"]
    assert not weights_LM[:2, 2].any()
    np.testing.assert_allclose(weights_LM[2:, 2], 1)
    np.testing.assert_allclose(weights_LM.sum(axis=1), 1, atol=1e-12)


def test_replaced_weights_are_taken_as_they_are_within_the_mask(pair: Pair) -> None:
    given = np.full((11, 13), 0.25)
    place = Place("decoder", 0, "self", 0)
    weights_LM = see(pair, ReplaceWeights(place, given))["decoder.0.self.0"]
    length = len(pair.target_ids)
    np.testing.assert_array_equal(weights_LM, np.tril(np.full((length, length), 0.25)))


def test_place_in_a_column_is_filled_as_text_is() -> None:
    assert f"{Place('decoder', 1, 'cross', 3):19}|" == "decoder.1.cross.3  |"
    edge = Place("encoder", 0, "self", 2, 5, 7, is_edge=True)
    assert f"{edge:>22}" == "  encoder.0.self.2:5>7"


def test_replaced_weights_that_are_too_few_are_refused(pair: Pair) -> None:
    change = ReplaceWeights(Place("decoder", 0, "cross", 0), np.ones((2, 3)))
    with pytest.raises(InputError, match="at least 8 rows and 9 columns"):
        see(pair, change)


def test_cut_source_word_leaves_no_edge_to_it(pair: Pair) -> None:
    probe = cut_source_word([1, 2])
    after = replay(pair, changes=probe)
    for part, kind, layers in (("encoder", "self", 1), ("decoder", "cross", 2)):
        for layer in range(layers):
            assert not after[f"{part}.{layer}.{kind}"][:, :, 1:3].any()
            assert after[f"{part}.{layer}.{kind}"][:, :, 0].all()


def test_no_change_changes_nothing(pair: Pair) -> None:
    assert replay(pair, changes=Changes()).log_probabilities == replay(pair).log_probabilities


def test_changes_hand_back_copies(pair: Pair) -> None:
    context_BHLE = torch.ones(1, 2, 3, 5)
    changed = Changes(parse_change("cut encoder.0.self.0")).see(
        "encoder.0.self", "context", context_BHLE
    )
    assert isinstance(changed, Tensor)
    assert not changed[:, 0].any()
    assert context_BHLE.all()


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("cut decoder.1.cross.0", CutHead(Place("decoder", 1, "cross", 0))),
        ("cut encoder.0.self.2:4>7", CutEdge(Place("encoder", 0, "self", 2, 4, 7, is_edge=True))),
        (
            "zero encoder.*.self.*:*>7",
            CutEdge(Place("encoder", None, "self", None, None, 7, is_edge=True), "zeroed"),
        ),
        ("average decoder.1.self.*", AverageHead(Place("decoder", 1, "self", None))),
        ("mean decoder.10.self.3", AverageHead(Place("decoder", 10, "self", 3), "mean")),
        (
            "force decoder.1.cross.0:3>2=0.8",
            ForceWeight(Place("decoder", 1, "cross", 0, 3, 2, is_edge=True), 0.8),
        ),
    ],
)
def test_change_reads_and_writes_the_same_text(text: str, change: Change) -> None:
    assert parse_change(text) == change
    assert str(change) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cot decoder.1.cross.0", "Did you mean 'cut'"),
        ("", "must name an action and a place"),
        ("cut", "but is ''"),
        ("cut decoder.1.croos", "Did you mean 'cross'?"),
        ("cut decoder.1.feed_forward", "must be of heads, but decoder.1.feed_forward has none"),
        ("cut decoder.1:3>2", "a head with its part and kind"),
        ("cut decoder.-1.cross.0", "part, layer, kind, head"),
        ("cut decoder.²  .cross.0", "part, layer, kind, head"),
        ("cut encoder.0.cross.0", "The encoder has no cross-attention"),
        ("zero decoder.1.cross.0", "'zero encoder.0.self.2:4>7'"),
        ("average decoder.1.cross.0:1>2", "'average decoder.1.cross.0'"),
        ("force decoder.1.cross.0:3>2", "'force decoder.1.cross.0:3>2=0.8'"),
        ("force decoder.1.cross.0=0.5", "'force decoder.1.cross.0:3>2=0.8'"),
        ("cut decoder.1.cross.0=0.5", "'cut decoder.1.cross.0'"),
        ("force decoder.1.cross.0:3>2=1.5", "from 0 to 1, but is '1.5'"),
        ("force decoder.1.cross.0:3>2=nan", "from 0 to 1, but is 'nan'"),
        ("force decoder.1.cross.0:3>2=much", "from 0 to 1, but is 'much'"),
    ],
)
def test_change_that_says_something_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_change(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("decoder.2.cross.0", "A layer must be from 0 to 1 for this model's decoder, but is 2"),
        ("encoder.1.self.0", "A layer must be from 0 to 0 for this model's encoder, but is 1"),
        ("decoder.1.cross.2", "A head must be from 0 to 1"),
        ("decoder.1.cross.0:8>0", "A query must be from 0 to 7 for this pair, but is 8"),
        ("decoder.1.cross.0:7>9", "A key must be from 0 to 8 for this pair, but is 9"),
        ("encoder.0.self.0:9>0", "A query must be from 0 to 8"),
        ("decoder.*.self.*:2>3", "but is 3 for row 2"),
        ("encoder.1", "A layer must be from 0 to 0 for this model's encoder, but is 1"),
        ("*.2", "A layer must be from 0 to 1 for this model, but is 2"),
    ],
)
def test_place_that_does_not_exist_is_told_with_its_range(
    pair: Pair, text: str, message: str
) -> None:
    probe = Changes(CutEdge(parse_place(text)))
    lengths = len(pair.source_ids), len(pair.target_ids)
    assert lengths == (9, 8)
    with pytest.raises(InputError) as caught:
        probe.check(pair.model.config, *lengths)
    assert message in str(caught.value)


def test_nothing_to_change_is_told(pair: Pair) -> None:
    with pytest.raises(InputError, match="No change was given"):
        Changes().check(pair.model.config, 9, 8)


def test_all_heads_are_as_many_as_the_model_has() -> None:
    config = ModelConfig.model_validate(
        {"num_heads": 3, "d_model": 6, "num_encoder_layers": 2, "num_decoder_layers": 5}
    )
    heads = list(all_heads(config))
    assert len(heads) == len(set(heads)) == 3 * (2 + 2 * 5)
    assert all(parse_place(str(head)) == head for head in heads)


def test_change_of_an_address_without_its_end_is_of_all_its_heads(pair: Pair) -> None:
    layer, both = (see(pair, change) for change in ("cut decoder.0", "cut decoder.0.*.*"))
    one_by_one = see(pair, "cut decoder.0.self.0", "cut decoder.0.self.1", "cut decoder.0.cross")
    for kind in ("self", "cross"):
        assert not layer[f"decoder.0.{kind}.context"].any()
    for name, array in layer.arrays.items():
        np.testing.assert_array_equal(array, both.arrays[name])
        np.testing.assert_array_equal(array, one_by_one.arrays[name])


def test_masked_scores_of_a_cut_edge_are_minus_infinity(pair: Pair) -> None:
    masked = see(pair, "cut decoder.0.cross.1:0>3")["decoder.0.cross.masked"]
    assert masked[1, 0, 3] == -math.inf
    assert np.isfinite(np.delete(masked[1, 0], 3)).all()


@pytest.mark.parametrize(
    ("text", "positions", "how"),
    [
        ("cut word oven", [6], "masked"),
        ("cut word oven.", [6, 7], "masked"),
        ("zero word 6", [6, 7], "zeroed"),
        ("zero word The", [0], "zeroed"),
    ],
)
def test_change_of_a_word_cuts_every_edge_to_its_tokens(
    text: str, positions: list[int], how: str
) -> None:
    demo = load_bundle(resolve_model("demo"))
    line = "The pizza came out of the oven."
    ids = demo.tokenizer.encode_source(line)
    expected = cut_source_word(positions, how)  # type: ignore[arg-type]
    assert parse_changes([text], demo.tokenizer, line, ids) == list(expected.changes)


def test_change_of_a_word_stands_among_others_in_order() -> None:
    demo = load_bundle(resolve_model("demo"))
    line = "The dog saw the dog."
    ids = demo.tokenizer.encode_source(line)
    found = parse_changes(
        ["cut decoder.0.self.1", "cut word 1", "cut word saw"], demo.tokenizer, line, ids
    )
    assert str(found[0].place) == "decoder.0.self.1"
    assert len(found) > 4
    with pytest.raises(InputError, match=r"'dog' occurs 2 times .* number: 1, 4\."):
        parse_changes(["cut word dog"], demo.tokenizer, line, ids)


@pytest.mark.parametrize(
    "text",
    [
        "cut decoder.{}.cross.0",
        "cut decoder.0.cross.{}",
        "cut decoder.0.cross.0:{}>0",
        "cut decoder.0.cross.0:0>{}",
        "force decoder.0.cross.0:0>0={}",
        "cut word {}",
        "{}",
        "cut {}",
    ],
)
@pytest.mark.parametrize("digit", ["9", "0"])
def test_numbers_of_thousands_of_digits_are_refused_in_one_sentence(text: str, digit: str) -> None:
    demo = load_bundle(resolve_model("demo"))
    line = "The dog saw the dog."
    ids = demo.tokenizer.encode_source(line)
    change = text.format(digit * 5000)
    if change.endswith("=" + "0" * 5000):
        assert parse_change(change) == parse_change("force decoder.0.cross.0:0>0=0")
        return
    with pytest.raises(InputError, match=r"must"):
        parse_changes([change], demo.tokenizer, line, ids)


def test_word_is_found_by_letters_before_its_number() -> None:
    words = ["Room", "1", "is", "next", "to", "2."]
    assert find_word("1", words, "A word") == 1
    assert find_word("2", words, "A word") == 5
    assert find_word("03", words, "A word") == 3
    with pytest.raises(InputError, match=r"number from 0 to 5, but is '9' \(here\).*0 Room, 1 1"):
        find_word("9", words, "A word must be one", " (here)")
