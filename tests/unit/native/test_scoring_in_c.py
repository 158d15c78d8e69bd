"""Scores from the engine in C are those of the teacher-forced model, without PyTorch."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Sequence

import pytest
from small_native import END, SPECIAL, SWITCHES, make_requests, make_transformer

from pellucid.decode.decoder import Decoder
from pellucid.decode.native import NativePath

Ids = Sequence[Sequence[int]]


def make_targets(size: int, count: int) -> list[tuple[int, ...]]:
    chance = random.Random(7)
    return [
        (*(chance.randrange(4, size) for _ in range(chance.randrange(29))), END)
        for _ in range(count)
    ]


def score_on_pytorch(
    decoder: Decoder, sources: Ids, targets: Ids, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[float, ...]]:
    with monkeypatch.context() as patch:
        patch.setattr(NativePath, "find_obstacle", lambda *_: "this test compares with PyTorch")
        return decoder.score(sources, targets)


@pytest.mark.sample(8)
@pytest.mark.parametrize("switches", SWITCHES, ids=str)
@pytest.mark.parametrize("num_models", [1, 3])
def test_scores_in_c_equal_those_on_pytorch(
    switches: dict[str, object], num_models: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [make_transformer(seed, **switches) for seed in range(1, 1 + num_models)]
    decoder = Decoder(models, SPECIAL)
    assert decoder.find_obstacle("float32") is None
    sources = [one.source_ids for one in make_requests(models[0], 11)]
    targets = make_targets(models[0].config.target_vocabulary_size, 11)
    found = decoder.score(sources, targets)
    expected = score_on_pytorch(decoder, sources, targets, monkeypatch)
    assert list(map(len, found)) == list(map(len, targets))
    differences = [
        abs(one - other)
        for logs, others in zip(found, expected, strict=True)
        for one, other in zip(logs, others, strict=True)
    ]
    mean = sum(differences) / len(differences)
    assert max(differences) <= 1e-5, f"largest {max(differences):.1e}, mean {mean:.1e}"


def test_scores_in_c_of_a_batch_are_those_of_each_pair_to_the_last_bit() -> None:
    model = make_transformer()
    decoder = Decoder([model], SPECIAL)
    sources = [one.source_ids for one in make_requests(model, 5)]
    targets = make_targets(23, 5)
    together = decoder.score(sources, targets)
    for source, target, logs in zip(sources, targets, together, strict=True):
        assert decoder.score([source], [target]) == [logs]


def test_scores_in_c_are_no_numbers_where_logits_overflow() -> None:
    model = make_transformer(tied_embeddings="none")
    model.output.weight.data[5] = math.inf
    ((first, *_),) = Decoder([model], SPECIAL).score([(6, 7, END)], [(8, END)])
    assert math.isnan(first)


def test_score_of_a_packaged_model_needs_no_pytorch() -> None:
    code = (
        "import sys\n"
        "from pellucid.translate.translator import load\n"
        "(found,) = load('demo').score(['The dog ate it.'], [\"Le chien l'a mangé.\"])\n"
        "assert -1 < found.log_probability < 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
