"""Promises of splits, example sentences and rules of thumb, other than correct French."""

from __future__ import annotations

from typing import cast

import pytest

from pellucid.corpora import (
    Example,
    Pronoun,
    SplitName,
    antecedent_gender,
    baseline_accuracies,
    majority_gender,
    make_split,
    seed_examples,
    seed_sentences,
)
from pellucid.errors import InputError

SENTENCES = {
    "The European Economic Area": "La zone économique européenne",
    "The pizza came out of the oven and it tasted good": (
        "La pizza est sortie du four et elle avait bon goût"
    ),
    "Pizza is awesome": "La pizza est géniale",
    "Show me the money": "Montre-moi l'argent",
    "Not on your life!": "Jamais de la vie\u202f!",
    "help me!": "aide-moi\u202f!",
    "Let's go": "Allons-y",
    "The dog found some pizza next to the baby and ate it": (
        "Le chien a trouvé de la pizza à côté du bébé et l'a mangée"
    ),
    "the bank told the man he was bankrupt": "la banque a dit à l'homme qu'il était en faillite",
    "then the bank told the man he was bankrupt": (
        "puis la banque a dit à l'homme qu'il était en faillite"
    ),
}


def test_seed_sentences_are_all_there() -> None:
    assert dict(seed_sentences()) == SENTENCES


def test_seed_sentences_come_back_in_training_and_nowhere_else() -> None:
    sources = [example.source for example in make_split("train", count=1651)]
    assert sources[0] == sources[1500] == "The European Economic Area"
    assert SENTENCES.keys() <= set(sources)
    others: tuple[SplitName, ...] = ("validation", "test", "compositional", "pronoun")
    for name in others:
        lowered = {example.source.lower().rstrip(".!") for example in make_split(name, count=300)}
        assert not lowered & {source.lower().rstrip(".!") for source in SENTENCES}


def test_seed_example_of_pizza_names_its_antecedent() -> None:
    example = seed_examples()[7]
    assert example.pronouns == (Pronoun(11, 4, 12, 6),)
    assert example.source.split(" ")[4] == "pizza"
    assert example.target.split(" ")[12] == "l'a"
    assert {(11, 12), (10, 12), (10, 13)} <= set(example.alignment)


@pytest.mark.parametrize(("name", "count"), [("prnoun", 3), ("test", -1)])
def test_make_split_impossible_request_raises(name: str, count: int) -> None:
    with pytest.raises(InputError):
        make_split(cast("SplitName", name), count=count)


def test_make_split_count_zero_is_empty() -> None:
    assert make_split("train", count=0) == []


def test_baselines_of_one_pair_see_only_their_rule() -> None:
    example = Example(
        "The pizza came out of the oven and it tasted good",
        "La pizza est sortie du four et elle avait bon goût",
        (),
        (Pronoun(8, 1, 7, 1),),
        "",
    )
    assert antecedent_gender(example, example.pronouns[0]) == "f"
    assert majority_gender([example]) == "f"
    scores = baseline_accuracies([example], majority="m")
    assert scores == {"nearest noun": 0.0, "first noun": 1.0, "majority gender": 0.0}
