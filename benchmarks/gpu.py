"""What a GPU does, in a quarter of an hour: exactness, training, decoding, with one result file.

    make bench-gpu
    python benchmarks/gpu.py --device cuda --size base --minutes 12
    python benchmarks/gpu.py --dry --device cpu --out build/gpu.json

Everything runs on random weights and on random ids whose lengths are those of captions, so that it
needs no text. The parts are:

- `products`: the rate of a large product in bfloat16, which the other rates are shares of;
- `exactness`: logits, the loss in chunks and the gradient in float32 next to float64, and greedy
  tokens next to those of the processor;
- `updates`: weights after some updates that the device repeats by itself (CUDA graphs), next to
  the plain update in float64, and next to the same updates without graphs, with dropout;
- `train`: target tokens a second of updates by graphs, step by step in batches of few shapes, and
  in batches of any, which take turns; the share of the device's best; the most memory;
- `decode`: target tokens a second by graphs and without, greedy and with beam 5, of many sentences
  and of one; next to Hugging Face's `generate` on the same device, if transformers is installed.

The file is written again after each part, so that a run that is cut off leaves what it has.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray
from side_by_side.results import write_result
from torch import Tensor

from pellucid.config import NAMED_SIZES, DecodingConfig, ModelConfig, TrainingConfig
from pellucid.data import (
    Batch,
    build_store,
    choose_shapes,
    make_batch,
    padding_share,
    plan_epoch,
    plan_in_shapes,
)
from pellucid.decode.constraints.request import Request, SpecialIds
from pellucid.decode.decoder import Decoder
from pellucid.machine.devices import choose_device
from pellucid.machine.graphs import WARM_UPS, make_graphs
from pellucid.model import EncoderDecoder, Transformer, initialize
from pellucid.training.fast.loss_on_device import masked_cross_entropy
from pellucid.training.plain import make_update
from pellucid.training.update.batch_parts import make_pieces
from pellucid.training.update.step import Updater
from pellucid.training.weights.averaging import Averaging
from pellucid.training.weights.optimizer import Optimizer

PAD, START, END, FIRST = 0, 1, 2, 3
"""Ids: padding, the start token, `</s>`, and the first word."""

RATES = {"rate": 1e-4, "muon_rate": 1e-3}

LENGTH = 16
"""Target tokens of each decoded sentence."""


def main() -> None:
    """Measure each part, and write the result file."""
    asked = parse()
    torch.manual_seed(1)
    found: dict[str, Any] = {
        "device": _name_of(asked.device),
        "size": "dry" if asked.dry else asked.size,
        "is_dry": asked.dry,
    }
    started = time.monotonic()
    for name, measure in PARTS.items():
        if time.monotonic() - started > 60 * asked.minutes:
            found.setdefault("left_out", []).append(name)
            continue
        found[name] = measure(asked)
        print(f"{name}: {found[name]}", flush=True)
        write_result("gpu", found, (), asked.out)


def parse() -> argparse.Namespace:
    """Read the command line, and make the model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N, or cpu with --dry")
    parser.add_argument("--size", default="base", choices=list(NAMED_SIZES))
    parser.add_argument("--minutes", type=float, default=12, help="no part begins after that")
    parser.add_argument("--updates", type=int, default=100, help="by the clock, of each kind")
    parser.add_argument("--tokens", type=int, default=25_000, help="positions of a batch")
    parser.add_argument("--dry", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--out", type=Path, help="the result file")
    asked = parser.parse_args()
    asked.device = choose_device(asked.device)
    graphs = make_graphs if asked.device.type == "cuda" else SameAgain
    asked.graphs = {"": graphs, ", step by step": lambda device: None}
    sizes = dict(NAMED_SIZES[asked.size])
    words = 10_000
    asked.pairs, asked.sentences = 29_000, 512
    if asked.dry:
        sizes |= {"d_model": 16, "d_ff": 32, "num_heads": 2}
        sizes |= {"num_encoder_layers": 1, "num_decoder_layers": 1}
        words = 50
        asked.pairs, asked.sentences = 60, 4
        asked.updates, asked.tokens = 2, 200
    asked.config = ModelConfig.model_validate(
        {**sizes, "source_vocabulary_size": words, "target_vocabulary_size": words}
    )
    asked.model = Transformer(asked.config)
    initialize(asked.model, seed=1)
    return asked


def measure_products(asked: argparse.Namespace) -> dict[str, float]:
    """Measure the device at its best: TFLOP/s of a square product in bfloat16."""
    width = 64 if asked.dry else 8192
    a = torch.randn(width, width, device=asked.device).bfloat16()
    seconds = _seconds(lambda: a @ a, asked.device, rounds=10)
    asked.tflops = 2 * width**3 / seconds / 1e12
    return {"tflops": asked.tflops}


def measure_exactness(asked: argparse.Namespace) -> dict[str, float]:
    """Compare logits, a gradient and greedy tokens in float32 with float64 or the processor."""
    batch = _batches(asked, 200)[0][0]
    exact_logits, exact_gradient = _logits_and_gradient(asked.model.double(), batch, "cpu")
    model = asked.model.float()
    logits, gradient = _logits_and_gradient(model, batch, asked.device)
    requests = _requests(asked)[:64]
    tokens = []
    for device in ("cpu", asked.device):
        decoder = _decoder(copy.deepcopy(model).to(device))
        answers = decoder.decode(requests, DecodingConfig(), batch_tokens=4096)
        tokens.append([answer[0].ids for answer in answers])
    return {
        "loss_off_by": _loss_error(asked),
        "logits_off_by": float((logits - exact_logits).abs().max()),
        "gradient_off_by": float((gradient - exact_gradient).norm() / exact_gradient.norm()),
        "sentences": len(requests),
        "sentences_with_other_tokens": sum(
            one != other for one, other in zip(*tokens, strict=True)
        ),
    }


def measure_updates(asked: argparse.Namespace) -> dict[str, Any]:
    """Compare updates by graphs with the plain update in float64, and with themselves."""
    batches, _ = _batches(asked, min(asked.tokens, 2000), few=True)
    # So many of each shape that most are repeated.
    batches = batches[:4] * (2 * WARM_UPS + 1)
    found: dict[str, Any] = {"updates": len(batches)}
    for optimizer in ("adamw", "muon"):
        weights = {}
        for kind, dropout in (
            ("float64", 0.0),
            ("recorded", 0.0),
            ("recorded, dropout", 0.3),
            ("again, dropout", 0.3),
            ("not recorded, dropout", 0.3),
        ):
            training = TrainingConfig.model_validate(
                {"optimizer": optimizer, "dropout": dropout, "max_gradient_norm": 1.0}
            )
            model = copy.deepcopy(asked.model)
            if kind == "float64":
                plain = model.double().to(asked.device)
                own = Optimizer(plain, training)
                for step, batch in enumerate(batches, start=1):
                    make_update(plain, own, make_pieces([batch]), training, step=step, **RATES)
            else:
                model = model.float().to(asked.device)
                updater = _recorded(model, training, "float32")
                assert updater.recorded is not None
                if kind.startswith("not"):
                    updater.recorded._schedule.fault = "as it is asked for"
                for step, batch in enumerate(batches, start=1):
                    updater.advance(step, [batch], **RATES)
                updater.read()
                found[f"{optimizer}: fault"] = updater.recorded.fault
            flat = [one.detach().flatten().double().cpu() for one in model.parameters()]
            weights[kind] = torch.cat(flat)
        begun = torch.cat([one.detach().flatten().double() for one in asked.model.parameters()])
        for one, other in (
            ("recorded", "float64"),
            ("again, dropout", "recorded, dropout"),
            ("not recorded, dropout", "recorded, dropout"),
        ):
            apart = (weights[one] - weights[other]).norm() / (weights[other] - begun).norm()
            found[f"{optimizer}: {one} from {other}"] = float(apart)
    return found


def measure_training(asked: argparse.Namespace) -> dict[str, Any]:
    """Time updates by graphs, in few shapes and in any; each kind has its own model."""
    rounds = 2
    found: dict[str, Any] = {}
    kinds = {}
    for kind in ("recorded", "few", "any"):
        batches, padding = _batches(asked, asked.tokens, few=kind != "any")
        training = TrainingConfig.model_validate({"precision": "bfloat16", "optimizer": "adamw"})
        model = copy.deepcopy(asked.model).float().to(asked.device)
        if kind == "recorded":
            updater = _recorded(model, training, "bfloat16")
        else:
            updater = Updater(model, Optimizer(model, training, "bfloat16"), training, "bfloat16")
        kinds[kind] = partial(_update, updater, batches)
        shapes = {(*one.source_BS.shape, one.target_in_BT.shape[1]) for one in batches}
        found[kind] = {"shapes": len(shapes), "padding": padding, "rates": []}
    # Enough for each shape to be recorded before the clock runs.
    asked.updates = max(asked.updates, (WARM_UPS + 1) * found["few"]["shapes"])
    for first in range(0, rounds * asked.updates, asked.updates):
        for kind, update in kinds.items():
            _wait(asked.device)
            began = time.perf_counter()
            tokens = sum(update(first + number) for number in range(asked.updates))
            _wait(asked.device)
            found[kind]["rates"].append(tokens / (time.perf_counter() - began))
    for kind in kinds:
        # The first round meets every shape for the first time.
        found[kind]["tokens_per_second"] = found[kind]["rates"][-1]
        tflops = found[kind]["rates"][-1] * _training_gflop(asked.config) / 1e3
        found[kind]["share_of_best"] = tflops / asked.tflops
    found["gflop_per_target_token"] = _training_gflop(asked.config)
    if asked.device.type == "cuda":
        found["most_bytes"] = torch.cuda.max_memory_allocated(asked.device)
    return found


def measure_decoding(asked: argparse.Namespace) -> dict[str, Any]:
    """Time searches on the device, next to Hugging Face's if it is installed."""
    requests = _requests(asked)
    model = copy.deepcopy(asked.model).float().to(asked.device)
    recorded = _decoder(model)
    plain = _decoder(model)
    found: dict[str, Any] = {}
    for beam, count in ((1, len(requests)), (5, len(requests) // 4), (1, 1), (5, 1)):
        name = f"beam {beam}, {count} sentences"
        some = requests[:count]
        found[name] = {}
        for precision in ("float32", "bfloat16"):
            config = DecodingConfig.model_validate({"beam": beam, "precision": precision})
            for kind, decoder in (("", recorded), (", step by step", plain)):
                run = partial(decoder.decode, some, config, batch_tokens=count * 64 * beam)
                with mock.patch("pellucid.decode.on_pytorch.make_graphs", asked.graphs[kind]):
                    run()
                    run()  # Every bucket is recorded now.
                    seconds = _seconds(run, asked.device, rounds=3)
                found[name][f"{precision}{kind}"] = count * LENGTH / seconds
    if importlib.util.find_spec("transformers") is not None and not asked.dry:
        found["Hugging Face, bfloat16"] = _measure_hugging_face(asked)
    return found


PARTS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "products": measure_products,
    "exactness": measure_exactness,
    "updates": measure_updates,
    "train": measure_training,
    "decode": measure_decoding,
}


def _name_of(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "the processor"


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _seconds(run: Callable[[], object], device: torch.device, *, rounds: int) -> float:
    """Time a call, the median of some rounds after one to warm up."""
    run()
    times = []
    for _ in range(rounds):
        _wait(device)
        began = time.perf_counter()
        run()
        _wait(device)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _lengths(count: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Draw lengths like those of Multi30k in subwords."""
    numbers = np.random.default_rng(1)
    targets = np.exp(numbers.normal(np.log(14), 0.33, count)).round()
    sources = (targets * np.exp(numbers.normal(0, 0.12, count))).round()
    return sources.clip(3, 60).astype(np.int32), targets.clip(3, 60).astype(np.int32)


def _batches(
    asked: argparse.Namespace, budget: int, *, few: bool = False
) -> tuple[list[Batch], float]:
    """Make the batches of an epoch; also return their share of padding."""
    lengths = _lengths(asked.pairs)
    words = asked.config.source_vocabulary_size
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


class SameAgain:
    """What stands for graphs on a processor: the same call again."""

    def __init__(self, device: torch.device, generator: torch.Generator | None = None) -> None:
        self.device = device

    def record(self, work: Callable[[], object]) -> Callable[[], object]:
        """Return the work itself."""
        return work

    def run(self, work: Callable[[], object]) -> None:
        """Run work."""
        work()

    def fill(self, buffers: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
        """Copy values into buffers."""
        for name, value in values.items():
            buffers[name].copy_(value)

    def read_later(self, numbers: Tensor) -> Callable[[], list[float]]:
        """Return what reads the numbers of now."""
        return numbers.clone().tolist


def _recorded(
    model: EncoderDecoder, training: TrainingConfig, precision: Literal["float32", "bfloat16"]
) -> Updater:
    """Make updates that the device repeats by itself."""
    device = next(model.parameters()).device
    graphs = make_graphs if device.type == "cuda" else SameAgain
    with mock.patch("pellucid.training.update.step.make_graphs", graphs):
        return Updater(
            model,
            Optimizer(model, training, precision),
            training,
            precision,
            averaging=Averaging(model, training),
        )


def _update(updater: Updater, batches: list[Batch], number: int) -> int:
    """Make an update; return its target tokens."""
    batch = batches[number % len(batches)]
    updater.advance(number + 1, [batch], **RATES)
    return batch.num_target_tokens


def _logits_and_gradient(
    model: EncoderDecoder, batch: Batch, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor]:
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


def _loss_error(asked: argparse.Namespace) -> float:
    """Compare the gradient of the loss in chunks, in float32 on the device, with float64."""
    numbers = torch.Generator().manual_seed(4)
    words = asked.config.target_vocabulary_size
    states_PD = torch.randn(64, asked.config.d_model, generator=numbers)
    weight_VD = torch.randn(words, asked.config.d_model, generator=numbers) / 8
    target_P = torch.randint(words, (64,), generator=numbers)
    real_P = torch.rand(64, generator=numbers) < 0.8
    found = []
    for device, dtype in ((asked.device, torch.float32), ("cpu", torch.float64)):
        states, weight = (one.to(device, dtype).requires_grad_() for one in (states_PD, weight_VD))
        loss, _ = masked_cross_entropy(
            states, weight, None, target_P.to(device), real_P.to(device), smoothing=0.1
        )
        gradients = torch.autograd.grad(loss, [states, weight])
        found.append(torch.cat([one.flatten().double().cpu() for one in gradients]))
    return float((found[0] - found[1]).norm() / found[1].norm())


def _requests(asked: argparse.Namespace) -> list[Request]:
    numbers = np.random.default_rng(3)
    words = asked.config.source_vocabulary_size
    return [
        Request((*numbers.integers(FIRST, words, length - 1).tolist(), END), LENGTH, LENGTH)
        for length in _lengths(asked.sentences)[0].tolist()
    ]


def _decoder(model: EncoderDecoder) -> Decoder:
    return Decoder([model.eval().requires_grad_(False)], SpecialIds(START, END, (PAD,)))


def _training_gflop(config: ModelConfig) -> float:
    """Estimate the arithmetic of a target token, forward and backward, without attention."""
    model = Transformer(config)
    tables = config.source_vocabulary_size * config.d_model
    # Tables of embeddings are read, not multiplied; the output matrix is.
    weights = sum(one.numel() for one in model.parameters()) - tables
    return 6 * weights / 1e9


def _measure_hugging_face(asked: argparse.Namespace) -> dict[str, float]:
    """Time `generate` of the same sizes, with exactly as many tokens."""
    from transformers import MarianConfig, MarianMTModel

    config = asked.config
    peer = MarianMTModel(
        MarianConfig(
            vocab_size=config.target_vocabulary_size,
            d_model=config.d_model,
            encoder_layers=config.num_encoder_layers,
            decoder_layers=config.num_decoder_layers,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            pad_token_id=PAD,
            decoder_start_token_id=START,
            eos_token_id=END,
            forced_eos_token_id=None,
            max_position_embeddings=128,
        )
    )
    peer = peer.to(asked.device, torch.bfloat16).eval()
    found = {}
    requests = _requests(asked)
    for beam, count in ((1, len(requests)), (5, len(requests) // 4), (1, 1), (5, 1)):
        rows = [torch.tensor(one.source_ids) for one in requests[:count]]
        source_BS = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
        source_BS = source_BS.to(asked.device)
        generate = partial(
            peer.generate,
            input_ids=source_BS,
            attention_mask=source_BS != PAD,
            num_beams=beam,
            min_new_tokens=LENGTH,
            max_new_tokens=LENGTH,
            do_sample=False,
        )
        seconds = _seconds(generate, asked.device, rounds=3)
        found[f"beam {beam}, {count} sentences"] = count * LENGTH / seconds
    return found


if __name__ == "__main__":
    main()
