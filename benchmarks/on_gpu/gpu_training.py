"""Steps of ``gpu.py``: the rate of products, and target tokens a second in training."""

from __future__ import annotations

import copy
import importlib.util
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal
from unittest import mock

import torch
from on_gpu.gpu_setting import END, PAD, START, Note, Setting
from torch import nn

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch
from pellucid.machine.devices import describe_device
from pellucid.machine.graphs import WARM_UPS
from pellucid.model import EncoderDecoder
from pellucid.training.run.device_work import Arithmetic
from pellucid.training.run.device_work import measure_products as best_rate
from pellucid.training.update.step import Updater
from pellucid.training.weights.averaging import Averaging
from pellucid.training.weights.optimizer import Optimizer

RATES = {"rate": 1e-4, "muon_rate": 1e-3}
ROUNDS = 3
"""The first meets every shape for the first time, and does not count."""


def measure_products(setting: Setting, note: Note) -> None:
    """Measure the device at its best."""
    best = best_rate(setting.device, "bfloat16")
    note({"device": describe_device(setting.device), "tflops": best / 1e12})


def measure_training(setting: Setting, note: Note, *, size: str) -> None:
    """Time updates by graphs, in few shapes and in any, and Hugging Face's, in turn."""
    model = setting.model(size)
    kinds: dict[str, Kind] = {
        "recorded": OwnUpdates(setting, model, "recorded"),
        "few": OwnUpdates(setting, model, "few"),
        "any": OwnUpdates(setting, model, "any"),
    }
    if importlib.util.find_spec("transformers") is not None:
        for attention in ("sdpa", "eager"):
            kinds[f"Hugging Face, {attention}"] = HuggingFace(setting, model.config, attention)
    best = best_rate(setting.device, "bfloat16")
    arithmetic = Arithmetic(model)
    found: dict[str, Any] = {"best_tflops": best / 1e12}
    for round_ in range(2 if setting.is_smallest else ROUNDS):
        for name, kind in list(kinds.items()):
            try:
                tokens, flops, seconds = kind.run(arithmetic, is_first=round_ == 0)
            except RuntimeError as error:  # Others are still measured.
                found[name] = {"failed": str(error)[:300]}
                del kinds[name]
                continue
            if round_ == 0:
                found[name] = {**kind.facts, "first_round": tokens / seconds, "rates": []}
                continue
            one = found[name]
            one["rates"].append(tokens / seconds)
            one["tokens_per_second"] = max(one["rates"])
            one["share_of_best"] = one["tokens_per_second"] * flops / tokens / best
            found |= _ratios(found)
            note(found)
    own = kinds.get("recorded")
    if isinstance(own, OwnUpdates):
        note({"recorded": found["recorded"] | own.found()})
    if setting.device.type == "cuda":
        note({"most_bytes": torch.cuda.max_memory_allocated(setting.device)})


def _ratios(found: dict[str, Any]) -> dict[str, float]:
    """Compare the recorded updates with the others."""
    rates = {
        name: one["tokens_per_second"]
        for name, one in found.items()
        if isinstance(one, dict) and "tokens_per_second" in one
    }
    own = rates.get("recorded")
    theirs = [rate for name, rate in rates.items() if name.startswith("Hugging")]
    said = {}
    if own and "any" in rates:
        said["times_the_one_line"] = own / rates["any"]
    if own and theirs:
        said["times_hugging_face"] = own / max(theirs)
    return said


class Kind(ABC):
    """One way to train, over batches that repeat.

    Args:
        setting: where and how much.
        config: of the model.
        few: True for batches of few shapes.
    """

    facts: dict[str, Any]

    def __init__(self, setting: Setting, config: ModelConfig, *, few: bool) -> None:
        self._setting = setting
        self._batches, padding = setting.batches(config, setting.tokens, few=few)
        if setting.is_smallest:
            del self._batches[2:]
        shapes = {(*one.source_BS.shape, one.target_in_BT.shape[1]) for one in self._batches}
        self.facts = {"shapes": len(shapes), "padding": padding}
        self._number = 0

    def run(self, arithmetic: Arithmetic, *, is_first: bool) -> tuple[int, float, float]:
        """Make some updates; return their target tokens, their arithmetic, and the seconds.

        Args:
            arithmetic: counts it.
            is_first: True for so many that each shape can have been recorded.
        """
        count = self._setting.updates
        if is_first:
            count = max(count // 2, (WARM_UPS + 1) * self.facts["shapes"])
        tokens = 0
        flops = 0.0
        self._setting.wait()
        began = time.perf_counter()
        for _ in range(count):
            batch = self._batches[self._number % len(self._batches)]
            self._number += 1
            self.update(batch)
            rows = len(batch.source_BS)
            tokens += batch.num_target_tokens
            flops += arithmetic.count(
                rows=rows,
                source=batch.num_source_tokens / rows,
                target=batch.num_target_tokens / rows,
            )
        self.finish()
        self._setting.wait()
        return tokens, flops, time.perf_counter() - began

    @abstractmethod
    def update(self, batch: Batch) -> None:
        """Make an update."""

    @abstractmethod
    def finish(self) -> None:
        """Read what is under way, if anything."""


class OwnUpdates(Kind):
    """Updates of this package: ``recorded``, in ``few`` shapes step by step, or in ``any``."""

    def __init__(self, setting: Setting, model: EncoderDecoder, kind: str) -> None:
        super().__init__(setting, model.config, few=kind != "any")
        training = TrainingConfig.model_validate({"precision": "bfloat16", "optimizer": "adamw"})
        model = copy.deepcopy(model).float().to(setting.device)
        self.updater = make_updater(
            setting, model, training, "bfloat16", is_recorded=kind == "recorded"
        )
        self._worked = self._seconds = 0.0

    def run(self, arithmetic: Arithmetic, *, is_first: bool) -> tuple[int, float, float]:
        """Also count the time that the device worked, without the first round."""
        self._worked = 0.0
        found = super().run(arithmetic, is_first=is_first)
        self._seconds = found[2]
        return found

    def update(self, batch: Batch) -> None:
        """Make an update."""
        for one in self.updater.advance(self._number, [batch], **RATES):
            self._worked += one.seconds_worked

    def finish(self) -> None:
        """Read the last results."""
        for one in self.updater.read():
            self._worked += one.seconds_worked

    def found(self) -> dict[str, Any]:
        """Say why graphs were not recorded, if so, and how busy the device was."""
        recorded = self.updater.recorded
        fault = "" if recorded is None else recorded.fault
        return {"fault": fault, "device_busy": self._worked / self._seconds}


class HuggingFace(Kind):
    """A plain loop around the same model of transformers, in bfloat16 by autocast.

    cuDNN's attention, which plans every new shape, is off for it as well (`OwnUpdates` sees to it).
    """

    def __init__(self, setting: Setting, config: ModelConfig, attention: str) -> None:
        super().__init__(setting, config, few=False)
        self._model = make_peer(config, attention).to(setting.device).train()
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-4, fused=True)

    def update(self, batch: Batch) -> None:
        """Make an update."""
        device = self._setting.device
        source, mask, read, predicted, real = (
            one.to(device, non_blocking=True)
            for one in (
                batch.source_BS,
                batch.source_mask_BS,
                batch.target_in_BT,
                batch.target_out_BT,
                batch.target_mask_BT,
            )
        )
        is_cuda = device.type == "cuda"
        with torch.autocast("cuda", torch.bfloat16) if is_cuda else nullcontext():
            logits = self._model(
                input_ids=source, attention_mask=mask.long(), decoder_input_ids=read
            ).logits
            loss = nn.functional.cross_entropy(
                logits.flatten(0, 1),
                predicted.masked_fill(~real, -100).flatten(),
                label_smoothing=0.1,
            )
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()

    def finish(self) -> None:
        """Do nothing: no result is read later."""


def make_updater(
    setting: Setting,
    model: EncoderDecoder,
    training: TrainingConfig,
    precision: Literal["float32", "bfloat16"],
    *,
    is_recorded: bool = True,
) -> Updater:
    """Make the updates of a model, by graphs or step by step."""
    graphs: Callable[..., Any] = setting.graphs if is_recorded else (lambda *_: None)
    with mock.patch("pellucid.training.update.recorded.make_graphs", graphs):
        return Updater(
            model,
            Optimizer(model, training, precision),
            training,
            precision,
            averaging=Averaging(model, training) if is_recorded else None,
        )


def make_peer(config: ModelConfig, attention: str = "sdpa") -> Any:
    """Make the same model of transformers, with random weights."""
    from transformers import MarianConfig, MarianMTModel

    return MarianMTModel(
        MarianConfig(
            vocab_size=config.target_vocabulary_size,
            d_model=config.d_model,
            encoder_layers=config.num_encoder_layers,
            decoder_layers=config.num_decoder_layers,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            activation_function="relu",
            dropout=0.1,
            pad_token_id=PAD,
            decoder_start_token_id=START,
            eos_token_id=END,
            forced_eos_token_id=None,
            max_position_embeddings=128,
            attn_implementation=attention,
        )
    )
