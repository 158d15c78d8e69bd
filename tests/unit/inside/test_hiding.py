"""Why a word was written: each source word is hidden, and the sentence translated again."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import pellucid
from pellucid import Translator
from pellucid.cli.look.reasons import by_word, say_differences
from pellucid.errors import InputError
from pellucid.inside import Pair, what_if
from pellucid.inside.measures.hiding import LEAST_CAUSE, aligned_place, without_elision

MODELS = Path(__file__).parents[2] / "shared" / "models"

TEXT = "The pizza came out of the oven and it tasted good."


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo", precision="float32")


def test_reason_for_a_pronoun_is_its_noun_and_without_it_the_other_one_is_written(
    demo: Translator,
) -> None:
    why = demo.why(TEXT, "elle")
    assert why.words == ("elle", "il")
    assert why.reasons[0].word == "pizza"
    by_word = {one.word: one for one in why.hidden}
    assert by_word["pizza"].stands == "il"
    # A word may stand with an elision, such as *qu'elle*.
    standing = [without_elision(one.stands)[1] for one in why.hidden if math.isfinite(one.fall)]
    assert {*standing} == {"elle", "il"}
    # Without *it* there is no pronoun, so neither form answers.
    assert math.isnan(by_word["it"].fall)


def test_fall_is_that_of_the_odds_in_the_translation_under_the_same_change(
    demo: Translator,
) -> None:
    why = demo.why(TEXT, "elle")
    pair = demo.pair(TEXT)
    changes = ["cut encoder.*.self.*:*>1", "cut decoder.*.cross.*:*>1"]
    after = what_if(pair, changes).after
    ids = [pair.tokenizer.vocabulary("target").index(word) for word in ("elle", "il")]
    odds = []
    for tokens, given in ((pair.target_ids, None), (after.ids, changes)):
        one = Pair(pair.model, pair.tokenizer, pair.source_ids, tuple(tokens), pair.source_text)
        row = next(at for at, word in enumerate(one.predicted_tokens) if word in ("elle", "il"))
        logits = one.logits(probe=given)[row].detach().numpy()
        odds.append(logits[ids[0]] - logits[ids[1]])
    assert why.hidden[1].word == "pizza"
    assert why.hidden[1].fall == pytest.approx(odds[0] - odds[1], abs=1e-4)
    assert why.hidden[1].text == after.text


@pytest.mark.parametrize(
    ("text", "word", "rival", "reason"),
    [
        ("The dog found some pizza next to the baby and ate it.", "mangée", "mangé", "pizza"),
        ("The soup is cold.", "froide", "froid", "soup"),
        ("The pizza is good.", "bonne", "bon", "pizza"),
        ("The soup was good.", "La", "Le", "soup"),
    ],
)
def test_word_that_agrees_is_asked_about_with_its_other_form(
    demo: Translator, text: str, word: str, rival: str, reason: str
) -> None:
    why = demo.why(text, word)
    assert why.words == (word, rival)
    # The verb between the noun and its adjective may matter as much.
    assert reason in [one.word for one in why.reasons][:2]


def test_word_without_another_form_loses_probability(demo: Translator) -> None:
    why = demo.why(TEXT, "four")
    assert not why.choice.rival
    assert [one.word for one in why.reasons] == ["oven"]


def test_unknown_word_is_not_asked_about(demo: Translator) -> None:
    with pytest.raises(InputError, match="must be one that the model knows"):
        demo.why("My kitten did not eat the soup.", "1")
    with pytest.raises(InputError, match="is 'chatton', a word of the translation that it reads"):
        demo.why("My kitten was cold.", "1", translation="Mon chatton était froid.")


def test_recurrent_model_hides_no_word() -> None:
    why = pellucid.load("demo-recurrent").why("The soup was cold.", "froide")
    with pytest.raises(InputError, match="Only a Transformer can hide a word"):
        _ = why.hidden
    assert "occlusion" in str(why)


def test_words_are_aligned_as_on_the_page() -> None:
    before = ["La", "pizza", "est", "sortie", "du", "four", "et", "elle"]
    after = ["Le", "four", "est", "sorti", "du", "four", "et", "il"]
    assert [aligned_place(before, after, word) for word in range(8)] == list(range(8))
    assert aligned_place(["et", "elle", "avait"], ["et", "avait"], 1) == 1
    assert aligned_place(["a", "b"], ["a"], 1) == 0
    assert without_elision("qu'elle") == ("qu'", "elle")
    assert np.all([without_elision(word) == ("", word) for word in ("elle", "￭.")])


def test_a_word_without_which_neither_is_written_is_said_so() -> None:
    why = pellucid.load("demo").why("The soup was cold.", "froide")
    said = str(why)
    rows = {line.split()[0]: line.split()[1] for line in said.splitlines()[1:]}
    assert rows["cold"] == "neither"
    (fall,) = (one.fall for one in why.hidden if one.word == "soup")
    assert rows["soup"] == f"+{fall:.2f}"
    assert "nan" not in said


@pytest.mark.parametrize(
    ("hiding", "occlusion", "said"),
    [
        ({"the": 0.1, "it": 0.0}, {"the": 0.0, "it": 3.0}, "hiding puts no word first, occlusion"),
        ({"the": 0.1}, {"the": 0.2}, "hiding and occlusion put no word first."),
        ({}, {"the": 0.9}, "hiding puts no word first, occlusion puts the first."),
        ({"the": 2.0}, {"the": 0.9}, "put the same word first: the."),
    ],
)
def test_a_word_that_hardly_matters_is_not_put_first(
    hiding: dict[str, float], occlusion: dict[str, float], said: str
) -> None:
    (found,) = say_differences(("hiding", "occlusion"), (hiding, occlusion), least=LEAST_CAUSE)
    assert said in found


def test_words_of_measures_have_no_sign_of_a_space() -> None:
    contrast = pellucid.load(MODELS / "subwords").pair("The pizza came out.").why("sortie")
    left_out = by_word(contrast.measure("occlusion"))
    assert {one.word for one in contrast.hidden} == left_out.keys() - {"</s>"}
