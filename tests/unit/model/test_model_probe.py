"""Looking inside: every place is shown once, in its documented shape, and can be replaced."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from pellucid.config import ModelConfig
from pellucid.errors import InputError
from pellucid.model import Transformer

B, S, T, D, H, K, E, F, V = 2, 5, 7, 22, 3, 13, 17, 19, 37


class Recorder:
    def __init__(self) -> None:
        self.seen: list[tuple[str, Tensor]] = []

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        self.seen.append((f"{site}.{stage}", tensor.detach()))


class Replacer:
    """Replaces what is shown at one place."""

    def __init__(self, place: str, change: Any) -> None:
        self.place = place
        self.change = change

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        return self.change(tensor) if f"{site}.{stage}" == self.place else None


def make_model(**changes: Any) -> Transformer:
    sizes: dict[str, Any] = {
        "d_model": D,
        "d_ff": F,
        "num_heads": H,
        "d_key": K,
        "d_value": E,
        "num_encoder_layers": 2,
        "num_decoder_layers": 1,
        "projection_bias": True,
        "source_vocabulary_size": V,
        "target_vocabulary_size": V,
    }
    model = Transformer(ModelConfig(**{**sizes, **changes})).double()
    numbers = torch.Generator().manual_seed(19)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            width = parameter.shape[1] ** -0.5 if parameter.dim() == 2 else 0.3
            center = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.normal_(center, width, generator=numbers)
    return model


def make_batch() -> tuple[Tensor, Tensor, Tensor]:
    numbers = torch.Generator().manual_seed(23)
    source_BS = torch.randint(V, (B, S), generator=numbers)
    target_BT = torch.randint(V, (B, T), generator=numbers)
    return source_BS, target_BT, torch.arange(S) < torch.tensor([[S], [S - 2]])


def attention_shapes(place: str, queries: int, keys: int) -> dict[str, tuple[int, ...]]:
    return {
        f"{place}.input": (B, queries, D),
        f"{place}.query": (B, H, queries, K),
        f"{place}.key": (B, H, keys, K),
        f"{place}.value": (B, H, keys, E),
        f"{place}.scores": (B, H, queries, keys),
        f"{place}.scaled": (B, H, queries, keys),
        f"{place}.masked": (B, H, queries, keys),
        f"{place}.weights": (B, H, queries, keys),
        f"{place}.context": (B, H, queries, E),
        f"{place}.output": (B, queries, D),
        f"{place}.residual": (B, queries, D),
        f"{place}.norm": (B, queries, D),
    }


def feed_forward_shapes(place: str, length: int) -> dict[str, tuple[int, ...]]:
    return {
        f"{place}.input": (B, length, D),
        f"{place}.inner": (B, length, F),
        f"{place}.activated": (B, length, F),
        f"{place}.output": (B, length, D),
        f"{place}.residual": (B, length, D),
        f"{place}.norm": (B, length, D),
    }


def expected_shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for part, length in (("encoder", S), ("decoder", T)):
        for stage in ("embedding", "positions", "input"):
            shapes[f"{part}.{stage}"] = (B, length, D)
    for layer in (0, 1):
        shapes |= attention_shapes(f"encoder.{layer}.self", S, S)
        shapes |= feed_forward_shapes(f"encoder.{layer}.feed_forward", S)
    shapes |= attention_shapes("decoder.0.self", T, T)
    shapes |= attention_shapes("decoder.0.cross", T, S)
    shapes |= feed_forward_shapes("decoder.0.feed_forward", T)
    shapes["decoder.logits"] = (B, T, V)
    return shapes


def shapes_seen(model: Transformer) -> dict[str, tuple[int, ...]]:
    recorder = Recorder()
    model(*make_batch(), probe=recorder)
    counts = Counter(place for place, _ in recorder.seen)
    assert {place for place, count in counts.items() if count != 1} == set()
    return {place: tuple(tensor.shape) for place, tensor in recorder.seen}


def test_probe_of_a_forward_pass_sees_every_place_once_in_its_shape() -> None:
    assert shapes_seen(make_model()) == expected_shapes()


def test_probe_of_a_pre_norm_model_sees_the_last_norms_too() -> None:
    last = {"encoder.norm": (B, S, D), "decoder.norm": (B, T, D)}
    assert shapes_seen(make_model(norm="pre")) == expected_shapes() | last


def test_probe_of_a_model_without_norms_sees_no_norm() -> None:
    expected = {place: s for place, s in expected_shapes().items() if not place.endswith(".norm")}
    assert shapes_seen(make_model(norm="none")) == expected


def test_probe_of_a_model_without_positions_sees_no_positions() -> None:
    expected = {p: shape for p, shape in expected_shapes().items() if "positions" not in p}
    assert shapes_seen(make_model(positions="none")) == expected


def test_probe_of_learned_positions_sees_them() -> None:
    assert shapes_seen(make_model(positions="learned")) == expected_shapes()


@pytest.mark.parametrize("norm", ["post", "pre", "none"])
def test_what_a_probe_sees_follows_from_what_it_saw_before(norm: str) -> None:
    """The records are the computation: each follows from the records before it."""
    model = make_model(norm=norm)
    recorder = Recorder()
    source_BS, target_BT, source_mask_BS = make_batch()
    logits_BTV = model(source_BS, target_BT, source_mask_BS, probe=recorder)
    seen = dict(recorder.seen)
    assert torch.equal(seen["decoder.logits"], logits_BTV.detach())
    for part in ("encoder", "decoder"):
        both = seen[f"{part}.embedding"] + seen[f"{part}.positions"]
        assert torch.equal(seen[f"{part}.input"], both)
    for place in ("encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.0.cross"):
        scores = seen[f"{place}.query"] @ seen[f"{place}.key"].transpose(-2, -1)
        assert torch.allclose(seen[f"{place}.scores"], scores, rtol=0, atol=1e-12)
        assert torch.equal(seen[f"{place}.scaled"], seen[f"{place}.scores"] / math.sqrt(K))
        masked = seen[f"{place}.masked"]
        allowed = masked != -math.inf
        assert torch.equal(masked[allowed], seen[f"{place}.scaled"][allowed])
        weights = torch.softmax(masked, dim=-1)
        assert torch.allclose(seen[f"{place}.weights"], weights, rtol=0, atol=1e-12)
        context = seen[f"{place}.weights"] @ seen[f"{place}.value"]
        assert torch.allclose(seen[f"{place}.context"], context, rtol=0, atol=1e-12)
    for place in ("encoder.1.feed_forward", "decoder.0.feed_forward", "decoder.0.cross"):
        residual = seen[f"{place}.input"] + seen[f"{place}.output"]
        assert torch.allclose(seen[f"{place}.residual"], residual, rtol=0, atol=1e-12)
    inner, activated = (seen[f"decoder.0.feed_forward.{s}"] for s in ("inner", "activated"))
    assert torch.equal(activated, inner.clamp(min=0))
    # What leaves one sub-layer enters the next.
    leaving = "norm" if norm == "post" else "residual"
    assert torch.equal(seen[f"decoder.0.self.{leaving}"], seen["decoder.0.cross.input"])
    assert torch.equal(seen[f"encoder.0.feed_forward.{leaving}"], seen["encoder.1.self.input"])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_replacement_at_any_place_changes_the_result(norm: str) -> None:
    model = make_model(norm=norm)
    batch = make_batch()
    numbers = torch.Generator().manual_seed(29)

    def disturb(tensor: Tensor) -> Tensor:
        return tensor + torch.randn(tensor.shape, generator=numbers, dtype=tensor.dtype)

    with torch.no_grad():
        before = model(*batch)
        unchanged = []
        for place in shapes_seen(model):
            after = model(*batch, probe=Replacer(place, disturb))
            if float((after - before).abs().max()) < 1e-3:
                unchanged.append(place)
    assert unchanged == []


@pytest.mark.parametrize("place", ["encoder.1.self", "decoder.0.self", "decoder.0.cross"])
@pytest.mark.parametrize("head", [0, 2])
def test_head_with_weights_of_zero_equals_its_slice_of_the_output_matrix_cut(
    place: str, head: int
) -> None:
    model = make_model()
    batch = make_batch()

    def cut(weights_BHLM: Tensor) -> Tensor:
        changed = weights_BHLM.clone()
        changed[:, head] = 0
        return changed

    part, layer, kind = place.split(".")
    with torch.no_grad():
        before = model(*batch)
        actual = model(*batch, probe=Replacer(f"{place}.weights", cut))
        matrix = model.get_parameter(f"{part}.layers.{layer}.{kind}_attention.output.weight")
        matrix[:, head * E : (head + 1) * E] = 0
        expected = model(*batch)
    assert float((actual - expected).abs().max()) <= 1e-10
    assert float((actual - before).abs().max()) > 1e-3


def test_edge_set_to_minus_infinity_gets_weight_zero_and_the_rest_is_shared_anew() -> None:
    model = make_model()
    before, after = Recorder(), Recorder()

    def cut(masked_BHLM: Tensor) -> Tensor:
        changed = masked_BHLM.clone()
        changed[:, :, 3, 1] = -math.inf
        return changed

    class Both:
        def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
            after.see(site, stage, tensor)
            return Replacer("decoder.0.cross.masked", cut).see(site, stage, tensor)

    model(*make_batch(), probe=before)
    model(*make_batch(), probe=Both())
    old = dict(before.seen)["decoder.0.cross.weights"]
    new = dict(after.seen)["decoder.0.cross.weights"]
    assert float(new[:, :, 3, 1].abs().max()) == 0
    rest = old[:, :, 3].clone()
    rest[:, :, 1] = 0
    assert torch.allclose(new[:, :, 3], rest / rest.sum(-1, keepdim=True), rtol=0, atol=1e-12)


def test_replacement_of_the_weights_of_everything_by_what_was_seen_changes_nothing() -> None:
    model = make_model()
    recorder = Recorder()
    with torch.no_grad():
        before = model(*make_batch(), probe=recorder)
        seen = dict(recorder.seen)

        class Replay:
            def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
                return seen[f"{site}.{stage}"].clone()

        assert torch.equal(model(*make_batch(), probe=Replay()), before)


def test_probe_of_some_sites_sees_the_stages_of_those_and_what_is_around_of_all() -> None:
    model, recorder = make_model(), Recorder()
    recorder.sites = {"decoder.0.cross"}  # type: ignore[attr-defined]
    with torch.no_grad():
        found = model(*make_batch(), probe=recorder)
        expected = model(*make_batch())
    inner = ("query", "key", "value", "scores", "scaled", "masked", "weights", "context")
    elsewhere = {
        f"{site}.{stage}"
        for site in ("encoder.0.self", "encoder.1.self", "decoder.0.self")
        for stage in inner
    }
    assert {place for place, _ in recorder.seen} == set(expected_shapes()) - elsewhere
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "place", ["encoder.positions", "encoder.1.self.weights", "decoder.0.feed_forward.inner"]
)
def test_replacement_of_the_wrong_shape_raises_input_error(place: str) -> None:
    model = make_model()
    shape = expected_shapes()[place]
    probe = Replacer(place, lambda tensor: tensor[..., :-1])
    with pytest.raises(InputError) as caught:
        model(*make_batch(), probe=probe)
    assert place in str(caught.value)
    assert str(shape) in str(caught.value)
    assert str((*shape[:-1], shape[-1] - 1)) in str(caught.value)


def test_probe_while_decoding_with_a_cache_sees_the_newest_row_of_the_whole() -> None:
    model = make_model()
    source_BS, target_BT, source_mask_BS = make_batch()
    whole, newest = Recorder(), Recorder()
    with torch.no_grad():
        memory_BSD = model.encode(source_BS, source_mask_BS)
        model.decode(target_BT, memory_BSD, source_mask_BS, probe=whole)
        cache = model.new_cache()
        model.decode(target_BT[:, :-1], memory_BSD, source_mask_BS, cache=cache)
        last_BT = target_BT[:, -1:]
        model.decode(last_BT, memory_BSD, source_mask_BS, cache=cache, probe=newest)
    for kind in ("self", "cross"):
        place = f"decoder.0.{kind}.weights"
        row = dict(whole.seen)[place][:, :, -1:]
        assert torch.allclose(dict(newest.seen)[place], row, rtol=0, atol=1e-12)


class Spoiler:
    """Changes in place what it sees, and replaces nothing."""

    def __init__(self, stages: set[str]) -> None:
        self.stages = stages

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        if stage in self.stages:
            tensor.zero_()


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal_halves", "learned"])
def test_positions_changed_in_place_by_a_probe_stay_as_they_are(positions: str) -> None:
    model = make_model(positions=positions)
    source_BS, target_BT, _ = make_batch()
    with torch.inference_mode():
        before = model(source_BS[:1], target_BT[:1])
        found = model(source_BS[:1], target_BT[:1], probe=Spoiler({"positions"}))
        assert not torch.equal(found, before)
        assert torch.equal(model(source_BS[:1], target_BT[:1]), before)
        model(source_BS, target_BT, probe=Spoiler({"positions"}))  # several rows share a table


def test_keys_and_values_changed_in_place_by_a_probe_stay_in_the_cache() -> None:
    model = make_model()
    source_BS, target_BT, source_mask_BS = make_batch()
    with torch.inference_mode():
        memory_BSD = model.encode(source_BS, source_mask_BS)
        expected = model.decode(target_BT, memory_BSD, source_mask_BS)[:, -1:]
        cache = model.new_cache()
        spoiler = Spoiler({"key", "value"})
        first_BT, last_BT = target_BT[:, :-1], target_BT[:, -1:]
        model.decode(first_BT, memory_BSD, source_mask_BS, cache=cache, probe=spoiler)
        cache_of_others = model.new_cache()
        model.decode(first_BT, memory_BSD, source_mask_BS, cache=cache_of_others)
        for one, other in zip(cache.layers, cache_of_others.layers, strict=True):
            assert one.cross_attention is not None
            assert other.cross_attention is not None
            assert all(map(torch.equal, one.cross_attention, other.cross_attention))
        last = model.decode(last_BT, memory_BSD, source_mask_BS, cache=cache_of_others)
        assert torch.allclose(last, expected, rtol=0, atol=1e-12)


def test_query_changed_in_place_does_not_reach_the_residual_connection() -> None:
    sizes = {"projections": "none", "num_heads": 2, "d_key": D // 2, "d_value": D // 2}
    model, batch, recorder = make_model(**sizes), make_batch(), Recorder()

    class Both:
        def see(self, site: str, stage: str, tensor: Tensor) -> None:
            if stage == "query":
                tensor.zero_()
            recorder.see(site, stage, tensor.clone())

    with torch.no_grad():
        model(*batch, probe=Both())
    seen = dict(recorder.seen)
    name = "encoder.0.self"
    expected = seen[f"{name}.input"] + seen[f"{name}.output"]
    assert torch.allclose(seen[f"{name}.residual"], expected, rtol=0, atol=1e-12)
