"""The work of a device: its arithmetic, and its shares in the log, with a pretended clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from small_model import make_batch, make_model
from taped_graphs import TapedGraphs
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.machine.graphs import WARM_UPS
from pellucid.model import EncoderDecoder, Transformer, initialize
from pellucid.training.plain import UpdateResult
from pellucid.training.run import device_work
from pellucid.training.run.device_work import Arithmetic, DeviceWork, measure_products
from pellucid.training.update.batch_parts import make_pieces
from pellucid.training.update.recorded import RecordedPasses, RecordedUpdates
from pellucid.training.weights.optimizer import Optimizer

SIZES = {
    "source_vocabulary_size": 31,
    "target_vocabulary_size": 31,
    "d_model": 12,
    "d_ff": 20,
    "num_heads": 2,
    "d_key": 5,
    "d_value": 7,
    "num_encoder_layers": 3,
    "num_decoder_layers": 2,
}


def make(**changes: Any) -> Transformer:
    model = Transformer(ModelConfig.model_validate(SIZES | changes))
    initialize(model, seed=3)
    return model


def counted(model: EncoderDecoder, rows: int, source: int, target: int) -> int:
    """Count with PyTorch's own counter, which sees the products that are computed."""
    source_BS = torch.randint(4, 31, (rows, source))
    target_BT = torch.randint(4, 31, (rows, target))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(source_BS, target_BT, torch.ones_like(source_BS, dtype=torch.bool)).sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"gated_feed_forward": True, "tied_embeddings": "decoder"},
        {"positions": "learned", "max_source_length": 40, "max_target_length": 40},
    ],
    ids=["plain", "gated", "learned"],
)
@pytest.mark.parametrize(("rows", "source", "target"), [(1, 7, 11), (5, 13, 3), (3, 2, 17)])
def test_arithmetic_is_what_pytorch_counts(
    changes: dict[str, Any], rows: int, source: int, target: int
) -> None:
    model = make(**changes)
    found = Arithmetic(model).count(rows=rows, source=source, target=target)
    assert found == pytest.approx(counted(model, rows, source, target), rel=1e-9)


def test_frozen_weights_cost_no_gradient_of_their_own() -> None:
    model = make(tied_embeddings="none")
    whole = Arithmetic(model).count(rows=3, source=5, target=7)
    weight = model.output_weight.requires_grad_(False)
    found = Arithmetic(model).count(rows=3, source=5, target=7)
    assert whole - found == 2 * 3 * 7 * weight.numel()


def test_the_best_of_a_device_is_that_of_a_product_that_is_large_enough() -> None:
    # Each product takes 0.4 ms at the first side, and eight times as long at the next.
    now = [0.0]
    seconds = iter([0.0004] * device_work.ROUNDS + [0.0032] * device_work.ROUNDS)
    is_end = [False]

    def clock() -> float:
        if is_end[0]:
            now[0] += next(seconds)
        is_end[0] = not is_end[0]
        return now[0]

    assert measure_products(torch.device("cpu"), "bfloat16", clock) == pytest.approx(
        2 * 512**3 / 0.0032
    )


def test_without_memory_the_best_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(torch, "rand", run_out)
    assert measure_products(torch.device("cpu"), "float32") == 0


def lines(work: DeviceWork, seconds: list[float], worked: float) -> list[str]:
    """Make updates of ten real and six padded positions, and describe each line's seconds."""
    batch = make_batch(2, 5, 3)
    batch = replace(batch, num_source_tokens=6, num_target_tokens=4)
    said = []
    for one in seconds:
        work.begin()
        work.count([batch])
        work.add(UpdateResult(1.0, 1.0, 4, was_made=True, seconds_worked=worked))
        said += [work.describe_line(one), work.end_line(one)]
    return said


def test_a_line_says_padding_the_share_of_work_and_of_the_best_products() -> None:
    model = make_model()
    flops = Arithmetic(model).count(rows=2, source=3, target=2)
    work = DeviceWork(model, TrainingConfig(), "a card", best=flops, is_timed=True)
    said = lines(work, [4.0, 4.0, 4.0], worked=3.6)
    assert said == ["  38 % padding  device busy 90 %  25 % of its best products", ""] * 3
    # The first line, in which the device records its updates, is left out.
    assert work.summarize() == (
        "On a card: 1 target tokens/s, 38 % padding, device busy 90 %, 25 % of its best products "
        "(0 TFLOP/s)."
    )


def test_r_drop_reads_every_pair_twice() -> None:
    model = make_model()
    flops = Arithmetic(model).count(rows=2, source=3, target=2)
    work = DeviceWork(model, TrainingConfig(r_drop=1.0), "a card", best=flops)
    assert lines(work, [4.0], worked=0.0)[0] == "  38 % padding  50 % of its best products"


def test_a_device_that_waits_is_reported_once_after_its_recordings() -> None:
    work = DeviceWork(make_model(), TrainingConfig(), "a card", is_timed=True)
    said = lines(work, [4.0] * 4, worked=1.0)
    advice = (
        "The processor is the limit: the device waits 75 % of the time. A larger "
        "training.max_tokens_per_batch helps, and cores without other work."
    )
    assert said[1::2] == ["", "", advice, ""]
    assert work.summarize().endswith(advice)


def test_of_the_processor_nothing_is_said() -> None:
    work = DeviceWork(make_model(), TrainingConfig(), "")
    assert lines(work, [4.0] * 4, worked=0.0) == [""] * 8
    assert work.summarize() == ""


def test_an_update_says_how_long_the_device_worked() -> None:
    times = iter(range(1000))
    graphs = TapedGraphs(clock=lambda: 0.5 * next(times))
    model = make_model()
    training = TrainingConfig(dropout=0.0)
    optimizer = Optimizer(model, training)
    passes = RecordedPasses(model, training, "float32", graphs, torch.Generator())
    updates = RecordedUpdates(model, optimizer, training, None, passes)
    for step in range(1, WARM_UPS + 3):
        updates.begin(step, make_pieces([make_batch(2, 5, 3)]), rate=0.01, muon_rate=0.01)
    found = updates.read(most_unread=0)
    assert [one.seconds_worked for one in found] == [0.5] * (WARM_UPS + 2)
