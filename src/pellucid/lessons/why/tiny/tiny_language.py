"""A tiny language: a few dozen words of English and French, in which order and gender matter.

Every sentence is correct in both languages and has exactly one translation here. Adjectives of
color change places (*the black cow*, *la vache noire*) and agree with their noun, and who does what
depends on the order of the words only. Articles never elide, so that words stay between spaces.

*The guinea pig* is *le cobaye*, *the earthworm* is *le ver de terre*, and colors change places as
in `pellucid.lessons.why.tiny.tiny_language`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from pellucid.lessons.why.tiny.learn import Pair, Words, read_tiny_words
from pellucid.machine.randomness import generator


def draw_statements(count: int, *, seed: int, part: str) -> list[Pair]:
    """Draw sentences such as *the black dog follows the cow*; all are different.

    Args:
        count: the number of sentences.
        seed: of the draws.
        part: the purpose; sentences of ``test`` never occur under another name.
    """
    return draw_different(count, _statement, seed=seed, part=part)


def draw_ambiguous(count: int, *, seed: int, part: str) -> list[Pair]:
    """Draw statements whose verb has two French words, one of which is drawn for each sentence.

    Nothing in the English sentence tells which. No translator can foresee it, and a fair one pays
    log 2 nats for each sentence.
    """
    numbers = generator(seed, "tiny synonyms", part)
    synonyms = {row[0]: row[1] for row in read_tiny_words("synonyms")}
    found = []
    for english, french in draw_statements(count, seed=seed, part=part):
        words = french.split()
        if numbers.random() < 0.5:
            words = [synonyms.get(word, word) for word in words]
        found.append((english, " ".join(words)))
    return found


def is_translation(written: str, pair: Pair) -> bool:
    """Tell whether a text translates a statement, with either word for the verb."""
    usual = {other: verb for verb, other in read_tiny_words("synonyms")}

    def plain(text: str) -> list[str]:
        return [usual.get(word, word) for word in text.split()]

    return plain(written) == plain(pair[1])


def draw_lists(
    count: int,
    *,
    phrases: Sequence[int],
    seed: int,
    part: str,
    draw: Callable[[np.random.Generator], Pair] | None = None,
) -> list[Pair]:
    """Draw lists such as *the black dog and the cow and the gray wolf*; all are different.

    Args:
        count: the number of lists.
        phrases: the numbers of animals that a list may have.
        seed: of the draws.
        part: the purpose; lists of ``test`` never occur under another name.
        draw: draws an animal of the list; one of this language unless given.
    """

    def make(numbers: np.random.Generator) -> Pair:
        size = int(numbers.choice(list(phrases)))
        english, french = zip(*((draw or _phrase)(numbers) for _ in range(size)), strict=True)
        return " and ".join(english), " et ".join(french)

    return draw_different(count, make, seed=seed, part=part)


def swap_animals(pair: Pair) -> Pair | None:
    """Exchange the two animals of a statement; None if both are described alike."""
    words = pair[0].split()
    translated = pair[1].split()
    english, french = zip(*read_tiny_words("verbs"), strict=True)
    (place,) = (i for i, word in enumerate(words) if word in english)
    (other,) = (i for i, word in enumerate(translated) if word in french)
    swapped = " ".join([*words[place + 1 :], words[place], *words[:place]])
    if swapped == pair[0]:
        return None
    after = [*translated[other + 1 :], translated[other], *translated[:other]]
    return swapped, " ".join(after)


def draw_different(
    count: int, make: Callable[[np.random.Generator], Pair], *, seed: int, part: str
) -> list[Pair]:
    """Draw pairs that are all different; those of ``test`` never occur under another name."""
    numbers = generator(seed, "tiny language", part)
    found: dict[str, Pair] = {}
    for _ in range(10_000 + 200 * count):
        if len(found) == count:
            return list(found.values())
        pair = make(numbers)
        # The letters of a sentence decide whether it is for tests, so that no draw mixes the two.
        if (sum(map(ord, pair[0])) % 5 == 0) is (part == "test"):
            found.setdefault(pair[0], pair)
    raise AssertionError(f"The tiny language has fewer than {count} sentences of this kind.")


def _statement(numbers: np.random.Generator) -> Pair:
    first = _phrase(numbers)
    second = _phrase(numbers)
    verbs = read_tiny_words("verbs")
    verb = verbs[numbers.integers(len(verbs))]
    return f"{first[0]} {verb[0]} {second[0]}", f"{first[1]} {verb[1]} {second[1]}"


def _phrase(numbers: np.random.Generator) -> Pair:
    return draw_colored(numbers, read_tiny_words("animals"))


def draw_colored(numbers: np.random.Generator, animals: Words) -> Pair:
    """Draw one of the animals, in more than half of the cases with a color."""
    english, french, gender = animals[numbers.integers(len(animals))]
    if numbers.random() < 0.4:
        return f"the {english}", french
    colors = read_tiny_words("colors")
    color = colors[numbers.integers(len(colors))]
    return f"the {color[0]} {english}", f"{french} {color[2 if gender == 'f' else 1]}"


Kind = Literal["shorter", "equal", "longer"]

_KINDS: tuple[Kind, ...] = ("shorter", "equal", "longer")


def draw_uneven(count: int, *, phrases: Sequence[int], seed: int, part: str) -> list[Pair]:
    """Draw lists such as *the black guinea pig and the earthworm*; all are different.

    Args:
        count: the number of lists.
        phrases: the numbers of animals that a list may have.
        seed: of the draws.
        part: the purpose; lists of ``test`` never occur under another name.
    """
    return draw_lists(count, phrases=phrases, seed=seed, part=part, draw=_uneven_phrase)


def kind_of(pair: Pair) -> Kind:
    """Tell whether a translation has fewer words than the source, as many, or more."""
    source, target = (len(text.split()) for text in pair)
    return "shorter" if target < source else "longer" if target > source else "equal"


def order_of(written: str, wanted: str) -> list[Literal["right", "order", "words", "missing"]]:
    """Compare each animal of a translation that has a color with the one in its place.

    Args:
        written: the translation of a model.
        wanted: the correct one.

    Returns:
        For each animal with a color: ``right``; ``order`` if its words are right, but not in their
        order, or a color is not the last word; ``words`` if others stand there; ``missing`` if
        nothing does.
    """
    colors = {word for color in read_tiny_words("colors") for word in color[1:]}
    found: list[Literal["right", "order", "words", "missing"]] = []
    theirs = written.split(" et ")
    for place, phrase in enumerate(wanted.split(" et ")):
        words = phrase.split()
        if words[-1] not in colors:
            continue
        # A model may stop too early.
        have = theirs[place].split() if place < len(theirs) else []
        if have == words:
            found.append("right")
        # A color that is not last stands before its noun, as in English.
        elif sorted(have) == sorted(words) or colors & set(have[:-1]):
            found.append("order")
        else:
            found.append("words" if have else "missing")
    return found


def _uneven_phrase(numbers: np.random.Generator) -> Pair:
    kind = _KINDS[numbers.integers(len(_KINDS))]
    return draw_colored(numbers, read_tiny_words(f"animals_{kind}"))
