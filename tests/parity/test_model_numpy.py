"""The whole model against a second computation, written from the formulas, only in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from pellucid.config import ModelConfig
from pellucid.model import Transformer

Array = np.ndarray

# A different prime for every axis; D is even where sines and cosines need pairs.
B, S, T, H, K, E, F, V = 2, 5, 7, 3, 13, 17, 19, 37


class Recorder:
    """A probe that keeps every result."""

    def __init__(self) -> None:
        self.seen: dict[str, torch.Tensor] = {}

    def see(self, site: str, stage: str, tensor: torch.Tensor) -> None:
        self.seen[f"{site}.{stage}"] = tensor


def make_model(*, has_output_bias: bool = False, **changes: Any) -> Transformer:
    sizes: dict[str, Any] = {
        "d_model": 22,
        "d_ff": F,
        "num_heads": H,
        "d_key": K,
        "d_value": E,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "source_vocabulary_size": V,
        "target_vocabulary_size": V,
        "max_source_length": 11,
        "max_target_length": 11,
        "projection_bias": True,
    }
    model = Transformer(ModelConfig(**{**sizes, **changes}), has_output_bias=has_output_bias)
    numbers = torch.Generator().manual_seed(29)
    model = model.double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Wide enough that every weight matters, narrow enough that no softmax saturates.
            width = parameter.shape[1] ** -0.5 if parameter.dim() == 2 else 0.3
            center = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.normal_(center, width, generator=numbers)
    return model


def make_batch(vocabulary: int = V) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    numbers = torch.Generator().manual_seed(31)
    source_BS = torch.randint(vocabulary, (B, S), generator=numbers)
    target_BT = torch.randint(vocabulary, (B, T), generator=numbers)
    source_mask_BS = torch.arange(S) < torch.tensor([[S], [S - 2]])
    return source_BS, target_BT, source_mask_BS


class Reference:
    """Reads one sentence pair at a time, one head at a time, one key at a time."""

    def __init__(self, model: Transformer) -> None:
        self.config = model.config
        self.weights = {name: value.numpy() for name, value in model.state_dict().items()}
        self.seen: dict[str, Array] = {}

    def logits(self, source: Array, target: Array) -> Array:
        tied = self.config.tied_embeddings
        source_table = "embedding" if tied == "all" else "source_embedding"
        target_table = "embedding" if tied == "all" else "target_embedding"
        memory = self.stack("encoder", source, source_table, None)
        states = self.stack("decoder", target, target_table, memory)
        output = "output" if tied == "none" else target_table
        logits: Array = states @ self.weights[f"{output}.weight"].T
        return logits + self.weights.get("output.bias", 0.0)

    def stack(self, part: str, ids: Array, table: str, memory: Array | None) -> Array:
        config = self.config
        x = self.weights[f"{table}.weight"][ids]
        if config.embedding_scale == "sqrt":
            x = x * math.sqrt(config.d_model)
        self.seen[f"{part}.embedding"] = x
        if config.positions == "learned":
            x = x + self.weights[f"{part}.positions.weight"][: len(ids)]
        elif config.positions != "none":
            x = x + np.array([self.position(index) for index in range(len(ids))])
        self.seen[f"{part}.input"] = x
        is_encoder = part == "encoder"
        depth = config.num_encoder_layers if is_encoder else config.num_decoder_layers
        for index in range(depth):
            name = f"{part}.layers.{index}"
            site = f"{part}.{index}"
            is_causal = not is_encoder and config.look_ahead_mask
            x = self.around(
                x,
                lambda y, n=name, s=site, c=is_causal: self.attention(
                    f"{n}.self_attention", f"{s}.self", y, y, c
                ),
                f"{name}.self_attention_norm",
            )
            if memory is not None:
                x = self.around(
                    x,
                    lambda y, n=name, s=site: self.attention(
                        f"{n}.cross_attention", f"{s}.cross", y, memory, False
                    ),
                    f"{name}.cross_attention_norm",
                )
            x = self.around(
                x,
                lambda y, n=name: self.feed_forward(f"{n}.feed_forward", y),
                f"{name}.feed_forward_norm",
            )
        return self.layer_norm(x, f"{part}.norm") if config.norm == "pre" else x

    def position(self, index: int) -> Array:
        width = self.config.d_model
        angles = [index / 10000 ** (2 * j / width) for j in range(width // 2)]
        sines, cosines = [math.sin(a) for a in angles], [math.cos(a) for a in angles]
        if self.config.positions == "sinusoidal_halves":
            return np.array(sines + cosines)
        return np.array([value for pair in zip(sines, cosines, strict=True) for value in pair])

    def around(self, x: Array, sublayer: Any, norm: str) -> Array:
        entering = self.layer_norm(x, norm) if self.config.norm == "pre" else x
        result: Array = sublayer(entering)
        if self.config.residual:
            result = x + result
        return self.layer_norm(result, norm) if self.config.norm == "post" else result

    def layer_norm(self, x: Array, name: str) -> Array:
        rows = []
        for row in x:
            mean = sum(row) / len(row)
            variance = sum((value - mean) ** 2 for value in row) / len(row)
            rows.append((row - mean) / math.sqrt(variance + self.config.layer_norm_epsilon))
        gained: Array = np.array(rows) * self.weights[f"{name}.weight"]
        return gained + self.weights[f"{name}.bias"]

    def linear(self, x: Array, name: str) -> Array:
        product: Array = x @ self.weights[f"{name}.weight"].T
        return product + self.weights.get(f"{name}.bias", 0.0)

    def attention(self, name: str, site: str, x: Array, y: Array, is_causal: bool) -> Array:
        config = self.config
        query = x if config.projections == "none" else self.linear(x, f"{name}.query")
        key = y if config.projections == "none" else self.linear(y, f"{name}.key")
        value = self.linear(y, f"{name}.value") if config.projections == "qkv" else key
        all_weights, contexts = [], []
        for head in range(config.num_heads):
            mine = slice(head * config.d_key, (head + 1) * config.d_key)
            worth = value[:, head * config.d_value : (head + 1) * config.d_value]
            rows = []
            for index, row in enumerate(query[:, mine]):
                scores = key[:, mine] @ row
                if config.scale_scores:
                    scores = scores / math.sqrt(config.d_key)
                if is_causal:
                    scores = scores[: index + 1]
                powers = np.exp(scores - scores.max())
                padded = np.zeros(len(y))
                padded[: len(scores)] = powers / powers.sum()
                rows.append(padded)
            all_weights.append(np.array(rows))
            contexts.append(all_weights[-1] @ worth)
        self.seen[f"{site}.weights"] = np.array(all_weights)
        self.seen[f"{site}.context"] = np.array(contexts)
        return self.linear(np.concatenate(contexts, axis=1), f"{name}.output")

    def feed_forward(self, name: str, x: Array) -> Array:
        inner = self.linear(x, f"{name}.inner")
        if self.config.activation == "relu":
            activated = np.maximum(inner, 0)
        elif self.config.activation == "swish":
            activated = inner / (1 + np.exp(-inner))
        else:
            activated = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        return self.linear(activated, f"{name}.outer")


def difference_from_reference(model: Transformer) -> tuple[float, float]:
    source_BS, target_BT, source_mask_BS = make_batch()
    recorder = Recorder()
    with torch.no_grad():
        logits_BTV = model(source_BS, target_BT, source_mask_BS, probe=recorder).numpy()
        without_probe_BTV = model(source_BS, target_BT, source_mask_BS).numpy()
    differences = []
    for row in range(B):
        length = int(source_mask_BS[row].sum())
        reference = Reference(model)
        expected_TV = reference.logits(source_BS[row, :length].numpy(), target_BT[row].numpy())
        for computed_BTV in (logits_BTV, without_probe_BTV):
            assert computed_BTV[row].shape == expected_TV.shape
            differences.append(np.abs(computed_BTV[row] - expected_TV).ravel())
        for place, expected in reference.seen.items():
            real = tuple(slice(0, size) for size in expected.shape)
            differences.append(np.abs(recorder.seen[place][row].numpy()[real] - expected).ravel())
    everything = np.concatenate(differences)
    return float(everything.max()), float(everything.mean())


CASES: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "pre-norm": {"norm": "pre"},
    "no norm": {"norm": "none", "num_encoder_layers": 1, "num_decoder_layers": 1},
    "wide layer norm epsilon": {"layer_norm_epsilon": 0.3},
    "gelu": {"activation": "gelu"},
    "swish": {"activation": "swish"},
    "width 4, one head of 16": {"d_model": 4, "num_heads": 1, "d_key": 16, "d_value": 16},
    "width 4, three heads of 16": {"d_model": 4, "num_heads": 3, "d_key": 16, "d_value": 16},
    "values wider than keys": {"d_key": 5, "d_value": 23},
    "values of width 1": {"d_value": 1},
    "no biases": {"projection_bias": False},
    "halved positions": {"positions": "sinusoidal_halves"},
    "learned positions": {"positions": "learned", "d_model": 29},
    "no positions": {"positions": "none", "d_model": 29},
    "embeddings not scaled": {"embedding_scale": "none"},
    "decoder tied": {"tied_embeddings": "decoder"},
    "nothing tied": {"tied_embeddings": "none"},
    "output bias": {"has_output_bias": True},
    "nothing tied, output bias": {"tied_embeddings": "none", "has_output_bias": True},
    "no residual": {"residual": False},
    "no residual, pre-norm": {"residual": False, "norm": "pre"},
    "scores not scaled": {"scale_scores": False},
    "no look-ahead mask": {"look_ahead_mask": False},
    "weights on keys": {"projections": "qk", "d_value": K},
    "no projections": {"projections": "none", "d_model": 26, "num_heads": 2, "d_value": 13},
}


@pytest.mark.parametrize("case", CASES)
def test_model_of_every_kind_equals_numpy(case: str) -> None:
    largest, mean = difference_from_reference(make_model(**CASES[case]))
    assert largest <= 1e-10, f"{case}: largest difference {largest:.3g}, mean {mean:.3g}"


@pytest.mark.parametrize("case", ["pre-norm", "nothing tied, output bias"])
def test_every_weight_when_changed_is_noticed(case: str) -> None:
    """Guard: every tensor matters enough for the comparison above to see a mistake in it."""
    model = make_model(**CASES[case], num_encoder_layers=1, num_decoder_layers=2)
    source_BS, target_BT, source_mask_BS = make_batch()
    numbers = torch.Generator().manual_seed(41)
    unnoticed = []
    with torch.no_grad():
        before_BTV = model(source_BS, target_BT, source_mask_BS)
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=numbers, dtype=torch.float64)
            parameter.add_(0.01 * noise)
            after_BTV = model(source_BS, target_BT, source_mask_BS)
            parameter.sub_(0.01 * noise)
            if float((before_BTV - after_BTV).abs().max()) < 1e-6:
                unnoticed.append(name)
    # A bias of the keys adds the same to all scores of a row, and softmax drops it.
    assert [name for name in unnoticed if not name.endswith("attention.key.bias")] == []
