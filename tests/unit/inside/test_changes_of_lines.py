"""Changes of many lines: studies, links and cut words equal runs of one sentence at a time."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_recurrent import WORDS, save_recurrent
from torch import Tensor

import pellucid
from pellucid.bundle import load_bundle
from pellucid.errors import InputError
from pellucid.evaluation.word_links import GoldLinks
from pellucid.inside import Replace, follow_heads, patch_corpus, study
from pellucid.inside.align.alignment_maps import map_pairs
from pellucid.inside.changes.given_changes import read_changes
from pellucid.inside.pair import make_pair
from pellucid.inside.replayed_pair import replay
from pellucid.translate.translator import Translator

LINES = (
    "The pizza came out of the oven and it tasted good.",
    "The soup was cold.",
    "The dog ate the cake because it was hungry.",
)
HEADS = ("encoder.1.self.1", "decoder.1.cross.0")


class Misspelled:
    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        return tensor * 0 if stage == "weigths" else None


def louder(tensor: Tensor, pair: Any) -> Tensor:
    # A position by the sentence's own length: padding would move it.
    tensor[:, len(pair.source_ids) - 2] *= 1.3
    return tensor


CHANGES: dict[str, Any] = {
    "head": "cut encoder.0.self.3",
    "average": "average decoder.0.cross.1",
    "edge": "cut encoder.*.self.*:3>1",
    "word": "cut word 1",
    "probe": Replace({"encoder.0.feed_forward.norm": louder}),
}


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


@pytest.fixture(scope="module")
def targets(demo: Translator) -> list[str]:
    return [one.text for one in demo.translate(list(LINES))]


@pytest.mark.parametrize("kind", CHANGES)
def test_study_of_a_changed_model_equals_replays_of_each_line(
    demo: Translator, targets: list[str], kind: str
) -> None:
    change = CHANGES[kind]
    found = study(demo, iter(LINES), iter(targets), heads=iter(HEADS), changes=change)
    pairs = [make_pair(demo.bundle, *one) for one in zip(LINES, targets, strict=True)]
    for row, head in enumerate(found.heads.rows):
        effects = []
        entropies = []
        site, _, number = head.rpartition(".")
        for pair in pairs:
            one, other = (
                float(pair.log_probabilities(probe=probe).sum())
                for probe in (change, [change, f"cut {head}"])
            )
            effects.append(other - one)
            weights = replay(pair, changes=change, float64=True)[site][int(number)]
            logs = np.log(np.where(weights > 0, weights, 1))
            entropies.append(-(weights * logs).sum(axis=-1).mean())
        column = found.heads.column("cut_log_probability")
        assert column[row] == pytest.approx(np.mean(effects), abs=1e-3)
        assert found.heads.column("entropy")[row] == pytest.approx(np.mean(entropies), abs=1e-4)
    own = [one.text for one in demo.translate(list(LINES), changes=change)]
    written = {one["line"]: one["own"] for one in found.telling[HEADS[0]]}
    assert written == dict(enumerate(own))
    said = "by a probe" if kind == "probe" else change
    assert found.notes == (f"The model is changed: {said}.",)
    plain = study(demo, list(LINES), targets, heads=HEADS)
    assert not np.allclose(plain.heads.values, found.heads.values, equal_nan=True)


def test_gold_links_and_measures_of_a_study_are_of_the_changed_model(
    demo: Translator, targets: list[str]
) -> None:
    links = frozenset({(0, 0), (1, 1)})
    change = "average decoder.1.cross.0"
    asked: dict[str, Any] = {"golds": [GoldLinks(links, links)], "heads": HEADS[1]}
    texts = LINES[1:2], targets[1:2]
    plain = study(demo, *texts, **asked)
    found = study(demo, *texts, changes=change, num_measured=1, **asked)
    errors = [one.heads.column("error_predicts")[0] for one in (plain, found)]
    assert errors[1] > errors[0] + 0.1
    # The others take a layer apart, or leave words out.
    assert found.measures.rows == ("weights", "rollout", "gradients")


def test_kept_steps_are_those_of_their_change(demo: Translator, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    asked: dict[str, Any] = {"heads": HEADS[1], "kept": kept}
    first = study(demo, LINES[:2], changes="average decoder.0.cross.1", **asked)
    plain = study(demo, LINES[:2], **asked)
    assert plain.heads.values[0, 5] == study(demo, LINES[:2], heads=HEADS[1]).heads.values[0, 5]
    assert first.heads.values[0, 5] != plain.heads.values[0, 5]
    with pytest.raises(InputError, match="needs changes as text"):
        study(demo, LINES[:2], changes=CHANGES["probe"], **asked)


@pytest.mark.parametrize("kind", CHANGES)
def test_links_of_a_changed_model_are_those_of_its_maps(
    demo: Translator, targets: list[str], kind: str
) -> None:
    change = CHANGES[kind]
    head = "decoder.1.cross.0"
    found = demo.align(list(LINES), targets, head=head, changes=change)
    assert found == demo.changed(change).align(list(LINES), targets, head=head)
    for line, target, one in zip(LINES, targets, found, strict=True):
        alone = demo.align(line, target, head=head, changes=change)
        assert alone == one


def test_links_follow_a_change_of_the_head_that_they_are_read_from(demo: Translator) -> None:
    plain, averaged = (
        demo.align(LINES[1], "La soupe était froide.", changes=change)
        for change in (None, "average decoder.1.cross.0")
    )
    assert plain.alignment == ((0, 0), (1, 1), (2, 2), (3, 3))
    assert len(averaged.alignment) > 8


def test_probe_that_replaces_nothing_is_said_by_study_and_align(
    demo: Translator, targets: list[str]
) -> None:
    calls = (
        lambda: study(demo, LINES, targets, heads=HEADS[1], changes=Misspelled()),
        lambda: demo.align(list(LINES), targets, changes=Misspelled()),
        lambda: demo.align(LINES[1], targets[1], changes=["cut word 1", Misspelled()]),
        lambda: demo.look(LINES[1], changes=["average decoder.1.cross.0", Misspelled()]),
    )
    for call in calls:
        with pytest.warns(UserWarning, match="The probe replaced nothing"):
            call()


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("change", ["cut word cake", "zero word 1", "cut word Kitten"])
def test_word_is_cut_in_each_line_that_has_it(demo: Translator, change: str, beam: int) -> None:
    lines = [*LINES, "Kitten ate the cake and the cake was good."]
    lacking = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        how: dict[str, Any] = {"beam": beam, "precision": "float32"}
        together = demo.translate(lines, changes=change, **how)
    for line, one in zip(lines, together, strict=True):
        try:
            trace = demo.look(line, changes=change, decode_changed=True, **how)
        except InputError:
            lacking.append(line)
            assert one.text == demo.translate(line, **how).text
            continue
        assert one.text == trace.decoding["text"]
        logs = trace.log_probabilities
        assert one.best.token_log_probabilities == pytest.approx(logs, abs=2e-4)
    messages = {str(one.message) for one in said}
    assert bool(messages) == bool(lacking)
    for message in messages:
        assert message.startswith(f"{change!r} changed nothing in {len(lacking)} of 4 sentences")


def test_word_is_cut_in_scores_pairs_and_traces(demo: Translator, targets: list[str]) -> None:
    change = "cut word pizza"
    wanted = float(demo.pair(LINES[0], targets[0]).log_probabilities(probe=change).sum())
    scored = demo.score(LINES[0], targets[0], changes=change).log_probability
    assert scored == pytest.approx(wanted, abs=1e-3)
    changed = demo.changed(change)
    pair = changed.pair(LINES[0], targets[0])
    assert float(pair.log_probabilities().sum()) == pytest.approx(wanted, abs=1e-3)
    trace = changed.look(LINES[0])
    assert trace.decoding["changes"] == change
    assert not trace.problems
    with pytest.warns(UserWarning, match="'cut word pizza' changed nothing in 1 of 1 sentences"):
        trace = changed.look(LINES[1])
    assert trace.decoding["changes"] == change
    with pytest.warns(UserWarning, match="in 2 of 3 sentences") as said:
        study(demo, LINES, targets, heads=HEADS[1], changes=change)
    # It reads each sentence several times.
    assert len(said) == 1


@pytest.mark.parametrize("change", ["cut encoder.*.self.*:80>1", "cut decoder.0.self.*:70>1"])
def test_positions_that_no_line_has_are_said_once(demo: Translator, change: str) -> None:
    with pytest.warns(UserWarning, match="no sentence has such positions") as said:
        found = demo.translate(LINES, changes=change)
    assert len(said) == 1
    assert [one.text for one in found] == [one.text for one in demo.translate(LINES)]


def test_positions_that_one_line_has_are_no_mistake(demo: Translator) -> None:
    last = max(len(demo.look(line).source_tokens) for line in LINES) - 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = demo.translate(LINES, changes=f"cut encoder.*.self.*:{last}>1")
    # The lines that have no such position stay as they were.
    short = [len(demo.look(line).source_tokens) <= last for line in LINES]
    for one, plain, is_short in zip(found, demo.translate(LINES), short, strict=True):
        assert not is_short or one.text == plain.text
    assert any(short)


def test_recurrent_models_link_and_study_under_changes(tmp_path: Path) -> None:
    bundle = load_bundle(save_recurrent(tmp_path / "model", "additive"))
    translator = pellucid.load(bundle.folder)
    line = " ".join(WORDS[6:10])
    target = " ".join(WORDS[4:9])
    pair = make_pair(bundle, line, target)
    for change in ("mean decoder.0.cross.0", ["average decoder.0.cross.0", Follower()]):
        under = translator.changed(change).decoder.change
        ids = pair.source_ids, pair.target_ids
        settings = bundle.config.tokenizer
        start = settings.target_start_id
        (maps,) = map_pairs(
            bundle.model, [ids], [0], pad_id=0, start_id=start, has_norms=False, change=under
        )
        probe = read_changes(change, bundle.config.model)
        wanted = replay(pair, changes=probe)["decoder.0.cross.weights"]
        np.testing.assert_allclose(maps.layers[0][:1], wanted, atol=1e-6)
        assert translator.align(line, target, changes=change).error is None
        assert study(translator, [line], [target], changes=change).num_lines == 1


class Follower:
    """Changes the encoder's states, as a probe of one's own next to a change from text."""

    names = ("encoder.0.recurrent.state",)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        return tensor * 1.1 if f"{site}.{stage}" in self.names else None


@pytest.mark.parametrize(
    "call",
    [
        lambda demo: study(demo, LINES, heads=[]),
        lambda demo: study(demo, LINES, heads=iter(())),
        lambda demo: study(demo, []),
        lambda demo: study(demo, LINES, changes=[]),
        lambda demo: patch_corpus(demo, LINES[:2], sites=iter(())),
        lambda demo: patch_corpus(demo, iter(())),
        lambda demo: demo.pair(LINES[0]).patch(demo.pair(LINES[1]), sites=iter(()), row=0),
        lambda demo: demo.pair(LINES[0]).measure("weights", changes=iter(())),
    ],
)
def test_empty_choice_is_refused_by_one_sentence(demo: Translator, call: Any) -> None:
    with pytest.raises(InputError, match=r"^No (head|line|change|site|pair) .*\.$"):
        call(demo)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda demo: study(demo, iter([3])), "sources must be"),
        (lambda demo: study(demo, LINES, iter(LINES), golds=iter([3])), "golds must be"),
        (lambda demo: patch_corpus(demo, LINES[:2], words=iter([3]), row=0), "words must be"),
        (lambda demo: patch_corpus(demo, LINES[:2], sites=iter([3])), "sites must be"),
        (lambda demo: demo.pair(LINES[0]).patch(demo.pair(LINES[1]), iter([3])), "sites must be"),
        (
            lambda demo: demo.pair(LINES[0]).patch(demo.pair(LINES[1]), positions=iter("a")),
            "positions must be",
        ),
    ],
)
def test_generator_is_checked_as_a_list_is(demo: Translator, call: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{sentence} a .*, but .* is"):
        call(demo)


def test_history_refuses_an_empty_choice_of_heads(tmp_path: Path) -> None:
    with pytest.raises(pellucid.PellucidError):
        follow_heads(tmp_path, LINES, heads=[])


def test_a_warning_stands_at_the_line_of_the_program_that_called(demo: Translator) -> None:
    def call() -> None:
        demo.translate(["The soup was cold."], changes=["cut word it", "cut decoder.1.cross.0"])
        demo.changed("cut word it").score(["The soup."], ["La soupe."])
        list(demo.changed("cut word it").stream("The soup."))

    with pytest.warns(UserWarning, match="'cut word it' changed nothing") as said:
        call()
    assert [one.filename for one in said] == [__file__] * 3
