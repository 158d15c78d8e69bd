"""Later variants of the Transformer: positions in attention, RMS norm, gates, groups of heads.

Every number of their traces is compared with NumPy in `test_trace_parity.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_native import SPECIAL, make_requests, make_transformer
from small_words import make_words_bundle

import pellucid
from pellucid.bundle import load_bundle
from pellucid.config import DecodingConfig, ModelConfig, TrainingConfig
from pellucid.decode.decoder import Decoder
from pellucid.errors import InputError
from pellucid.formats import to_ctranslate2
from pellucid.formats.exporting import check_model
from pellucid.inside import Ask
from pellucid.inside.measures.contributions import contributions, take_apart
from pellucid.inside.pair import make_pair
from pellucid.inside.replayed_pair import replay
from pellucid.inside.show.model_page import cannot_carry
from pellucid.inside.show.steps import follow_one_row
from pellucid.inside.show.view import HeadView
from pellucid.inside.verify import verify_cell
from pellucid.inside.vocabulary import best_words
from pellucid.model import Transformer, initialize
from pellucid.model.rotary import rotate
from pellucid.native.weight_shapes import find_obstacle
from pellucid.training.fast.kernels.kernel_model import choose_kernels

VARIANTS: dict[str, dict[str, Any]] = {
    "rotary": {"positions": "rotary", "d_key": 6},
    "alibi": {"positions": "alibi"},
    "relative": {"positions": "relative", "max_relative_distance": 3},
    "rms": {"norm_kind": "rms"},
    "gated": {"gated_feed_forward": True},
    "grouped": {"num_key_value_heads": 1},
    "ssru": {"decoder": "ssru"},
    "together": {
        **{"positions": "relative", "norm_kind": "rms", "gated_feed_forward": True, "norm": "pre"},
        **{"activation": "swish", "num_heads": 6, "num_key_value_heads": 2},
    },
}
OPTION = {
    **dict.fromkeys(("rotary", "alibi", "relative"), "positions"),
    "together": "norm_kind",
    **{
        "ssru": "decoder",
        "rms": "norm_kind",
        "gated": "gated_feed_forward",
        "grouped": "num_key_value_heads",
    },
}
TEXT, TARGET = "The pizza came out of the oven", "La pizza est sortie du four"


@pytest.fixture(params=VARIANTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ids_of(rows: int, length: int, seed: int) -> torch.Tensor:
    numbers = torch.Generator().manual_seed(seed)
    return torch.randint(4, 23, (rows, length), generator=numbers)


def test_decoding_step_by_step_equals_the_full_pass(name: str) -> None:
    model = make_transformer(**VARIANTS[name]).double()
    source, target = ids_of(3, 11, 1), ids_of(3, 13, 2)
    mask = torch.arange(11) < torch.tensor([[11], [7], [5]])
    whole = model(source, target, mask)
    memory, cache = model.encode(source, mask), model.new_cache()
    rows, pieces = [0, 1, 2], []
    for piece in (target[:, :1], target[:, 1:4], *target[:, 4:].split(1, dim=1)):
        states = model.decode(piece[rows], memory, mask[rows], cache=cache)
        pieces.append(model.logits(states))
    found = torch.cat(pieces, dim=1)
    assert float((found - whole).detach().abs().max()) < 1e-10
    # Rows that are chosen again, as by a beam, keep what they have read.
    cache.reorder(torch.tensor([2, 0]))
    more = ids_of(2, 1, 3)
    states = model.decode(more, memory[[2, 0]], mask[[2, 0]], cache=cache)
    longer = model(source[[2, 0]], torch.cat([target[[2, 0]], more], dim=1), mask[[2, 0]])
    assert torch.allclose(model.logits(states)[:, -1], longer[:, -1], rtol=0, atol=1e-10)


def test_padding_changes_nothing(name: str) -> None:
    model = make_transformer(**VARIANTS[name]).double()
    source, target = ids_of(1, 7, 1), ids_of(1, 5, 2)
    padded = torch.cat([source, torch.zeros(1, 4, dtype=torch.long)], dim=1)
    mask = torch.arange(11)[None] < 7
    assert torch.allclose(model(padded, target, mask), model(source, target), atol=1e-12)


def test_fast_path_equals_the_five_stages_also_in_its_gradients(name: str) -> None:
    class Watch:
        def see(self, site: str, stage: str, tensor: torch.Tensor) -> None:
            return None

    model = make_transformer(**VARIANTS[name]).double().train()
    source, target = ids_of(2, 7, 1), ids_of(2, 131, 2) % 19 + 4  # long enough for fused attention
    model = Transformer(model.config.model_copy(update={"max_target_length": 137})).double()
    initialize(model, 5)
    mask = torch.arange(7) < torch.tensor([[7], [3]])
    found = []
    for probe in (None, Watch()):
        model.zero_grad()
        model(source, target, mask, probe=probe).logsumexp(-1).sum().backward()
        found.append({one: w.grad.clone() for one, w in model.named_parameters()})
    for weight, gradient in found[0].items():
        assert torch.isfinite(gradient).all()
        size = float(found[1][weight].abs().max())
        assert float((gradient - found[1][weight]).abs().max()) <= 1e-9 * max(1.0, size), weight
    tables = [one for one in found[0] if "attention.positions" in one]
    assert bool(tables) == (name in ("relative", "together"))
    assert all(float(found[0][one].abs().max()) > 0 for one in tables)


def test_scores_of_rotary_positions_depend_on_the_distance_only() -> None:
    query, key = torch.randn(1, 3, 1, 14).double(), torch.randn(1, 3, 1, 14).double()
    scores = [
        rotate(query, start + 5) @ rotate(key, start).transpose(-2, -1) for start in (0, 1, 17, 60)
    ]
    for score in scores[1:]:
        assert torch.allclose(score, scores[0], atol=1e-12)
    turned = rotate(key, 11)
    assert torch.allclose(turned.norm(dim=-1), key.norm(dim=-1))
    assert not torch.allclose(turned, key)


def test_alibi_lowers_the_weight_of_far_words_most_in_the_first_head() -> None:
    model = make_transformer(positions="alibi", num_heads=2)
    inside = model.encoder.layers[0].self_attention.positions
    lowered = inside.lower(torch.zeros(1, 2, 3, 3))[0]
    away = torch.tensor([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]])
    assert torch.equal(lowered, torch.stack([-away / 16, -away / 256]))
    # With a cache there are fewer queries than keys: these are the last positions.
    assert torch.equal(inside.lower(torch.zeros(1, 2, 1, 3))[0, :, 0], lowered[:, 2])
    assert torch.equal(model.decoder.layers[0].cross_attention.positions.lower(away), away)


@pytest.mark.parametrize("name", ["rotary", "alibi", "relative"])
def test_positions_in_attention_tell_orders_apart_and_are_not_in_the_input(name: str) -> None:
    model, plain = (
        make_transformer(**VARIANTS[one] if one else {"positions": "none"}).double()
        for one in (name, "")
    )
    source = ids_of(1, 7, 1)
    swapped = torch.tensor([3, 1, 2, 0, 4, 5, 6])

    def change(one: Transformer, order: torch.Tensor) -> float:
        return float(
            (one.encode(source)[:, order] - one.encode(source[:, order])).detach().abs().max()
        )

    assert change(model, swapped) > 1e-3
    assert change(plain, swapped) < 1e-12
    # Distances without a sign are the same in the mirror.
    assert (change(model, torch.arange(6, -1, -1)) < 1e-12) == (name == "alibi")
    assert model.encoder.positions_of(0, 7, like=torch.zeros(1, 14)) is None


def test_engine_kernels_page_and_exports_refuse_a_variant_by_its_option(
    name: str, tmp_path: Path
) -> None:
    bundle = load_bundle(make_words_bundle(tmp_path / "bundle", **VARIANTS[name]))
    config, option = bundle.config.model, OPTION[name]
    said = f"model.{option} is {getattr(config, option)}"
    assert find_obstacle(config, "float32") == (None if name == "ssru" else said)
    kernels = choose_kernels(config, TrainingConfig(), "float32", torch.device("cpu"))
    assert kernels.kernels is None
    assert said in kernels.description
    assert said in cannot_carry(bundle)
    assert "without this option's" in cannot_carry(bundle)
    with pytest.raises(InputError, match=f"model.{option} must be .* for CTranslate2, but is"):
        check_model(bundle, "CTranslate2", to_ctranslate2.ALLOWED)


def test_translation_searches_as_the_full_pass_does_where_need_be_on_pytorch(name: str) -> None:
    model = make_transformer(**VARIANTS[name])
    decoder = Decoder([model], SPECIAL)
    described = "the engine in C" if name == "ssru" else "PyTorch, since model."
    assert decoder.describe(DecodingConfig()).startswith(described)
    requests = make_requests(model, 7)
    found = decoder.decode(requests, DecodingConfig(beam=3), batch_tokens=128)
    for request, (best, *_) in zip(requests, found, strict=True):
        read = torch.tensor([[SPECIAL.start, *best.ids[:-1]]])
        logs = model(torch.tensor([request.source_ids]), read)[0].log_softmax(-1)
        expected = logs[torch.arange(len(best.ids)), list(best.ids)].tolist()
        assert best.token_log_probabilities == pytest.approx(expected, abs=1e-4)


def test_look_inside_holds_its_checks_and_its_parts(name: str, tmp_path: Path) -> None:
    translator = pellucid.load(make_words_bundle(tmp_path / "bundle", **VARIANTS[name]))
    trace = translator.look(TEXT, everything=True)
    assert trace.problems == ()
    assert max(trace.checks[one] for one in ("weights", "rows", "contributions")) < 1e-10
    bundle = translator.bundle
    has_self = bundle.config.model.decoder == "attention"
    for site in ("encoder.0.self", *["decoder.1.self"] * has_self, "decoder.0.cross"):
        for head in range(bundle.config.model.num_heads):
            verified = verify_cell(bundle, trace, site, head, 2, 1)
            assert verified.shown > 0
            assert verified.difference < 1e-6
    pair = make_pair(bundle, TEXT, trace.predicted_ids, float64=True)
    for part, kind in (("encoder", "self"), ("decoder", "cross")):
        assert contributions(pair, part, kind).largest_difference < 1e-12
    for site, attention in take_apart(pair).items():
        whole = attention.parts(1).sum(dim=0) + attention.rest(1)
        assert torch.allclose(whole, attention.result(1), atol=1e-10), site
        if bundle.config.model.norm == "post":
            kept = replay(pair, Ask(stages=("norm",)), float64=True).arrays[f"{site}.norm"]
            assert np.allclose(kept[1], attention.result(1), atol=1e-10), site


def test_steps_of_a_row_say_what_was_computed(name: str, tmp_path: Path) -> None:
    translator = pellucid.load(make_words_bundle(tmp_path / "bundle", **VARIANTS[name]))
    model = translator.bundle.config.model
    trace = translator.look(TEXT, everything=True, float64=True)
    view = HeadView(trace, "encoder", 0, "self", 1, "weights")
    found = {table.title: table for table in follow_one_row(view, model, 3, shown=None)}
    weighing = found["Scores become weights"]
    names = " ".join(weighing.header)
    assert ("q·a" in names) == (model.positions == "relative")
    assert ("slope" in names) == (model.positions == "alibi")
    network = found["The feed-forward network of layer 0"]
    assert ("gate" in [row[0] for row in network.rows]) == model.gated_feed_forward
    entering = [row[0] for row in found["The token's vector"].rows]
    assert ("position 3" in entering) == (model.positions == "sinusoidal")


@pytest.mark.parametrize("name", ["rotary", "relative", "grouped"])
def test_words_that_match_a_query_have_the_scores_of_a_trace(name: str, tmp_path: Path) -> None:
    translator = pellucid.load(make_words_bundle(tmp_path / "bundle", **VARIANTS[name]))
    trace = translator.look(TEXT, everything=True, float64=True)
    pair = make_pair(translator.bundle, TEXT, trace.predicted_ids, float64=True)
    words = best_words(pair, "encoder", head=1, row=4, position=2, most=99)
    by_word = {one.token: one.scaled for one in words}
    scaled = trace["encoder.0.self.1.scaled"][4, 2]
    assert by_word[trace.source_tokens[2]] == pytest.approx(scaled, abs=1e-10)


def test_config_file_of_a_plain_model_names_no_variant(tmp_path: Path) -> None:
    folder = make_words_bundle(tmp_path / "plain")
    written = json.loads((folder / "config.json").read_text())["model"]
    later = {"norm_kind", "gated_feed_forward", "num_key_value_heads", "max_relative_distance"}
    assert not (later | {"decoder"}) & set(written)
    folder = make_words_bundle(tmp_path / "variant", **VARIANTS["together"])
    written = json.loads((folder / "config.json").read_text())["model"]
    assert later <= set(written)
    assert load_bundle(folder).config.model == ModelConfig.model_validate(written)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"positions": "rotary", "d_key": 5}, "d_key must be even for rotary positions"),
        ({"num_heads": 7, "num_key_value_heads": 4}, "num_key_value_heads must divide num_heads"),
        ({"max_relative_distance": 3}, "max_relative_distance must be left out"),
        ({"norm": "none", "norm_kind": "rms"}, "norm_kind must be left out"),
        (
            {"projections": "none", "d_key": 7, "d_value": 7, "num_key_value_heads": 1},
            "num_key_value_heads must be left out without projections",
        ),
        ({"architecture": "recurrent", "norm_kind": "rms"}, "must be left out"),
        ({"architecture": "recurrent", "decoder": "ssru"}, "must be left out"),
        ({"decoder": "ssru", "look_ahead_mask": False}, "look_ahead_mask must be left out"),
    ],
)
def test_options_that_do_not_fit_are_refused(changes: dict[str, Any], said: str) -> None:
    values = {"d_model": 14, "num_heads": 2, "source_vocabulary_size": 23}
    with pytest.raises(ValueError, match=said):
        ModelConfig.model_validate({**values, "target_vocabulary_size": 23, **changes})


def test_as_many_heads_of_keys_as_of_queries_is_the_plain_model() -> None:
    plain = make_transformer(num_key_value_heads=2)
    assert plain.config.num_key_value_heads == 0
    assert find_obstacle(plain.config, "float32") is None


@pytest.mark.sample(3)
def test_variant_learns_to_turn_a_line_around(name: str) -> None:
    sizes = {"d_model": 26, "d_ff": 38, "num_encoder_layers": 1, "num_decoder_layers": 2}
    model = make_transformer(**{**sizes, "d_key": 6, "d_value": 7, **VARIANTS[name]}).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    source = ids_of(7, 5, 11)
    target = torch.cat([torch.full((7, 1), SPECIAL.start), source.flip(1)], dim=1)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        logits = model(source, target[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[0] > 2.5
    assert losses[-1] < 0.3
