"""The parts of ``benchmarks/decode_speed.py``: what it counts, and how it divides its time."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

import pellucid
from pellucid.bundle import resolve_model
from pellucid.config import ModelConfig
from pellucid.model import Transformer

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from decode_peers import plan, report
from decode_peers.arithmetic import bytes_per_token, operations_per_token
from decode_peers.measured import WARM_TOKENS, measure_passes
from decode_peers.run_pellucid import load

SIZES = ModelConfig.model_validate(
    {"d_model": 6, "d_ff": 11, "num_heads": 2, "num_encoder_layers": 3, "num_decoder_layers": 2}
    | {"source_vocabulary_size": 17, "target_vocabulary_size": 17, "tied_embeddings": "all"}
)


def matrices(part: str, leave_out: tuple[str, ...] = ()) -> int:
    """Count the weights of a part's matrices in a real model."""
    return sum(
        weight.numel()
        for name, weight in Transformer(SIZES).named_parameters()
        if name.startswith(part) and weight.dim() == 2 and not any(one in name for one in leave_out)
    )


def test_a_single_token_costs_every_matrix_once_and_attention_for_each_pair() -> None:
    source = 5
    cross = ("cross_attention.key", "cross_attention.value")
    per_step = matrices("decoder.layers", cross) + SIZES.d_model * SIZES.target_vocabulary_size
    per_source = (
        matrices("encoder.layers") + matrices("decoder.layers") - matrices("decoder.layers", cross)
    )
    pairs = SIZES.num_encoder_layers * source**2 + SIZES.num_decoder_layers * (1 + source)

    found = operations_per_token(SIZES, source, 1, 1)

    assert found == 2 * (per_source * source + per_step + 2 * SIZES.d_model * pairs)
    assert bytes_per_token(SIZES, 1, "float32") == 4 * (per_source + per_step)


def test_only_the_first_step_of_a_beam_has_one_hypothesis() -> None:
    one, three = (3 * operations_per_token(SIZES, 5, 3, beam) for beam in (1, 3))
    short = operations_per_token(SIZES, 5, 1, 1)

    assert three - short == pytest.approx(3 * (one - short))


def passes(*choices: dict[str, int]) -> list[dict[str, Any]]:
    return [
        {"beam": 1, "batch": 2, "sentences": 5, "call": 3, "limit": 7, **one} for one in choices
    ]


def test_a_pass_translates_its_sentences_in_calls_within_its_limit() -> None:
    calls: list[list[int]] = []

    def load_fake(work: dict[str, Any]) -> Any:
        def translate(sentences: list[dict[str, Any]], _beam: int, _batch: int) -> list[Any]:
            calls.append([one["limit"] for one in sentences])
            return [[work["threads"]] * one["limit"] for one in sentences]

        return translate, {"threads": str(work["threads"])}

    work = {"sentences": [{"limit": n} for n in (2, 3, 13, 5, 11, 17)]}
    work["passes"] = passes({"threads": 1}, {"threads": 2})

    found = measure_passes(load_fake, work)["passes"]

    assert max(calls[0]) == WARM_TOKENS
    assert calls[1:3] == [[2, 3, 7], [5, 7]]
    assert [len(one) for one in found[1]["outputs"]] == [2, 3, 7, 5, 7]
    assert [one["versions"]["threads"] for one in found] == ["1", "2"]


def test_a_system_is_loaded_again_only_for_other_threads() -> None:
    loaded: list[int] = []

    def load_fake(work: dict[str, Any]) -> Any:
        loaded.append(work["threads"])
        return (lambda sentences, _beam, _batch: [[] for _ in sentences]), {}

    work = {"sentences": [{"limit": 3}] * 5}
    work["passes"] = passes({"threads": 1}, {"threads": 1, "batch": 3}, {"threads": 2})

    measure_passes(load_fake, work)

    assert loaded == [1, 2]


def test_the_measured_translations_are_those_of_the_model() -> None:
    model = pellucid.load("demo")
    texts = ["The dog sleeps.", "A man is riding a bicycle."]
    ids = model.tokenizer.encode_sources(texts)
    work = {"model": str(resolve_model("demo")), "precision": "float32", "stopping": "safe"}
    threads = torch.get_num_threads()

    translate, _ = load({**work, "use_minimum_length": False, "threads": threads})
    found = translate([{"ids": one, "limit": 31} for one in ids], 3, 2)

    wanted = model.translate(texts, beam=3, length_penalty="average", alpha=1.0, clean=False)
    decoded = [model.tokenizer.decode_target(one) for one in found]
    assert decoded == [one.text for one in wanted]


def setting(name: str = "large-greedy", call: int = 128) -> plan.Setting:
    return plan.Setting(name, 1, (128,) if call > 1 else (1,), 1024, call)


def test_all_of_a_call_is_one_batch_or_shared_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan.os, "cpu_count", lambda: 2)

    found = plan.variants_of("ctranslate2", setting(), is_quick=True)

    assert found == [
        {"batch": 128, "workers": 1, "threads": 1},
        {"batch": 128, "workers": 1, "threads": 2},
        {"batch": 64, "workers": 2, "threads": 1},
    ]
    single = plan.Setting("single-greedy", 1, (1,), 64, 64)
    assert [one["threads"] for one in plan.variants_of("ctranslate2", single)] == [1, 2]
    assert [one["threads"] for one in plan.variants_of("pellucid", single)] == [1, 2]


@pytest.mark.parametrize(
    ("seconds", "end", "rounds"), [(10, 100, 5), (10, 35, 3), (10, 5, 2), (10, None, 5)]
)
def test_rounds_end_before_their_time_but_there_are_two(
    seconds: float, end: float | None, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(plan.time, "monotonic", lambda: now)
    done = 0

    for _ in plan.rounds_until(end, 5):
        now += seconds
        done += 1

    assert done == rounds


def test_models_share_the_time_that_is_left_by_their_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan.time, "monotonic", lambda: 100.0)
    names = ["small", "base"]
    total = plan.WEIGHTS["small"] + plan.WEIGHTS["base"]

    assert plan.end_of_share(180.0, "small", names) == 100 + 80 * plan.WEIGHTS["small"] / total
    assert plan.end_of_share(180.0, "base", ["base"]) == 180
    assert plan.end_of_share(50.0, "base", ["base"]) == 100
    assert plan.end_of_share(None, "base", ["base"]) is None


def test_a_quick_run_gives_large_batches_128_at_a_time() -> None:
    arguments = Namespace(
        quick=True, single=64, batches=[128], beam=5, settings=["single-beam", "large-greedy"]
    )

    single, large = plan.settings_of("small", 1024, arguments)

    assert (single.num_sentences, single.is_single, single.beam) == (32, True, 5)
    assert (large.num_sentences, large.call, large.beam) == (256, 128, 1)


def test_our_best_is_compared_with_the_best_peer_round_by_round() -> None:
    def measured(*seconds: float) -> dict[str, Any]:
        return {
            "tokens_per_second": 100 / sorted(seconds)[1],
            "target_tokens": 100,
            "seconds": {"all": list(seconds)},
            "bleu": None,
        }

    found = report.ratios(
        "tiny",
        "single-greedy",
        {
            "pellucid float32": measured(4, 4, 4),
            "pellucid int8": measured(1, 2, 1),
            "ctranslate2 float32": measured(9, 9, 9),
            "ctranslate2 int8": measured(3, 4, 5),
        },
        None,
    )

    best = found["the best peer"]
    assert (best["ours"], best["theirs"]) == ("pellucid int8", "ctranslate2 int8")
    assert (best["ratio"], best["bar"]) == (3, 4.0)
    assert found["CTranslate2 float32"]["ratio"] == 9
    assert found["CTranslate2 float32"]["bar"] is None
