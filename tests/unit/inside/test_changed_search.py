"""Every way to translate takes every change, and equals a slow search under it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from slow_search import changes_to_try, read_probe, slow_beam
from torch import Tensor

import pellucid
from pellucid.decode.decoder import make_decoder
from pellucid.decode.probing.under_probe import UnderProbe
from pellucid.errors import InputError
from pellucid.inside import Replace
from pellucid.inside.changes.change import Changes, parse_change
from pellucid.inside.pair import PairData, make_pair
from pellucid.translate.translator import Translator

LINES = (
    "The pizza came out of the oven and it tasted good.",
    "The soup was cold.",
    "The dog ate the cake because it was hungry.",
)
PLAIN: dict[str, Any] = {"length_penalty": "none", "stopping": "never", "precision": "float32"}
ENCODER = "average encoder.1.self.*"
DECODER = "mean decoder.0.self.*"


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


KINDS = (
    "cut an edge of the encoder",
    "cut a word",
    "average a head",
    "mean of a head",
    "zero an edge of the decoder",
    "force an edge",
    "replace weights",
    "patch the encoder",
    "steer the encoder",
    "steer one row",
    "logits by a probe",
    "several",
)


def _pair(translator: Translator, text: str) -> PairData:
    return make_pair(translator.bundle, text, "x")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam", [1, 5])
def test_search_under_a_change_is_the_slow_one(demo: Translator, kind: str, beam: int) -> None:
    change = changes_to_try(demo)[kind]
    found = demo.translate(list(LINES), changes=change, beam=beam, n_best=beam, **PLAIN)
    for text, one in zip(LINES[:2], found, strict=False):
        pair = _pair(demo, text)
        most = len(max(one.hypotheses, key=lambda other: len(other.ids)).ids)
        slow = slow_beam(pair, read_probe(pair, change), beam=beam, most=max(most, 40))
        assert [other.ids for other in one.hypotheses] == [ids for ids, _ in slow[:beam]]
        for other, (_, logs) in zip(one.hypotheses, slow, strict=False):
            assert other.token_log_probabilities == pytest.approx(logs, abs=2e-4)


def _logs(translator: Translator, text: str, ids: tuple[int, ...], change: Any) -> Any:
    """Score what was found by one pass over all of it."""
    pair = make_pair(translator.bundle, text, ids)
    return pytest.approx(pair.log_probabilities(probe=change).tolist(), abs=2e-4)


@pytest.mark.parametrize("change", [ENCODER, DECODER])
@pytest.mark.parametrize(
    "how",
    [
        {"sample": True, "n_best": 2, "seed": 3},
        {"beam": 3, "forbid": "froide", "require": "elle"},
        {"prefix": "Le"},
        {"beam": 4, "n_best": 4, "diverse_groups": 2, "diversity": 0.5},
        {"beam": 2, "strict": True},
        {"n_best": 3, "alternatives": True},
    ],
    ids=["sample", "constraints", "prefix", "groups", "strict", "alternatives"],
)
def test_every_way_to_translate_takes_a_change(
    demo: Translator, change: str, how: dict[str, Any]
) -> None:
    found = demo.translate(LINES[1:2] * 2, changes=change, precision="float32", **how)
    assert found[0] == found[1]
    for one in found[0].hypotheses:
        assert list(one.token_log_probabilities) == _logs(demo, LINES[1], one.ids, change)
    assert found[0] != demo.translate(LINES[1:2], precision="float32", **how)[0]


@pytest.mark.parametrize("change", [ENCODER, DECODER])
def test_stream_and_batches_do_not_matter_under_a_change(demo: Translator, change: str) -> None:
    changed = demo.changed(change)
    together = changed.translate(list(LINES), beam=3)
    for line, one in zip(LINES, together, strict=True):
        alone = changed.translate(line, beam=3)
        assert alone.text == one.text
        assert "".join(changed.stream(line, beam=3)) == one.text


class Follower:
    """Notes what it is told, and lowers the logits of the last row by nothing."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.shapes: set[tuple[str, int, int]] = set()

    def begin(self, pair: Any) -> None:
        self.told.append(pair)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        if stage != "norm":
            return None
        part = site.partition(".")[0]
        pair = self.told[-1]
        rows = pair.source_ids if part == "encoder" else pair.read_ids
        # One sentence, and all rows so far, in every search.
        assert tensor.shape[:2] == (1, len(rows))
        self.shapes.add((part, *tensor.shape[:2]))
        return tensor * 1.0


def test_probe_is_told_the_sentence_and_the_rows_and_sees_all_so_far(demo: Translator) -> None:
    probe = Follower()
    (found,) = demo.translate(LINES[1:2], changes=probe, beam=3)
    assert found.text == demo.translate(LINES[1:2], beam=3, precision="float32")[0].text
    assert probe.told[0].read_ids == ()
    assert probe.told[0].source_tokens == tuple(demo.pair(LINES[1]).source_tokens)
    longest = max((one.read_tokens for one in probe.told), key=len)
    assert longest[0] == "<s>"
    assert ("decoder", 1, len(longest)) in probe.shapes
    probe = Follower()
    demo.score(LINES[1], "La soupe.", changes=probe)
    assert probe.told[-1].read_tokens[:3] == ("<s>", "La", "soupe")


def test_function_of_two_parameters_is_handed_the_sentence(demo: Translator) -> None:
    lengths = []

    def last(tensor: Tensor, pair: Any) -> Tensor:
        lengths.append(len(pair.source_ids))
        tensor[:, len(pair.source_ids) - 1] = 0
        return tensor

    changes = Replace({"encoder.0.feed_forward.norm": last})
    demo.translate(list(LINES), changes=changes, beam=2)
    assert len(set(lengths)) == 3
    vector = torch.ones(demo.config.d_model)
    plain = Replace({"encoder.0.feed_forward.norm": lambda tensor, vector=vector: tensor + vector})
    demo.translate(LINES[0], changes=plain)


def test_failing_probe_is_told_with_its_place_and_sentence(demo: Translator) -> None:
    def ninth(tensor: Tensor) -> Tensor:
        tensor[:, 9] = 0
        return tensor

    changes = Replace({"encoder.0.feed_forward.norm": ninth})
    message = r"failed at encoder.0.feed_forward.norm in the sentence of 6 tokens 'The soup was"
    with pytest.raises(InputError, match=message):
        demo.translate(list(LINES), changes=changes)
    wrong = Replace({"encoder.0.feed_forward.norm": lambda tensor: tensor[:, :1]})
    with pytest.raises(InputError, match=r"of the shape .*\(encoder.0.feed_forward.norm\)"):
        demo.translate(LINES[0], changes=wrong, beam=2)


def test_batches_of_equal_lengths_give_the_same_as_single_sentences(demo: Translator) -> None:
    lines = [*LINES, "The cat was old.", "The house was red."]
    functions = {"encoder.0.self.norm": lambda tensor: tensor * 1.2}
    one, other = (
        demo.translate(lines, changes=Replace(functions, takes_batches=is_batch), beam=2)
        for is_batch in (False, True)
    )
    assert [found.text for found in one] == [found.text for found in other]


def test_links_and_attention_are_those_of_the_changed_model(demo: Translator) -> None:
    for change in ("cut encoder.*.self.*:*>1", "average decoder.1.cross.*"):
        changed = demo.changed(change)
        found = changed.translate(LINES[0], precision="float32")
        best = found.best
        pairs = [(demo.tokenizer.encode_source(LINES[0]), best.ids)]
        ((_, weights_NHTS),) = changed.attention_reader().read(pairs)
        pair = make_pair(demo.bundle, LINES[0], best.ids)
        trace = demo.look(LINES[0], translation=best.text, changes=change)
        np.testing.assert_allclose(weights_NHTS[1], trace["decoder.1.cross.weights"], atol=1e-4)
        assert len(pair.target_ids) == weights_NHTS.shape[2]


def test_look_follows_what_the_changed_model_writes(demo: Translator) -> None:
    change = "cut word pizza"
    trace = demo.look(LINES[0], changes=change, decode_changed=True, beam=5)
    assert trace.predicted_tokens[0] == "Le"
    assert trace.checks["decode"] < 1e-4
    assert not trace.problems
    assert demo.look(LINES[0], changes=change).predicted_tokens[0] == "La"
    with pytest.raises(InputError, match="decode_changed needs changes"):
        demo.look(LINES[0], decode_changed=True)
    with pytest.raises(InputError, match="decode_changed cannot be combined with translation"):
        demo.look(LINES[0], changes=change, decode_changed=True, translation="La pizza.")


@pytest.mark.parametrize("kind", ["cut a word", "mean of a head", "steer the encoder", "several"])
def test_what_if_follows_the_search_that_was_asked_for(demo: Translator, kind: str) -> None:
    change = changes_to_try(demo)[kind]
    pair = demo.pair(LINES[0])
    search = demo.options(beam=5, max_length=40, **PLAIN)
    found = pair.what_if(change, search=search)
    probe = read_probe(pair, change)
    for side, under in ((found.before, Changes()), (found.after, probe)):
        ids, logs = slow_beam(pair, under, beam=5, most=40)[0]
        assert side.ids == ids
        assert side.log_probabilities == pytest.approx(logs, abs=2e-4)
    assert found.effect == pair.what_if(change).effect


@pytest.mark.parametrize("change", [ENCODER, DECODER])
@pytest.mark.parametrize(
    "how",
    [
        {"sample": True, "seed": 3},
        {"beam": 3, "n_best": 3, "min_length": 14},
        {"beam": 4, "n_best": 4, "diverse_groups": 2, "diversity": 0.5},
    ],
    ids=["sample", "lengths", "groups"],
)
def test_what_if_finds_what_translate_finds(
    demo: Translator, change: str, how: dict[str, Any]
) -> None:
    pair = demo.pair(LINES[2], **{**how, "n_best": 1, "diverse_groups": 1, "diversity": 0.0})
    found = pair.what_if(change, search=demo.options(**how), prefix="Le")
    for side, changes in ((found.before, None), (found.after, change)):
        (written,) = demo.translate(LINES[2:], changes=changes, prefix="Le", **how)
        assert side.text == written.text


def test_what_if_of_an_impossible_search_says_so(demo: Translator) -> None:
    pair = demo.pair(LINES[1])
    assert len(pair.what_if(DECODER, search=demo.options(beam=2), max_length=3).after.ids) == 3
    with pytest.raises(InputError, match="at most 3 tokens, but the prefix and phrases need 4"):
        pair.what_if(DECODER, search=demo.options(max_length=3), prefix="La soupe était")


def test_probe_that_replaces_nothing_is_said_by_every_call(demo: Translator) -> None:
    class Misspelled:
        def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
            return tensor * 0 if stage == "weigths" else None

    pair = demo.pair(LINES[1])
    calls = (
        lambda: demo.translate(LINES[1], changes=Misspelled(), beam=2),
        lambda: "".join(demo.changed(Misspelled()).stream(LINES[1])),
        lambda: pair.logits(probe=Misspelled()),
        lambda: pair.log_probabilities(probe=Misspelled()),
        lambda: demo.translate(LINES[1], changes=[ENCODER, Misspelled()]),
    )
    for call in calls:
        with pytest.warns(UserWarning, match="The probe replaced nothing"):
            call()


def test_vectors_for_the_engine_are_checked(demo: Translator) -> None:
    engine = demo.decoder.find_engine("float32")
    assert engine is not None
    with pytest.raises(InputError, match="must have the shape"):
        engine.encode([(5, 6)], np.zeros((3, 4), np.float32), threads=1)


def test_engine_and_pytorch_agree_under_a_change_of_the_encoder(demo: Translator) -> None:
    requests = [
        demo._preparer.prepare_line(line, _none(), demo.options(), _how(), None)[0].requests[0]
        for line in LINES
    ]
    probe = Changes(parse_change(ENCODER))
    decoder = demo.decoder.under(UnderProbe(demo.model, demo.tokenizer, probe))
    config = demo.options(beam=4, n_best=2, precision="float32")
    fast = decoder.decode(requests, config, batch_tokens=4096)
    steps = decoder.on_pytorch._on_pytorch(demo.model, "float32", None)
    slow = decoder.on_pytorch._run(steps, requests, config, batch_tokens=4096)
    for one, other in zip(fast, slow, strict=True):
        assert [found.ids for found in one] == [found.ids for found in other.hypotheses]
        for found, again in zip(one, other.hypotheses, strict=True):
            assert found.score == pytest.approx(again.score, abs=2e-4)
    assert make_decoder([demo.model], demo.tokenizer).change is None


def _none() -> Any:
    from pellucid.decode.constraints.request import Constraints

    return [Constraints()]


def _how() -> Any:
    from pellucid.translate.preparing import Treatment

    return Treatment(clean=False, split="none")
