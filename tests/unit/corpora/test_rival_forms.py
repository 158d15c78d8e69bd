"""The other gender or number of a word, as the vocabulary of a model has it."""

from __future__ import annotations

import pytest

from pellucid.bundle import load_bundle, resolve_model
from pellucid.corpora.lexicon import NOUNS
from pellucid.corpora.rival_forms import RivalForms, rival_ids


@pytest.fixture(scope="module")
def vocabulary() -> list[str]:
    return load_bundle(resolve_model("demo")).tokenizer.vocabulary("target")


@pytest.mark.parametrize(
    ("word", "rivals"),
    [
        ("elle", ["il"]),
        ("ils", ["elles"]),
        ("qu'elle", ["qu'il"]),
        ("Il", ["Elle"]),
        ("La", ["Le"]),
        ("les", ["la", "le"]),
        ("son", ["sa"]),
        ("mangée", ["mangé"]),
        ("froide", ["froid"]),
        ("belle", ["beau"]),
        ("vieux", ["vieille", "vieilles"]),
        ("rouge", ["rouges"]),
        ("était", ["étaient"]),
        ("l'a", ["l'ont"]),
        ("d'une", ["d'un"]),
    ],
)
def test_word_that_agrees_has_its_other_form(
    vocabulary: list[str], word: str, rivals: list[str]
) -> None:
    assert list(RivalForms(vocabulary).rivals(word)) == rivals


def test_words_without_another_form_have_no_rival(vocabulary: list[str]) -> None:
    agreement = RivalForms(vocabulary)
    # A noun has a gender of its own; *danse* is no form of *dans*.
    for word in ("dans", "et", "</s>", "<unk>", "￭.", "goût", "pas"):
        assert not agreement.rivals(word), word
    for noun in NOUNS.values():
        if noun.french == "son":  # a sound, and *his*
            continue
        assert not agreement.rivals(noun.french), noun.french


def test_rivals_are_mutual_and_all_known(vocabulary: list[str]) -> None:
    found = rival_ids(tuple(vocabulary))
    assert len(found) > 500
    for id_, others in found.items():
        assert id_ not in others
        if "'" not in vocabulary[id_]:
            assert all(found.get(other) for other in others), vocabulary[id_]


def test_vocabulary_of_another_language_has_no_french_forms() -> None:
    english = ["on", "one", "port", "porte", "the", "it"]
    assert not rival_ids(tuple(english))
    german = ["er", "sie", "der", "die", "un", "une"]
    assert RivalForms(german).rivals("er") == ("sie",)
    assert not RivalForms(german).rivals("un")
