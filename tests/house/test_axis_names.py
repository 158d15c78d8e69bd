"""Names and shapes agree: a tensor called ``scores_BHLM`` has four axes, and every B one size.

A profiler looks at each function of the package as it returns, while a small model is trained
and translates with a different prime for every size.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import pellucid
from pellucid.attention import attend
from pellucid.config import DecodingConfig, ModelConfig
from pellucid.data import Batch, build_store, make_batch, make_source_batch
from pellucid.decode.constraints.request import Request, SpecialIds
from pellucid.decode.greedy import decode_greedily
from pellucid.decode.scoring import score_tokens
from pellucid.decode.search.search_loop import Search
from pellucid.decode.steppers import Ensemble, ModelStepper
from pellucid.model import Dropout, Transformer, initialize
from pellucid.shapes import AXES
from pellucid.training.fast.loss import smoothed_cross_entropy

PACKAGE = str(Path(pellucid.__file__).parent)
PAD, START, END = 0, 2, 3


def axes_of(name: str) -> str | None:
    """Read the axis letters at the end of a variable's name.

    Args:
        name: a variable name such as ``"scores_BHLM"``.

    Returns:
        ``"BHLM"``, or None if the name has no axes.
    """
    stem, _, axes = name.rpartition("_")
    # A name such as `BH` has no stem: its letters are the whole name, not its axes.
    if stem and axes and all(letter in AXES for letter in axes):
        return axes
    return None


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("scores_BHLM", "BHLM"),
        ("memory_BSD", "BSD"),
        ("newest_B1", "B1"),
        ("mask_11LM", "11LM"),
        ("states_B1D", "B1D"),
        ("positions_LD", "LD"),
        ("bias_V", "V"),
        ("chosen_log_B", "B"),
        ("_key_BHMK", "BHMK"),
    ],
)
def test_axes_of_a_tensors_name_are_its_last_letters(name: str, axes: str) -> None:
    assert axes_of(name) == axes


@pytest.mark.parametrize(
    "name", ["scores", "BHLM", "_B", "scores_", "d_model", "max_length", "log_Z", "mask_BHx", ""]
)
def test_axes_of_a_name_without_axes_is_none(name: str) -> None:
    assert axes_of(name) is None


def find_disagreements(values: Mapping[str, Any]) -> list[str]:
    """List the tensors whose axes are not those of their names."""
    sizes: dict[str, tuple[int, str]] = {"1": (1, "a broadcast axis")}
    found = []
    for name, shape in named_shapes(values):
        axes = axes_of(name) or ""
        if len(axes) != len(shape):
            found.append(f"{name} has shape {shape}")
            continue
        for letter, size in zip(axes, shape, strict=True):
            known, where = sizes.setdefault(letter, (size, name))
            if size != known:
                found.append(f"{letter} is {size} in {name} {shape}, but {known} in {where}")
    return found


def named_shapes(values: Mapping[str, Any]) -> list[tuple[str, tuple[int, ...]]]:
    """The shapes of all tensors and arrays whose names end in axes."""
    return [
        (name, tuple(value.shape))
        for name, value in values.items()
        if isinstance(value, Tensor | np.ndarray) and axes_of(name)
    ]


@contextmanager
def watch(found: set[str], seen: set[str]) -> Iterator[None]:
    """Check the local variables of every function of the package as it returns."""

    def look(frame: FrameType, event: str, _argument: object) -> None:
        if event != "return" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        place = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"
        values = dict(frame.f_locals)
        seen.update(f"{place}.{name}" for name, _ in named_shapes(values))
        found.update(f"{place}: {problem}" for problem in find_disagreements(values))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)


class Recorder:
    """A probe that changes nothing."""

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        assert site
        assert stage
        assert tensor.dim() >= 2


def make_config(**changes: Any) -> ModelConfig:
    sizes = {"d_model": 22, "d_ff": 41, "num_heads": 3, "d_key": 29, "d_value": 31}
    depths = {"num_encoder_layers": 1, "num_decoder_layers": 2}
    limits = {"max_source_length": 43, "max_target_length": 47}
    vocabulary = {"source_vocabulary_size": 37, "target_vocabulary_size": 37}
    return ModelConfig.model_validate({**sizes, **depths, **limits, **vocabulary, **changes})


def make_pairs() -> list[tuple[list[int], list[int]]]:
    """Five pairs, sources up to 7 tokens and targets up to 11, ending in the end token."""
    random = np.random.default_rng(1)
    lengths = [(7, 11), (6, 11), (5, 4), (3, 9), (2, 2)]
    return [
        ([*random.integers(4, 37, s - 1).tolist(), END], [*random.integers(4, 37, t - 1), END])
        for s, t in lengths
    ]


def make_training_batch(folder: Path) -> Batch:
    store = build_store(
        folder / "store", make_pairs(), source_vocabulary_size=37, target_vocabulary_size=37
    )
    return make_batch(store, np.arange(5), pad_id=PAD, start_id=START)


def train_one_step(model: Transformer, batch: Batch) -> None:
    optimizer = torch.optim.Adam(model.parameters())
    memory_BSD = model.encode(batch.source_BS, batch.source_mask_BS, dropout=Dropout(0.1, 1, 1))
    states_BTD = model.decode(
        batch.target_in_BT, memory_BSD, batch.source_mask_BS, dropout=Dropout(0.1, 1, 1)
    )
    loss, _ = smoothed_cross_entropy(
        states_BTD[batch.target_mask_BT],
        model.output_weight,
        model.output_bias,
        batch.target_out_BT[batch.target_mask_BT],
        smoothing=0.1,
    )
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"d_model": 23, "positions": "learned", "norm": "pre", "projection_bias": True},
        {"tied_embeddings": "none", "source_vocabulary_size": 53, "activation": "gelu"},
    ],
    ids=["paper", "pre-norm", "separate-vocabularies"],
)
def test_axis_names_while_training_and_decoding_agree_with_shapes(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    model = Transformer(make_config(**changes))
    initialize(model, 1)
    found: set[str] = set()
    seen: set[str] = set()
    # The first step makes PyTorch load much that is slow to watch.
    train_one_step(model, make_training_batch(tmp_path / "first"))
    with watch(found, seen):
        batch = make_training_batch(tmp_path / "second")
        train_one_step(model, batch)
        source_BS, source_mask_BS = make_source_batch([s for s, _ in make_pairs()], pad_id=PAD)
        decode_greedily(
            model, source_BS, source_mask_BS, start_id=START, eos_id=END, max_lengths=[13] * 5
        )
        score_tokens(model, source_BS, source_mask_BS, batch.target_in_BT, batch.target_out_BT)
        model(source_BS, batch.target_in_BT, source_mask_BS, probe=Recorder())
        attend(torch.rand(5, 3, 7, 29), torch.rand(5, 3, 11, 29), torch.rand(5, 3, 11, 31))
    assert not found, "\n".join(sorted(found))
    assert len(seen) > 60, sorted(seen)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "options",
    [
        {"beam": 1, "strict": True},
        {"beam": 5, "n_best": 3, "no_repeat_ngram": 2, "repetition_penalty": 1.5},
        {"beam": 6, "diverse_groups": 2},
        {"sample": True, "top_k": 17, "top_p": 0.9, "epsilon": 0.01},
        {"beam": 5, "required": ((19, 23), (29,)), "forbidden": ((31,), (5, 7, 11))},
        {"beam": 2, "prefix_ids": (13, 17), "min_length": 6},
    ],
    ids=str,
)
def test_axis_names_while_searching_agree_with_shapes(options: dict[str, Any]) -> None:
    model = Transformer(make_config())
    initialize(model, 1)
    asked = {name: options[name] for name in Request.__dataclass_fields__ if name in options}
    config = DecodingConfig(**{name: options[name] for name in options if name not in asked})
    requests = [
        Request(source_ids=tuple(source), max_length=13, key=str(index), **asked)
        for index, (source, _) in enumerate(make_pairs() * 3)
    ]
    found: set[str] = set()
    seen: set[str] = set()
    for stepper in (ModelStepper(model), Ensemble([ModelStepper(model), ModelStepper(model)])):
        with watch(found, seen):
            search = Search(stepper, requests, config, SpecialIds(START, END, (PAD,)), sentences=7)
            answers = dict(search.answers())
        assert len(answers) == len(requests)
    assert not found, "\n".join(sorted(found))
    assert len(seen) > 60, sorted(seen)


@pytest.mark.parametrize(
    "values",
    [
        {"scores_BHLM": torch.zeros(5, 3, 7)},
        {"query_BHLK": torch.zeros(5, 3, 7, 29), "mask_BL": np.zeros((5, 11))},
        {"mask_B1": torch.zeros(5, 2)},
    ],
)
def test_guard_wrong_name_is_found(values: dict[str, Any]) -> None:
    assert find_disagreements(values)
