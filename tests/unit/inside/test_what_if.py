"""Decoding again under changes: its output, that of the original, and baselines."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from of_subwords import SUBWORDS

import pellucid
from pellucid.bundle import load_bundle
from pellucid.decode.greedy import decode_greedily
from pellucid.errors import InputError
from pellucid.inside import Pair
from pellucid.inside.changes.change import Change, Changes, cut_source_word, parse_change
from pellucid.inside.changes.what_if import decode_under, random_heads, what_if
from pellucid.inside.pair import make_pair

SOURCE = "The pizza came out of the oven and it tasted good."


@pytest.fixture(scope="module")
def pair() -> Pair:
    translator = pellucid.load(SUBWORDS)
    (translation,) = translator.translate([SOURCE])
    return make_pair(translator.bundle, SOURCE, translation.ids)


@pytest.fixture(scope="module")
def untrained(bundle_folder: Path) -> Pair:
    bundle = load_bundle(bundle_folder)
    return make_pair(bundle, "The pizza came out of the oven .", "La pizza est sortie du four .")


def changes(*texts: str) -> list[Change]:
    return [parse_change(text) for text in texts]


def test_decoding_with_a_probe_writes_what_greedy_search_writes(pair: Pair) -> None:
    source_BS = torch.tensor([pair.source_ids])
    (expected,) = decode_greedily(
        pair.model,
        source_BS,
        torch.ones_like(source_BS, dtype=torch.bool),
        start_id=2,
        eos_id=3,
        max_lengths=[40],
    )
    found = decode_under(pair, Changes(), max_length=40)
    assert found.ids == expected.ids
    assert found.log_probabilities == pytest.approx(expected.token_log_probabilities, abs=1e-4)
    assert found.text == "La pizza est sortie du four et elle avait bon goût."


@pytest.mark.parametrize(
    "texts",
    [
        ["cut decoder.1.cross.0"],
        ["mean decoder.0.self.1"],
        ["average encoder.1.self.2", "zero decoder.1.cross.3:*>1"],
        ["force decoder.0.self.2:*>3=0.5"],
    ],
)
def test_decode_under_a_change_equals_one_pass_over_what_it_wrote(
    pair: Pair, texts: list[str]
) -> None:
    probe = Changes(*changes(*texts))
    found = decode_under(pair, probe, max_length=30)
    written = Pair(pair.model, pair.tokenizer, pair.source_ids, found.ids)
    once = written.log_probabilities(probe=probe).tolist()
    assert found.log_probabilities == pytest.approx(once, abs=1e-4)


def test_decode_never_writes_start_or_padding_and_ends_in_time(untrained: Pair) -> None:
    found = decode_under(untrained, None, max_length=7)
    assert len(found.ids) <= 7
    assert not {0, 2} & set(found.ids)


def test_forced_prefix_begins_the_translation_with_its_own_log_probabilities(pair: Pair) -> None:
    forced = pair.tokenizer.encode_target("La pizza est sortie du four et il")[:-1]
    found = decode_under(pair, None, prefix_ids=forced, max_length=40)
    assert found.text == "La pizza est sortie du four et il avait bon goût."
    written = Pair(pair.model, pair.tokenizer, pair.source_ids, found.ids)
    assert found.log_probabilities == pytest.approx(written.log_probabilities().tolist(), abs=1e-4)


def test_what_if_with_a_prefix_alone_compares_with_the_original(pair: Pair) -> None:
    found = what_if(pair, [], prefix="La pizza est sortie du four et il")
    assert found.before == found.after
    assert found.effect == 0
    assert found.after.log_probability < found.original.log_probability


def test_what_if_cutting_the_antecedent_changes_the_pronoun_and_says_where(pair: Pair) -> None:
    pizza = pair.source_tokens.index("▁pizza")
    found = what_if(pair, cut_source_word([pizza]).changes)
    assert "pizza" not in found.after.text
    assert [edit.before for edit in found.edits if "elle" in edit.before]
    assert found.effect < -1
    assert found.effect == pytest.approx(sum(found.token_effects))
    assert sum(found.after_unchanged) < found.original.log_probability


def test_what_if_effect_is_the_difference_of_two_teacher_forced_scores(untrained: Pair) -> None:
    wanted = changes("cut decoder.0.cross.1")
    found = what_if(untrained, wanted)
    before = float(untrained.log_probabilities().sum())
    after = float(untrained.log_probabilities(probe=Changes(*wanted)).sum())
    assert found.effect == pytest.approx(after - before, abs=1e-5)
    assert found.original.ids == untrained.target_ids
    assert found.baseline is None


def test_baseline_of_all_other_heads_is_those_heads_effects(untrained: Pair) -> None:
    found = what_if(untrained, changes("cut decoder.0.cross.1"), num_random=50)
    assert found.baseline is not None
    others = {"cut decoder.0.cross.0", "cut decoder.1.cross.0", "cut decoder.1.cross.1"}
    assert set(found.baseline.changes) == others
    effects = {text: what_if(untrained, changes(text)).effect for text in found.baseline.changes}
    assert found.baseline.effects == pytest.approx(list(effects.values()), abs=1e-6)
    assert found.baseline.mean == pytest.approx(sum(effects.values()) / 3)
    assert found.baseline.range == (min(found.baseline.effects), max(found.baseline.effects))


def test_random_heads_are_others_of_their_kind_and_the_same_every_time(pair: Pair) -> None:
    wanted = changes(
        "cut decoder.1.cross.0", "zero decoder.0.cross.3:2>1", "average encoder.1.self.2"
    )
    draws = random_heads(pair, wanted, 5, seed=3)
    assert [str(Changes(*draw)) for draw in draws] == [
        str(Changes(*draw)) for draw in random_heads(pair, wanted, 5, seed=3)
    ]
    assert len(draws) == len({str(Changes(*draw)) for draw in draws}) == 5
    changed = {change.place.whole_head for change in wanted}
    for draw in draws:
        heads = [change.place.whole_head for change in draw]
        assert len(set(heads)) == 3
        assert not changed & set(heads)
        assert [(head.part, head.kind) for head in heads] == [
            ("decoder", "cross"),
            ("decoder", "cross"),
            ("encoder", "self"),
        ]
        assert (draw[1].place.query, draw[1].place.key) == (2, 1)


def test_two_changes_of_one_head_move_together(pair: Pair) -> None:
    wanted = changes("zero decoder.1.cross.0:0>1", "zero decoder.1.cross.0:0>2")
    (draw,) = random_heads(pair, wanted, 1)
    assert draw[0].place.whole_head == draw[1].place.whole_head


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["cut decoder.1.cross.*"], "but is 'cut decoder.1.cross.\\*'"),
        (
            ["cut encoder.0.self.0", "cut encoder.0.self.1"],
            "must have 2 other heads of .* but has 0",
        ),
    ],
)
def test_baseline_without_other_heads_is_refused(
    untrained: Pair, texts: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        what_if(untrained, changes(*texts), num_random=3)


def test_what_if_of_nothing_or_of_no_such_head_is_refused(untrained: Pair) -> None:
    with pytest.raises(InputError, match="No change was given"):
        what_if(untrained, [])
    with pytest.raises(InputError, match="A head must be from 0 to 1"):
        what_if(untrained, changes("cut decoder.0.cross.7"))


def test_prefix_outside_the_vocabulary_is_refused(untrained: Pair) -> None:
    with pytest.raises(InputError, match="prefix"):
        what_if(untrained, [], prefix="Zut")


def test_effect_of_cutting_everything_is_finite(pair: Pair) -> None:
    found = what_if(pair, changes("cut decoder.*.cross.*:*>*"), max_length=5)
    assert math.isfinite(found.effect)
    assert found.effect < -5
