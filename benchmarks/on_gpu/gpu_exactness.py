"""Steps of ``gpu.py``: what a device computes, next to float64 and to the processor."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from on_gpu.gpu_decoding import make_decoder
from on_gpu.gpu_setting import Note, Setting
from on_gpu.gpu_training import RATES, make_updater
from torch import Tensor

import pellucid
from pellucid.config import DecodingConfig, TrainingConfig
from pellucid.data import Batch
from pellucid.machine.graphs import WARM_UPS, GraphSchedule
from pellucid.model import EncoderDecoder
from pellucid.training.fast.pytorch import masked_cross_entropy
from pellucid.training.plain import make_update
from pellucid.training.update.batch_parts import make_pieces
from pellucid.training.weights.optimizer import Optimizer

LINES = ("The pizza came out of the oven.", "The cat sleeps.", "I am eating the pizza.")

COMPARED = (
    ("recorded", "float64"),
    ("again, dropout", "recorded, dropout"),
    ("not recorded, dropout", "recorded, dropout"),
)


def measure_graphs(setting: Setting, note: Note) -> None:
    """Check what everything else rests on: work that is recorded, with new data and new seeds."""
    device = setting.device
    generator = torch.Generator(device)
    graphs = setting.graphs(device, generator)
    schedule = GraphSchedule(graphs)
    weight = torch.ones(3, 3, device=device, requires_grad=True)
    weight.grad = torch.zeros_like(weight)
    drawn = torch.zeros(1000, device=device)

    def work(buffers: Mapping[str, Tensor]) -> None:
        drawn.copy_(torch.rand(1000, device=device, generator=generator))
        (buffers["x"] @ weight).sum().backward()

    draws = []
    seconds = []
    expected = torch.zeros(3, 3)
    for step in range(2 * WARM_UPS + 2):
        x = torch.full((2, 3), float(step))
        expected += x.sum(dim=0)[:, None]
        generator.manual_seed(step // 2)  # Each seed twice.
        began = graphs.mark()
        schedule.run("all", {"x": x}, work)
        read = graphs.read_later(weight.grad.flatten(), began)
        *numbers, took = read()
        seconds.append(took)
        draws.append(drawn.tolist())
        assert torch.equal(torch.tensor(numbers), expected.flatten()), step
    pairs = [draws[i] == draws[i + 1] for i in range(len(draws) - 1)]
    note(
        {
            "fault": schedule.fault,
            "same_seed_same_numbers": all(pairs[::2]),
            "other_seed_other_numbers": not any(pairs[1::2]),
            "seconds_of_each": seconds,
        }
    )


def measure_exactness(setting: Setting, note: Note) -> None:
    """Compare logits, loss, gradient, greedy tokens and a look in float32."""
    model = setting.model("base")
    batch = setting.batches(model.config, 200)[0][0]
    exact_logits, exact_gradient = _logits_and_gradient(copy.deepcopy(model).double(), batch, "cpu")
    logits, gradient = _logits_and_gradient(model, batch, setting.device)
    note(
        {
            "logits_off_by": float((logits - exact_logits).abs().max()),
            "gradient_off_by": float((gradient - exact_gradient).norm() / exact_gradient.norm()),
            "loss_off_by": _loss_error(setting),
        }
    )
    note({"look_off_by": _look_error(setting)})
    requests = setting.requests(model.config)[:64]
    tokens = []
    for device in ("cpu", setting.device):
        decoder = make_decoder(copy.deepcopy(model).to(device))
        answers = decoder.decode(requests, DecodingConfig(), batch_tokens=4096)
        tokens.append([answer[0].ids for answer in answers])
    others = sum(one != other for one, other in zip(*tokens, strict=True))
    note({"sentences": len(requests), "sentences_with_other_tokens": others})


def measure_updates(setting: Setting, note: Note) -> None:
    """Compare updates by graphs with the plain update in float64, and with themselves."""
    start = setting.model("base")
    batches, _ = setting.batches(start.config, min(setting.tokens, 2000), few=True)
    # So many of each shape that most are repeated.
    batches = batches[: 1 if setting.is_smallest else 4] * (2 * WARM_UPS + 1)
    begun = _flat(start)
    found: dict[str, Any] = {"updates": len(batches)}
    for optimizer in ("adamw", "muon"):
        weights: dict[str, Tensor] = {}
        for kind in ("recorded", "float64", *dict.fromkeys(sum(COMPARED[1:], ()))):
            training = TrainingConfig.model_validate(
                {
                    "optimizer": optimizer,
                    "dropout": 0.3 if "dropout" in kind else 0.0,
                    "max_gradient_norm": 1.0,
                }
            )
            model = copy.deepcopy(start).to(setting.device)
            if kind == "float64":
                own = Optimizer(model.double(), training)
                for step, batch in enumerate(batches, start=1):
                    make_update(model, own, make_pieces([batch]), training, step=step, **RATES)
            else:
                updater = make_updater(setting, model, training, "float32")
                assert updater.recorded is not None
                if kind.startswith("not"):
                    updater.recorded._schedule.fault = "as it is asked for"
                for step, batch in enumerate(batches, start=1):
                    updater.advance(step, [batch], **RATES)
                updater.read()
                if not kind.startswith("not"):
                    found[f"{optimizer}: fault"] = updater.recorded.fault
            weights[kind] = _flat(model)
            note(found)
        for one, other in COMPARED:
            apart = (weights[one] - weights[other]).norm() / (weights[other] - begun).norm()
            found[f"{optimizer}: {one} from {other}"] = float(apart)
        note(found)


def _flat(model: EncoderDecoder) -> Tensor:
    return torch.cat([one.detach().flatten().double().cpu() for one in model.parameters()])


def _logits_and_gradient(
    model: EncoderDecoder, batch: Batch, device: torch.device | str
) -> tuple[Tensor, Tensor]:
    """Compute the logits of a batch, and the gradient of its mean loss as one vector."""
    model = copy.deepcopy(model).to(device)
    source_BS, mask_BS, target_BT = (
        one.to(device) for one in (batch.source_BS, batch.source_mask_BS, batch.target_in_BT)
    )
    logits_BTV = model(source_BS, target_BT, mask_BS)
    real_BT = batch.target_mask_BT.to(device)
    logits_PV = logits_BTV[real_BT]
    targets_P = batch.target_out_BT.to(device)[real_BT]
    torch.nn.functional.cross_entropy(logits_PV, targets_P).backward()
    gradients = [one.grad.flatten() for one in model.parameters() if one.grad is not None]
    return logits_PV.detach().double().cpu(), torch.cat(gradients).double().cpu()


def _loss_error(setting: Setting) -> float:
    """Compare the gradient of the loss in chunks, in float32 on the device, with float64."""
    config = setting.config("base")
    numbers = torch.Generator().manual_seed(4)
    words = config.target_vocabulary_size
    states_PD = torch.randn(64, config.d_model, generator=numbers)
    weight_VD = torch.randn(words, config.d_model, generator=numbers) / 8
    target_P = torch.randint(words, (64,), generator=numbers)
    real_P = torch.rand(64, generator=numbers) < 0.8
    found = []
    for device, dtype in ((setting.device, torch.float32), ("cpu", torch.float64)):
        states, weight = (one.to(device, dtype).requires_grad_() for one in (states_PD, weight_VD))
        loss, _ = masked_cross_entropy(
            states, weight, None, target_P.to(device), real_P.to(device), smoothing=0.1
        )
        gradients = torch.autograd.grad(loss, [states, weight])
        found.append(torch.cat([one.flatten().double().cpu() for one in gradients]))
    return float((found[0] - found[1]).norm() / found[1].norm())


def _look_error(setting: Setting) -> float:
    """Compare all arrays of the packaged model's looks with those of the processor."""
    furthest = 0.0
    looks = [pellucid.load("demo", device=name) for name in ("cpu", setting.device_name)]
    for line in LINES:
        here, there = (one.look(line) for one in looks)
        for name in here.arrays:
            apart = np.abs(np.asarray(here.arrays[name]) - np.asarray(there.arrays[name]))
            furthest = max(furthest, float(np.nanmax(apart, initial=0.0)))
    return furthest
