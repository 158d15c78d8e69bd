"""What all steps of ``gpu.py`` share: sizes, models, batches and requests of random ids."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pellucid.config import NAMED_SIZES, ModelConfig
from pellucid.data import (
    Batch,
    build_store,
    choose_shapes,
    make_batch,
    padding_share,
    plan_epoch,
    plan_in_shapes,
)
from pellucid.decode.constraints.request import Request
from pellucid.machine.devices import choose_device
from pellucid.machine.graphs import GraphDevice, make_graphs
from pellucid.model import Transformer, initialize

sys.path.append(str(Path(__file__).parents[2] / "tests" / "shared"))
from taped_graphs import TapedGraphs

PAD, START, END, FIRST = 0, 1, 2, 3
"""Ids: padding, the start token, `</s>`, and the first word."""

LENGTH = 16
"""Target tokens of each decoded sentence."""

Note = Callable[[Mapping[str, Any]], None]
"""Takes what was found; it is kept even if the step is cut off after it."""


@dataclass(frozen=True)
class Setting:
    """Where to measure, and how much.

    Attributes:
        device_name: ``cuda``, ``cuda:N`` or ``cpu``.
        is_smallest: True for sizes that only show that everything runs.
    """

    device_name: str
    is_smallest: bool

    @cached_property
    def device(self) -> torch.device:
        """The device, which is tried when it is first asked for."""
        torch.manual_seed(1)
        return choose_device(self.device_name)

    @property
    def tokens(self) -> int:
        """Positions of a batch."""
        return 200 if self.is_smallest else 25_000

    @property
    def updates(self) -> int:
        """Updates by the clock, of each kind and in each round."""
        return 2 if self.is_smallest else 60

    @property
    def sentences(self) -> int:
        """Sentences that are translated at once."""
        return 4 if self.is_smallest else 512

    def config(self, size: str) -> ModelConfig:
        """The sizes of a model."""
        sizes = dict(NAMED_SIZES[size])
        words = 10_000
        if self.is_smallest:
            sizes |= {"d_model": 16, "d_ff": 32, "num_heads": 2}
            sizes |= {"num_encoder_layers": 1, "num_decoder_layers": 1}
            words = 50
        return ModelConfig.model_validate(
            {**sizes, "source_vocabulary_size": words, "target_vocabulary_size": words}
        )

    def model(self, size: str) -> Transformer:
        """A model of random weights, on the processor."""
        model = Transformer(self.config(size))
        initialize(model, seed=1)
        return model

    def graphs(self, device: torch.device, generator: torch.Generator | None = None) -> GraphDevice:
        """Make what records work; on a processor the same calls again stand for it."""
        return make_graphs(device, generator) or TapedGraphs(device, is_taped=False)

    def wait(self) -> None:
        """Wait for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def seconds(self, run: Callable[[], object], *, rounds: int) -> float:
        """Time a call, the median of some rounds."""
        times = []
        for _ in range(rounds):
            self.wait()
            began = time.perf_counter()
            run()
            self.wait()
            times.append(time.perf_counter() - began)
        return statistics.median(times)

    def batches(
        self, config: ModelConfig, budget: int, *, few: bool = False
    ) -> tuple[list[Batch], float]:
        """Make the batches of an epoch; also return their share of padding."""
        lengths = draw_lengths(60 if self.is_smallest else 29_000)
        words = config.source_vocabulary_size
        numbers = np.random.default_rng(2)
        pairs = (
            tuple([*numbers.integers(FIRST, words, length - 1).tolist(), END] for length in both)
            for both in zip(*lengths, strict=True)
        )
        how: dict[str, Any] = {"seed": 1, "epoch": 0, "max_tokens_per_batch": budget}
        if few:
            shapes = choose_shapes(*lengths, max_tokens_per_batch=budget)
            plan = plan_in_shapes(*lengths, shapes, **how)
        else:
            plan = plan_epoch(*lengths, **how)
        with tempfile.TemporaryDirectory() as folder:
            sizes = {"source_vocabulary_size": words, "target_vocabulary_size": words}
            store = build_store(Path(folder) / "store", pairs, **sizes)
            batches = [
                make_batch(store, plan[i], pad_id=PAD, start_id=START, shape=plan.shape_of(i))
                for i in range(len(plan))
            ]
        return batches, padding_share(plan, *lengths)

    def requests(self, config: ModelConfig) -> list[Request]:
        """Make sentences to translate into exactly so many tokens."""
        numbers = np.random.default_rng(3)
        words = config.source_vocabulary_size
        return [
            Request((*numbers.integers(FIRST, words, length - 1).tolist(), END), LENGTH, LENGTH)
            for length in draw_lengths(self.sentences)[0].tolist()
        ]


def draw_lengths(count: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Draw lengths like those of Multi30k in subwords."""
    numbers = np.random.default_rng(1)
    targets = np.exp(numbers.normal(np.log(14), 0.33, count)).round()
    sources = (targets * np.exp(numbers.normal(0, 0.12, count))).round()
    return sources.clip(3, 60).astype(np.int32), targets.clip(3, 60).astype(np.int32)
