"""A beam as wide as the space finds what counting every sequence finds.

The tests are a sample, in which settings take turns; `benchmarks/exactness.py` checks them all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from pellucid.config import DecodingConfig, ModelConfig
from pellucid.data import make_source_batch
from pellucid.decode.constraints.request import Request, SpecialIds
from pellucid.decode.greedy import decode_greedily
from pellucid.decode.search.search_loop import Search, SearchAnswer
from pellucid.decode.steppers import ModelStepper
from pellucid.model import Transformer, initialize

VOCABULARY, START, EOS = 5, 0, 1
SPECIAL = SpecialIds(START, EOS, (START,))
WORDS = (2, 3, 4)
LENGTH = 5
SOURCES = [(2, 3, 1), (4, 4, 2, 3, 1), (3, 1), (2, 2, 4, 1)]

Ids = tuple[int, ...]


def make_model(seed: int, sharpness: float = 3.0, vocabulary: int = VOCABULARY) -> Transformer:
    config = ModelConfig.model_validate(
        {"d_model": 6, "d_ff": 7, "num_heads": 2, "num_encoder_layers": 1}
        | {"num_decoder_layers": 1, "norm": "pre", "tied_embeddings": "none"}
        | {"source_vocabulary_size": vocabulary, "target_vocabulary_size": vocabulary}
        | {"max_source_length": 11, "max_target_length": 13}
    )
    model = Transformer(config)
    initialize(model, seed)
    model.output.weight.data *= sharpness
    return model.eval()


def search(
    model: Transformer, requests: Sequence[Request], sentences: int = 2, **options: Any
) -> list[SearchAnswer]:
    config = DecodingConfig(**options)
    found = dict(
        Search(ModelStepper(model), requests, config, SPECIAL, sentences=sentences).answers()
    )
    return [found[index] for index in range(len(requests))]


def all_logs(model: Transformer, source: Ids, target: Ids) -> list[list[float]]:
    """The log-probability of every token at each place of a target and after it."""
    with torch.inference_mode():
        logits_TV: Tensor = model(torch.tensor([source]), torch.tensor([(START, *target)]))[0]
        logs: list[list[float]] = logits_TV.double().log_softmax(-1).tolist()
    return logs


def token_logs(model: Transformer, source: Ids, target: Ids) -> list[float]:
    """The log-probability of each token, by teacher forcing."""
    logs = all_logs(model, source, target[:-1])
    return [logs[place][token] for place, token in enumerate(target)]


def every_sequence(longest: int) -> Iterator[Ids]:
    """All that can be written: finished within the length, or cut off at it."""
    for length in range(longest):
        for words in itertools.product(WORDS, repeat=length):
            yield (*words, EOS)
    yield from itertools.product(WORDS, repeat=longest)


def penalty(config: DecodingConfig, length: int) -> float:
    if config.length_penalty == "none":
        return 1.0
    base = length if config.length_penalty == "average" else (5 + length) / 6
    return float(base**config.alpha)


@cache
def every_total(seed: int, source: Ids, longest: int) -> dict[Ids, float]:
    """The log-probability of every sequence with the model of a seed."""
    model = make_model(seed)
    return {ids: sum(token_logs(model, source, ids)) for ids in every_sequence(longest)}


def enumerate_best(
    seed: int,
    request: Request,
    config: DecodingConfig,
    is_allowed: Callable[[Ids], bool] = lambda ids: True,
) -> list[tuple[Ids, float, float]]:
    """Every allowed sequence with its log-probability and score, finished and best first."""
    found = []
    for ids, total in every_total(seed, request.source_ids, request.max_length).items():
        if is_allowed(ids):
            found.append((ids, total, total / penalty(config, len(ids))))
    return sorted(found, key=lambda one: (one[0][-1] != EOS, -one[2]))


def assert_same(found: SearchAnswer, wanted: list[tuple[Ids, float, float]], count: int) -> None:
    wanted = wanted[:count]
    assert [one.ids for one in found.hypotheses] == [ids for ids, _, _ in wanted]
    for hypothesis, (_, total, score) in zip(found.hypotheses, wanted, strict=True):
        assert hypothesis.log_probability == pytest.approx(total, abs=1e-5)
        assert hypothesis.score == pytest.approx(score, abs=1e-5)
        assert hypothesis.is_finished == (hypothesis.ids[-1] == EOS)


PENALTIES = [
    {"length_penalty": "none"},
    {"length_penalty": "gnmt", "alpha": 0.6},
    {"length_penalty": "gnmt", "alpha": 2.5},
    {"length_penalty": "average", "alpha": 1.0},
    {"length_penalty": "average", "alpha": 0.0},
]


STOPPING = ("safe", "never")


def check_wide_beam(options: dict[str, Any], stopping: str) -> None:
    model = make_model(7)
    requests = [Request(source, max_length=LENGTH) for source in SOURCES]
    space = len(list(every_sequence(LENGTH)))
    wide = options | {"beam": space, "n_best": 17, "stopping": stopping}
    for request, found in zip(requests, search(model, requests, **wide), strict=True):
        assert_same(found, enumerate_best(7, request, DecodingConfig(**options)), 17)


@pytest.mark.sample(3)
@pytest.mark.parametrize("place", range(len(PENALTIES)))
def test_beam_as_wide_as_the_space_equals_counting(place: int) -> None:
    check_wide_beam(PENALTIES[place], STOPPING[place % 2])


def holds(ids: Ids, phrase: Ids) -> int:
    """Count a phrase in a sequence, from the left and without overlap."""
    text = "".join(map(str, ids))
    return text.count("".join(map(str, phrase)))


def repeats(ids: Ids, size: int) -> bool:
    runs = [ids[i : i + size] for i in range(len(ids) - size + 1)]
    return len(set(runs)) < len(runs)


CONSTRAINTS: dict[str, tuple[dict[str, Any], dict[str, Any], Callable[[Ids], bool]]] = {
    "prefix": ({"prefix_ids": (3, 2)}, {}, lambda ids: ids[:2] == (3, 2)),
    "forbidden": (
        {"forbidden": ((4,), (2, 3))},
        {},
        lambda ids: 4 not in ids and not holds(ids, (2, 3)),
    ),
    "minimum length": ({"min_length": 4}, {}, lambda ids: len(ids) >= 4),
    "maximum length": ({"max_length": 3}, {}, lambda ids: len(ids) <= 3),
    "no repeated pairs": ({}, {"no_repeat_ngram": 2}, lambda ids: not repeats(ids, 2)),
    "required": (
        {"required": ((4, 2), (3,))},
        {},
        lambda ids: bool(holds(ids, (4, 2))) and 3 in ids,
    ),
    "required twice": (
        {"required": ((2,), (2,))},
        {},
        lambda ids: ids.count(2) >= 2,
    ),
    "required with itself in it": (
        {"required": ((2, 2, 3),)},
        {},
        lambda ids: bool(holds(ids, (2, 2, 3))),
    ),
    "all together": (
        {"prefix_ids": (2,), "forbidden": ((4, 4),), "required": ((3, 4),), "min_length": 5},
        {"no_repeat_ngram": 3},
        lambda ids: (
            ids[0] == 2
            and len(ids) >= 5
            and not holds(ids, (4, 4))
            and bool(holds(ids, (3, 4)))
            and not repeats(ids, 3)
        ),
    ),
}


def check_constrained_beam(name: str, options: dict[str, Any]) -> None:
    asked, more, is_allowed = CONSTRAINTS[name]
    model = make_model(11)
    requests = [replace(Request(source, max_length=LENGTH), **asked) for source in SOURCES[:3]]
    space = len(list(every_sequence(LENGTH)))
    wide = options | more | {"beam": 2 * space, "n_best": 7}
    for request, found in zip(requests, search(model, requests, **wide), strict=True):
        wanted = enumerate_best(11, request, DecodingConfig(**options), is_allowed)
        assert_same(found, wanted, 7)


def test_sentence_with_more_required_tokens_may_end_before_the_others() -> None:
    model = make_model(3)
    requests = [Request(source, max_length=9, required=((2,),)) for source in SOURCES * 2]
    requests[3] = Request(SOURCES[3], max_length=4, required=((2, 3, 4),))
    together = search(model, requests, sentences=len(requests), beam=5, stopping="never")
    for request, found in zip(requests, together, strict=True):
        (apart,) = search(model, [request], beam=5, stopping="never")
        assert [one.ids for one in found.hypotheses] == [one.ids for one in apart.hypotheses]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("place", "name"), list(enumerate(CONSTRAINTS)))
def test_constrained_beam_as_wide_as_the_space_equals_counting(place: int, name: str) -> None:
    check_constrained_beam(name, PENALTIES[1 + place % 3])


def test_constraint_that_nothing_can_meet_gives_no_hypothesis() -> None:
    request = Request(SOURCES[0], max_length=4, required=((2, 3),), forbidden=((3,),))
    (found,) = search(make_model(3), [request], beam=13)
    assert found.hypotheses == ()


@pytest.mark.parametrize("seed", range(5))
def test_beam_of_one_equals_choosing_the_likeliest_each_time(seed: int) -> None:
    model = make_model(seed)
    requests = [Request(source, max_length=11) for source in SOURCES]
    for request, found in zip(requests, search(model, requests, beam=1), strict=True):
        ids: Ids = ()
        while len(ids) < 11 and (not ids or ids[-1] != EOS):
            logs = all_logs(model, request.source_ids, ids)[-1]
            ids = (*ids, max((EOS, *WORDS), key=logs.__getitem__))
        assert found.hypotheses[0].ids == ids


@pytest.mark.parametrize("seed", range(3))
def test_beam_of_one_equals_greedy_search_on_the_model(seed: int) -> None:
    model = make_model(seed, vocabulary=13)
    requests = [Request(source, max_length=11) for source in SOURCES]
    config = DecodingConfig()
    answers = Search(
        ModelStepper(model), requests, config, SpecialIds(START, EOS), sentences=3
    ).answers()
    found = dict(answers)
    source_BS, mask_BS = make_source_batch(SOURCES, pad_id=0)
    for index, wanted in enumerate(
        decode_greedily(
            model, source_BS, mask_BS, start_id=START, eos_id=EOS, max_lengths=[11] * len(SOURCES)
        )
    ):
        (hypothesis,) = found[index].hypotheses
        assert hypothesis.ids == wanted.ids
        assert hypothesis.token_log_probabilities == pytest.approx(
            wanted.token_log_probabilities, abs=1e-5
        )


def beam_naively(
    model: Transformer, request: Request, config: DecodingConfig
) -> list[tuple[Ids, float]]:
    """A beam, written as it is described: finished hypotheses keep their places."""
    growing: list[tuple[Ids, float]] = [((), 0.0)]
    finished: list[tuple[Ids, float]] = []
    for length in range(1, request.max_length + 1):
        candidates = []
        for ids, total in growing:
            for word, log in enumerate(all_logs(model, request.source_ids, ids)[-1]):
                if word != START:
                    candidates.append(((*ids, word), total + log))
        candidates.sort(key=lambda one: -one[1])
        taken = candidates[: config.beam - len(finished)]
        finished += [(ids, s / penalty(config, length)) for ids, s in taken if ids[-1] == EOS]
        growing = [one for one in taken if one[0][-1] != EOS]
    cut = [(ids, s / penalty(config, len(ids))) for ids, s in growing]
    by_score = sorted(finished, key=lambda one: -one[1]) + sorted(cut, key=lambda one: -one[1])
    return by_score[: config.n_best]


def check_narrow_beams(seeds: Sequence[int]) -> int:
    """Compare narrow beams with a naive one; return the number of searches."""
    checked = 0
    for seed in seeds:
        model = make_model(seed, sharpness=2.0, vocabulary=11)
        requests = [Request(source, max_length=7) for source in SOURCES]
        stopping = ("safe", "never")[seed % 2]
        options: dict[str, Any] = PENALTIES[seed % len(PENALTIES)] | {"beam": 2 + seed % 5}
        config = DecodingConfig(**options, n_best=2)
        found = search(model, requests, stopping=stopping, n_best=2, **options)
        for request, answer in zip(requests, found, strict=True):
            wanted = beam_naively(model, request, config)
            assert [one.ids for one in answer.hypotheses] == [ids for ids, _ in wanted], seed
            scores = [one.score for one in answer.hypotheses]
            assert scores == pytest.approx([score for _, score in wanted], abs=1e-5), seed
            checked += 1
    return checked


def test_narrow_beam_equals_a_naive_one() -> None:
    assert check_narrow_beams(range(11)) == 44


def check_safe_stopping(seeds: Sequence[int]) -> int:
    """Compare safe stopping with running to the end; return how many searches stopped earlier."""
    earlier = 0
    for seed in seeds:
        model = make_model(seed, sharpness=1.0 + seed % 7, vocabulary=VOCABULARY + seed % 11)
        penalties = PENALTIES[seed % len(PENALTIES)]
        options = penalties | {"beam": 2 + seed % 4, "n_best": 1 + seed % 2}
        requests = [Request(source, max_length=13) for source in SOURCES]
        runs = {}
        for stopping in ("safe", "never"):
            config = DecodingConfig(**options, stopping=stopping)
            run = Search(ModelStepper(model), requests, config, SPECIAL, sentences=len(requests))
            steps, answers = 0, {}
            while not run.is_over:
                answers.update(run.step())
                steps += 1
            runs[stopping] = (steps, [answers[i].hypotheses for i in range(len(requests))])
        for safe, whole in zip(runs["safe"][1], runs["never"][1], strict=True):
            assert [one.ids for one in safe] == [one.ids for one in whole], (seed, options)
        earlier += runs["safe"][0] < runs["never"][0]
    return earlier


def test_safe_stopping_never_changes_the_winner() -> None:
    assert check_safe_stopping(range(47)) > 5


def test_search_with_few_places_equals_search_with_a_place_for_each() -> None:
    model = make_model(5)
    requests = [Request(source, max_length=13) for source in SOURCES * 5]
    for options in ({}, {"beam": 3, "n_best": 2}, {"beam": 4, "diverse_groups": 2, "n_best": 3}):
        together = search(model, requests, sentences=len(requests), **options)
        for few in (1, 3):
            found = search(model, requests, sentences=few, **options)
            for one, other in zip(found, together, strict=True):
                assert [h.ids for h in one.hypotheses] == [h.ids for h in other.hypotheses]


def test_heuristic_stopping_stops_no_later_than_safe_and_may_lose() -> None:
    worse = 0
    for seed in range(31):
        model = make_model(seed, sharpness=2.0)
        requests = [Request(source, max_length=13) for source in SOURCES]
        options: dict[str, Any] = {"beam": 3, "length_penalty": "average", "alpha": 1.5}
        safe = search(model, requests, **options)
        quick = search(model, requests, stopping="heuristic", **options)
        for one, other in zip(safe, quick, strict=True):
            assert other.hypotheses[0].score <= one.hypotheses[0].score + 1e-6
            worse += one.hypotheses[0].ids != other.hypotheses[0].ids
    assert worse > 0


def test_diverse_groups_differ_where_a_beam_would_not() -> None:
    model = make_model(2, sharpness=6.0, vocabulary=17)
    request = Request(SOURCES[1], max_length=9)
    (plain,) = search(model, [request], beam=6, n_best=6)
    (diverse,) = search(model, [request], beam=6, n_best=6, diverse_groups=6, diversity=30.0)
    firsts = [hypothesis.ids[0] for hypothesis in diverse.hypotheses]
    assert len(set(firsts)) == 6
    assert len({hypothesis.ids[0] for hypothesis in plain.hypotheses}) < 6
    for hypothesis in diverse.hypotheses:
        logs = token_logs(model, request.source_ids, hypothesis.ids)
        assert hypothesis.token_log_probabilities == pytest.approx(logs, abs=1e-5)


def test_margin_says_how_near_another_decision_was() -> None:
    model = make_model(4)
    request = Request(SOURCES[0], max_length=1)
    (found,) = search(model, [request], strict=True)
    logs = sorted(
        (token_logs(model, SOURCES[0], (word,))[0] for word in (EOS, *WORDS)), reverse=True
    )
    assert found.margin == pytest.approx(logs[0] - logs[1], abs=1e-5)
    assert math.isfinite(found.margin)
