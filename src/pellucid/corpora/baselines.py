"""How far rules of thumb get in finding the antecedent of a pronoun.

Each rule guesses a noun, or a gender, from the English sentence alone, and is right where the
guess gives the pronoun its French form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from pellucid.corpora.example import Example, Pronoun
from pellucid.corpora.french import Gender
from pellucid.corpora.lexicon import NOUNS

__all__ = [
    "antecedent_gender",
    "baseline_accuracies",
    "first_noun",
    "majority_gender",
    "nearest_noun",
]

Rule = Callable[[Sequence[str], Pronoun], Gender]


@cache
def _genders() -> dict[str, Gender]:
    """The French gender of every English noun form."""
    forms = (
        (form, noun) for noun in NOUNS.values() for form in (noun.english, noun.english_plural)
    )
    return {form: noun.gender for form, noun in forms}


def _noun_genders(pieces: Sequence[str], pronoun: Pronoun) -> list[Gender]:
    """The genders of the nouns before a pronoun, in order."""
    genders = _genders()
    words = (piece.lower() for piece in pieces[: pronoun.source])
    return [genders[word] for word in words if word in genders]


def first_noun(pieces: Sequence[str], pronoun: Pronoun) -> Gender:
    """Guess that a pronoun stands for the first noun of the sentence."""
    return _noun_genders(pieces, pronoun)[0]


def nearest_noun(pieces: Sequence[str], pronoun: Pronoun) -> Gender:
    """Guess that a pronoun stands for the nearest noun before it."""
    return _noun_genders(pieces, pronoun)[-1]


def antecedent_gender(example: Example, pronoun: Pronoun) -> Gender:
    """The French gender of the noun that a pronoun really stands for."""
    return _genders()[example.source.split(" ")[pronoun.source_antecedent].lower()]


def majority_gender(examples: Iterable[Example]) -> Gender:
    """The gender that most antecedents have, in training for instance."""
    counts = Counter(
        antecedent_gender(example, pronoun) for example in examples for pronoun in example.pronouns
    )
    return "m" if counts["m"] >= counts["f"] else "f"


def baseline_accuracies(examples: Sequence[Example], *, majority: Gender = "m") -> dict[str, float]:
    """Score the rules on all pronouns of some examples.

    Args:
        examples: with antecedents; normally the pronoun test.
        majority: what "majority gender" always says; see `majority_gender`.

    Returns:
        The share, from 0 to 1, of pronouns that each rule gives the right French gender.
    """
    rules: dict[str, Rule] = {
        "nearest noun": nearest_noun,
        "first noun": first_noun,
        "majority gender": lambda pieces, pronoun: majority,
    }
    right = dict.fromkeys(rules, 0)
    total = 0
    for example in examples:
        pieces = example.source.split(" ")
        for pronoun in example.pronouns:
            total += 1
            gender = antecedent_gender(example, pronoun)
            for name, rule in rules.items():
                right[name] += rule(pieces, pronoun) == gender
    return {name: count / max(total, 1) for name, count in right.items()}
