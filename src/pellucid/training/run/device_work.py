"""The work of a device other than the processor: its speed, its idle time, its arithmetic."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.machine.devices import describe_device, is_out_of_memory
from pellucid.model import EncoderDecoder
from pellucid.terminal.text import percent
from pellucid.training.learner import Learner
from pellucid.training.plain import UpdateResult

IDLE_SHARE = 0.2
"""Share of the time without work from which the log says that the processor holds the device up."""

SMALLEST_SIDE = 256
LARGEST_SIDE = 8192
"""Sides of the matrices whose product is timed; at the largest an H100 reaches its best."""

SECONDS_OF_A_PRODUCT = 1e-3
"""A product that takes as long is large enough: its start no longer counts."""

ROUNDS = 5


class Arithmetic:
    """Counts the products of a forward and a backward pass, as is usual without all else.

    A weight of a matrix costs a multiplication and an addition at every position: forward, for the
    gradient of what it multiplies, and for its own gradient if it is trained. The products of
    attention cost the same.

    Args:
        model: a Transformer.
    """

    def __init__(self, model: EncoderDecoder) -> None:
        self._config = model.config
        self._per_source = 0
        # The output may be the embedding's table, which is read at the input and multiplied there.
        self._per_target = _flops(model.output_weight)
        for name, weight in model.named_parameters():
            is_table = "embedding." in name or ".positions." in name
            if weight.dim() != 2 or is_table or weight is model.output_weight:
                continue
            # Keys and values of the source are computed from its states, whoever attends to them.
            attends = ".cross_attention.key." in name or ".cross_attention.value." in name
            if attends or name.startswith("encoder."):
                self._per_source += _flops(weight)
            else:
                self._per_target += _flops(weight)

    def count(self, *, rows: int, source: float, target: float) -> float:
        """Count the operations (FLOP) for some sentences without padding.

        Args:
            rows: sentences.
            source: mean tokens of their sources.
            target: mean tokens of their targets.
        """
        config = self._config
        seen = config.num_encoder_layers * source**2 + config.num_decoder_layers * source * target
        if config.decoder == "attention":
            seen += config.num_decoder_layers * target**2
        attention = 6 * seen * config.num_heads * (config.d_key + config.d_value)
        return rows * (source * self._per_source + target * self._per_target + attention)


def _flops(weight: Tensor) -> int:
    return (6 if weight.requires_grad else 4) * weight.numel()


def measure_products(
    device: torch.device,
    precision: Literal["float32", "bfloat16"],
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Measure a device at its best: FLOP/s of a large square product; 0 if memory is short."""
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    generator = torch.Generator(device)  # Training draws from its own.
    side = SMALLEST_SIDE
    while True:
        try:
            shape = (side, side)
            left = torch.rand(shape, generator=generator, device=device).to(dtype)
            seconds = []
            for _ in range(ROUNDS):
                began = clock()
                float((left @ left)[0, 0])  # Waits for the device.
                seconds.append(clock() - began)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return 0.0
        if min(seconds) >= SECONDS_OF_A_PRODUCT or side == LARGEST_SIDE:
            return 2 * side**3 / max(1e-9, min(seconds))
        side *= 2


@dataclass
class _Sums:
    """Sums over some updates."""

    seconds: float = 0.0
    target_tokens: int = 0
    tokens: int = 0
    positions: int = 0
    flops: float = 0.0
    worked: float = 0.0

    def add(self, other: _Sums) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class DeviceWork:
    """Counts what a device does, for the lines of the log and for the end.

    Nothing is counted or said of the processor.

    Args:
        model: that is trained.
        training: the settings.
        device: the name of the device; empty for the processor.
        best: its FLOP/s in products, as `measure_products` finds; 0 if unknown.
        is_timed: True if updates say how long the device worked: those that it repeats by itself.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        training: TrainingConfig,
        device: str,
        *,
        best: float = 0.0,
        is_timed: bool = False,
    ) -> None:
        self._arithmetic = None if model.config.is_recurrent else Arithmetic(model)
        self._readings = 2 if training.r_drop else 1
        self._device = device
        self._best = best
        self._is_timed = is_timed
        self._whole = _Sums()
        self._now = _Sums()
        self._num_lines = 0
        self._has_warned = False

    def begin(self) -> None:
        """Begin again from zero, without what was counted since the last line."""
        self._now = _Sums()

    def count(self, batches: Sequence[Batch]) -> None:
        """Count the positions and the arithmetic of an update."""
        if not self._device:
            return
        now = self._now
        for batch in batches:
            rows = len(batch.source_BS)
            now.positions += batch.source_BS.numel() + batch.target_in_BT.numel()
            now.tokens += batch.num_source_tokens + batch.num_target_tokens
            if self._arithmetic is not None:
                # By mean lengths, since sentences of a batch have about the same.
                now.flops += self._readings * self._arithmetic.count(
                    rows=rows,
                    source=batch.num_source_tokens / rows,
                    target=batch.num_target_tokens / rows,
                )

    def add(self, updated: UpdateResult) -> None:
        """Count the result of an update."""
        self._now.target_tokens += updated.num_target_tokens
        self._now.worked += updated.seconds_worked

    def describe_line(self, seconds: float) -> str:
        """Describe what was counted in so many seconds, as the end of a line of the log."""
        return "".join(f"  {share}" for share in self._shares(self._now, seconds))

    def end_line(self, seconds: float) -> str:
        """Add what was counted to the whole; say once if the device waits for the processor."""
        now = self._now
        now.seconds = seconds
        self.begin()
        self._num_lines += 1
        # In the first lines the device still records its updates.
        if self._num_lines > 1:
            self._whole.add(now)
        if self._num_lines < 3 or self._has_warned or not self._waits(now):
            return ""
        self._has_warned = True
        return self._advice(now)

    def summarize(self) -> str:
        """Describe the whole run; empty if it was too short."""
        whole = self._whole
        if not (self._device and whole.seconds):
            return ""
        speed = f"{whole.target_tokens / whole.seconds:,.0f} target tokens/s"
        said = f"On {self._device}: {', '.join([speed, *self._shares(whole, whole.seconds)])}"
        if self._best:
            said += f" ({self._best / 1e12:,.0f} TFLOP/s)"
        return f"{said}. {self._advice(whole) if self._waits(whole) else ''}".rstrip()

    def _shares(self, sums: _Sums, seconds: float) -> list[str]:
        if not self._device:
            return []
        said = [f"{percent(1 - sums.tokens / max(1, sums.positions))} padding"]
        if self._is_timed:
            said.append(f"device busy {percent(sums.worked / seconds)}")
        if self._best and sums.flops:
            said.append(f"{percent(sums.flops / seconds / self._best)} of its best products")
        return said

    def _waits(self, sums: _Sums) -> bool:
        return self._is_timed and sums.worked < (1 - IDLE_SHARE) * sums.seconds

    def _advice(self, sums: _Sums) -> str:
        return (
            "The processor is the limit: the device waits "
            f"{percent(1 - sums.worked / sums.seconds)} of the time. A larger "
            "training.max_tokens_per_batch helps, and cores without other work."
        )


def watch_device(learner: Learner) -> DeviceWork:
    """Make what counts the work of a run's device, and measure the device at its best."""
    plan = learner.plan
    if plan.device.type == "cpu":
        return DeviceWork(learner.model, learner.training, "")
    return DeviceWork(
        learner.model,
        learner.training,
        describe_device(plan.device),
        best=measure_products(plan.device, plan.precision),
        # With other ranks the time of a device includes waiting for them.
        is_timed=learner.updater.recorded is not None and plan.ranks == 1,
    )
