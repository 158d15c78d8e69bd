"""Steps compute what the whole model computes while rows leave and change places."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_native import SPECIAL, make_transformer

from pellucid.config import DecodingConfig
from pellucid.decode.decoder import Decoder
from pellucid.decode.steppers import ModelStepper
from pellucid.model import Transformer

VOCABULARY = 23
SOURCES = [[5, 7, 3], [11, 13, 17, 19, 3], [4, 3], [6, 8, 9, 10, 12, 14, 3], [3]]

SWITCHES: list[dict[str, Any]] = [
    {},
    {"norm": "pre"},
    {"norm": "none"},
    {"activation": "swish", "positions": "sinusoidal_halves", "projection_bias": True},
    {"activation": "gelu", "positions": "learned"},
    {"positions": "none", "embedding_scale": "none", "scale_scores": False},
    {"tied_embeddings": "none", "residual": False},
    {"tied_embeddings": "decoder", "source_vocabulary_size": 29},
    {"projections": "qk", "d_value": 5},
    {"projections": "none", "d_key": 7, "d_value": 7},
]


def expected_logits(model: Transformer, source: list[int], target: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        return model(torch.tensor([source]), torch.tensor([target]))[0, -1]


@pytest.mark.sample(5)
@pytest.mark.parametrize("changes", SWITCHES, ids=str)
def test_step_of_every_architecture_equals_the_model(changes: dict[str, Any]) -> None:
    torch.manual_seed(1)
    model = make_transformer(**changes).double()
    stepper = ModelStepper(model, dtype=torch.float64)
    state = stepper.new_state(len(SOURCES), 1)
    everybody = torch.arange(len(SOURCES))
    state.insert(everybody, stepper.encode(SOURCES), everybody)
    targets = torch.randint(0, VOCABULARY, (len(SOURCES), 13))
    for length in range(1, 13):
        logits_AV = stepper.step(state, targets[:, length - 1])
        for row, source in enumerate(SOURCES):
            wanted_V = expected_logits(model, source, targets[row, :length].tolist())
            torch.testing.assert_close(logits_AV[row], wanted_V, atol=1e-10, rtol=1e-10)


@torch.inference_mode()
def test_step_while_sentences_leave_and_rows_change_places_equals_the_model() -> None:
    torch.manual_seed(2)
    model = make_transformer(norm="pre")
    stepper = ModelStepper(model)
    width = 3
    state = stepper.new_state(4, width)
    memory = stepper.encode(SOURCES)
    places = torch.arange(4)
    state.insert(places, memory, places)
    owners = [0, 1, 2, 3]
    texts = [[[] for _ in range(width)] for _ in range(4)]
    for step in range(61):
        if step == 27:  # one leaves
            state.retire(torch.tensor([1]))
            state.keep(torch.tensor([0, 2, 3]))
            owners, texts = [owners[i] for i in (0, 2, 3)], [texts[i] for i in (0, 2, 3)]
        if step == 40:  # all are done and others come
            owners = [4, 0, 2]
            state.insert(torch.arange(3), memory, torch.tensor(owners))
            texts = [[[] for _ in range(width)] for _ in owners]
        newest = torch.randint(0, VOCABULARY, (len(owners) * width,))
        logits_AV = stepper.step(state, newest)
        for row, token in enumerate(newest.tolist()):
            texts[row // width][row % width].append(token)
        for row in range(len(newest)):
            source, text = SOURCES[owners[row // width]], texts[row // width][row % width]
            wanted_V = expected_logits(model, source, text)
            torch.testing.assert_close(logits_AV[row], wanted_V, atol=2e-5, rtol=1e-4)
        parents = torch.randint(0, width, (len(owners), width))
        state.reorder(parents)
        texts = [
            [list(text[parent]) for parent in chosen]
            for text, chosen in zip(texts, parents.tolist(), strict=True)
        ]


def test_step_in_float64_is_as_exact_as_the_model_in_float64() -> None:
    model = make_transformer()
    stepper = ModelStepper(model, dtype=torch.float64)
    model.double()
    state = stepper.new_state(1, 1)
    state.insert(torch.tensor([0]), stepper.encode(SOURCES[:1]), torch.tensor([0]))
    logits_AV = stepper.step(state, torch.tensor([2]))
    assert logits_AV.dtype == torch.float64
    torch.testing.assert_close(
        logits_AV[0], expected_logits(model, SOURCES[0], [2]), atol=1e-12, rtol=0
    )


def test_step_in_bfloat16_is_near_the_model() -> None:
    torch.manual_seed(3)
    model = make_transformer(projection_bias=True)
    logits_AV = first_logits(ModelStepper(model, "bfloat16"))
    wanted_V = expected_logits(model, SOURCES[1], [2])
    assert logits_AV.dtype == torch.float32
    assert not torch.equal(logits_AV[0], wanted_V)
    assert (logits_AV[0] - wanted_V).norm() < 0.15 * wanted_V.norm()


def test_step_in_int8_is_in_float32_and_says_so() -> None:
    model = make_transformer(projections="none", d_key=7, d_value=7).double()
    assert torch.equal(
        first_logits(ModelStepper(model, "int8")), first_logits(ModelStepper(model, "float32"))
    )
    told = Decoder([model], SPECIAL).describe(DecodingConfig(precision="int8"))
    assert told == (
        "PyTorch in float32, since the weights are torch.float64: int8 needs the engine in C"
    )


def first_logits(stepper: ModelStepper) -> torch.Tensor:
    state = stepper.new_state(1, 1)
    state.insert(torch.tensor([0]), stepper.encode(SOURCES[1:2]), torch.tensor([0]))
    return stepper.step(state, torch.tensor([2]))
