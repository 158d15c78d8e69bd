"""Accuracy of simple rules in finding the antecedent of a pronoun.

Each rule guesses a noun or a gender from the English sentence only, and is right if the guess gives
the pronoun its French form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pellucid.corpora.example import Example, Pronoun
from pellucid.corpora.french import Gender
from pellucid.corpora.lexicon import NOUNS
from pellucid.corpora.open.open_words import PEOPLE

NOUN_GENDERS: dict[str, Gender] = {
    form.lower(): noun.gender
    for noun in (*NOUNS.values(), *PEOPLE)
    for form in (noun.english, noun.english_plural)
}
"""The French gender of every English noun form and name, in lower case."""


def antecedent_gender(example: Example, pronoun: Pronoun) -> Gender:
    """Look up the French gender of the noun that a pronoun stands for."""
    return NOUN_GENDERS[example.source.split(" ")[pronoun.source_antecedent].lower().rstrip(",")]


def majority_gender(examples: Iterable[Example]) -> Gender:
    """Find the gender of most antecedents, for example in the training split."""
    counts = Counter(
        antecedent_gender(example, pronoun) for example in examples for pronoun in example.pronouns
    )
    # A tie goes to the masculine, French's default.
    return "m" if counts["m"] >= counts["f"] else "f"


def baseline_accuracies(examples: Sequence[Example], *, majority: Gender = "m") -> dict[str, float]:
    """Compute the accuracy of three rules on all pronouns of some examples.

    Args:
        examples: examples with antecedents; normally the pronoun split.
        majority: the guess of "majority gender"; see `majority_gender`.

    Returns:
        For each rule the share, from 0 to 1, of pronouns whose French gender it gets right.
    """
    right = {"nearest noun": 0, "first noun": 0, "majority gender": 0}
    total = 0
    for example in examples:
        words = example.source.lower().split(" ")
        for pronoun in example.pronouns:
            total += 1
            gender = antecedent_gender(example, pronoun)
            # Only what stands before the pronoun, as a reader of the sentence knows no more.
            nouns = [NOUN_GENDERS[word] for word in words[: pronoun.source] if word in NOUN_GENDERS]
            right["nearest noun"] += nouns[-1] == gender
            right["first noun"] += nouns[0] == gender
            right["majority gender"] += majority == gender
    # Sentences without a pronoun have no accuracy.
    return {rule: count / max(total, 1) for rule, count in right.items()}
