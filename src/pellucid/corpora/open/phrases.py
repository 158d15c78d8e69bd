"""Noun phrases with any determiner, several adjectives, an owner, or *of* and another noun."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.corpora.french import Word, agree, begins_with_vowel, make_prenominal
from pellucid.corpora.lexicon import KINDS, NUMBERS, Adjective, Noun
from pellucid.corpora.open.open_words import ATTRIBUTES, OWNERS, PEOPLE, rank
from pellucid.corpora.sentence import Entity, Pick, Sentence

_FRENCH_NUMBERS = dict(NUMBERS)
_OWNING = (*PEOPLE, *KINDS["person"], *KINDS["person"], *KINDS["animal"])
POINTING = {"this": "these", "that": "those"}
_DIVISIBLE = frozenset({"pizza", "cake", "tart", "omelette", "melon", "pineapple", "life"})
_WITH_A = frozenset({"European", "university", "uniform", "useful"})
"""Words that begin with a vowel letter, but not with a vowel."""


def say_name(sentence: Sentence, name: Noun) -> Entity:
    """Say a proper name, which has no article."""
    sentence.has_unknown |= name.is_made_up
    sentence.num_roles += 1
    index = len(sentence.english)
    sentence.english.append(name.english)
    sentence.french.append(Word(name.french, (index,), (sentence.num_roles,)))
    return Entity(name, False, sentence.num_roles, index)


def draw_adjectives(pick: Pick, noun: Noun, likely: float = 0.4) -> tuple[Adjective, ...]:
    """Draw no adjective, one or two, in the order of English."""
    if not pick.chance(likely):
        return ()
    options = ATTRIBUTES[noun.kind]
    # What is usual of a noun comes more often than what is only possible.
    usual = [adjective for adjective in options if noun.kind in adjective.kinds] or options
    first = pick.one(usual if pick.chance(0.5) else options)
    if not pick.chance(0.25):
        return (first,)
    second = pick.one(options)
    # Two adjectives of one rank have no order: *red blue* is not said.
    if second is first or rank(second) == rank(first) or second.french == first.french:
        return (first,)
    return tuple(sorted((first, second), key=rank))


def say_phrase(
    sentence: Sentence,
    noun: Noun,
    determiner: str,
    *,
    is_plural: bool = False,
    adjectives: Sequence[Adjective] = (),
) -> Entity:
    """Say a determiner, adjectives and a noun.

    Args:
        sentence: the sentence to add to.
        noun: the noun.
        determiner: ``the``, ``this``, ``that``; ``a``, ``some``; ``any``, ``no`` and ``not a`` in
            a negation, *de* in French; a possessive; a number or an amount; ``general`` and
            ``bare`` without an English word, *le* and *des* in French; ``title`` without a word
            in either.
        is_plural: True for the plural.
        adjectives: in the order of English.
    """
    sentence.has_unknown |= noun.is_made_up
    start = len(sentence.english)
    name = noun.english_plural if is_plural else noun.english
    english = [*(adjective.english for adjective in adjectives), name]
    shown = _english_determiner(determiner, english[0], is_plural=is_plural)
    sentence.english += [*shown, *english]
    index = start + len(shown) + len(adjectives)
    for adjective in adjectives:
        sentence.combine("adjective", adjective.english, noun)
    sentence.num_roles += 1
    french = _french_noun(noun, adjectives, start + len(shown), sentence.num_roles, is_plural)
    # *Des* becomes *de* before an adjective.
    has_before = bool(adjectives) and french[0].text != _form(noun, is_plural).split()[0]
    said = _french_determiner(
        determiner, noun, french[0].text, is_plural=is_plural, has_before=has_before
    )
    links: tuple[int, ...] = (start,) if shown else (index,)
    if len(shown) > 1:  # *All the, a lot of*: the last words belong together
        links = tuple(range(start, index - len(adjectives) - 1))
    sentence.french += [Word(text, links) for text in said[:-1]]
    last = (start + len(shown) - 1,) if len(shown) > 1 else links
    sentence.french += [Word(text, last) for text in said[-1:]]
    sentence.french += french
    return Entity(noun, is_plural, sentence.num_roles, index)


def _form(noun: Noun, is_plural: bool) -> str:
    return noun.french_plural if is_plural else noun.french


def _french_noun(
    noun: Noun, adjectives: Sequence[Adjective], first: int, role: int, is_plural: bool
) -> list[Word]:
    """Put the adjectives before or after the noun; those after it in reverse order."""
    head, *rest = _form(noun, is_plural).split()
    link = (first + len(adjectives),)
    # *Pomme de terre* is three words for one in English.
    words = [Word(head, link, (role,)), *[Word(part, link) for part in rest]]
    # Those behind the noun come out in reverse order, the nearest to the noun first.
    for place in reversed(range(len(adjectives))):
        adjective = adjectives[place]
        link = (first + place,)
        if adjective.is_before:
            form = make_prenominal(
                adjective.french, noun.gender, is_plural=is_plural, following=words[0].text
            )
            words.insert(0, Word(form, link))
        else:
            words.append(Word(agree(adjective.french, noun.gender, is_plural=is_plural), link))
    return words


def _english_determiner(determiner: str, first: str, *, is_plural: bool) -> list[str]:
    if determiner in ("a", "not a"):
        return ["an" if first[0] in "aeiouAEIOU" and first not in _WITH_A else "a"]
    if determiner in ("general", "bare", "not bare", "title"):
        return []
    return (POINTING.get(determiner, determiner) if is_plural else determiner).split()


def _french_determiner(
    determiner: str, noun: Noun, first: str, *, is_plural: bool, has_before: bool
) -> tuple[str, ...]:
    is_feminine = noun.gender == "f"
    if determiner == "title":
        return ()
    if determiner in ("any", "no", "not a", "not bare"):
        return ("de",)
    if determiner in POINTING:
        return (make_prenominal("ce", noun.gender, is_plural=is_plural, following=first),)
    if determiner == "every":
        return ("chaque",)
    if determiner in ("many", "a lot of"):
        return ("beaucoup", "de")
    if determiner == "all the":
        article = "les" if is_plural else "la" if is_feminine else "le"
        return (agree("tout", noun.gender, is_plural=is_plural), article)
    if determiner in _FRENCH_NUMBERS:
        return (_FRENCH_NUMBERS[determiner],)
    if determiner in OWNERS:
        masculine, feminine, plural = OWNERS[determiner]
        if is_plural:
            return (plural,)
        # *Mon eau*: the masculine form before a vowel.
        return (_possessive(masculine, feminine, first) if is_feminine else masculine,)
    if determiner in ("the", "general"):
        return ("les",) if is_plural else ("la",) if is_feminine else ("le",)
    if is_plural:
        return ("de",) if has_before else ("des",)
    if determiner == "a":
        return ("une",) if is_feminine else ("un",)
    return ("de", "la") if is_feminine else ("de", "le")


def _possessive(masculine: str, feminine: str, following: str) -> str:
    """Choose the feminine possessive's form: *ma pomme* is wrong before *eau*, *mon eau*."""
    return masculine if begins_with_vowel(following) else feminine


def say_owned(
    sentence: Sentence, pick: Pick, noun: Noun, owner: Noun, *, is_plural: bool
) -> Entity:
    """Say *the old man's dog*, in French *le chien du vieil homme*."""
    sentence.has_unknown |= noun.is_made_up
    adjectives = draw_adjectives(pick, noun, 0.2)
    is_name = owner in PEOPLE
    determiner = "" if is_name else pick.one(("the", "the", "the", "the", *OWNERS))
    qualities = () if is_name else draw_adjectives(pick, owner, 0.4)
    start = len(sentence.english)
    shown = [] if is_name else [determiner, *(a.english for a in qualities)]
    for quality in qualities:
        sentence.combine("adjective", quality.english, owner)
    are_many = not is_name and pick.chance(0.15)
    owning = owner.english_plural if are_many else owner.english
    name = noun.english_plural if is_plural else noun.english
    first = start + len(shown) + 1
    mark_s = "'" if are_many and owning.endswith("s") else "'s"
    sentence.english += [*shown, owning + mark_s, *(a.english for a in adjectives), name]
    for adjective in adjectives:
        sentence.combine("adjective", adjective.english, noun)
    sentence.num_roles += 1
    role = sentence.num_roles
    article = "les" if is_plural else "la" if noun.gender == "f" else "le"
    # *The* of *the man's dog* belongs to the man; the dog's French article goes with the owner.
    mark = (first - 1,)
    sentence.num_roles += 1
    owners = _french_noun(owner, qualities, start + bool(shown), sentence.num_roles, are_many)
    sentence.french.append(Word(article, mark))
    sentence.french += _french_noun(noun, adjectives, first, role, is_plural)
    sentence.french.append(Word("de", mark))
    if not is_name:
        for text in _french_determiner(
            determiner, owner, owners[0].text, is_plural=are_many, has_before=False
        ):
            sentence.french.append(Word(text, (start,)))
    sentence.french += owners
    return Entity(noun, is_plural, role, first + len(adjectives))


_DEFINITE = (
    ("the",) * 9
    + ("my", "your", "his", "her", "our", "their")
    + ("a",) * 4
    + ("number", "this", "that", "amount")
)
_OBJECT = (
    ("the",) * 6
    + ("my", "your", "his", "her", "our", "their")
    + ("a",) * 4
    + ("some", "some", "bare", "number", "this", "that", "amount")
)


def say_free_phrase(
    sentence: Sentence,
    pick: Pick,
    noun: Noun,
    role: str,
    *,
    plural: float = 0.3,
    is_plural: bool | None = None,
    described: float = 0.4,
) -> Entity:
    """Say a noun in a role with a determiner, a number and adjectives that fit.

    Args:
        sentence: the sentence to add to.
        pick: the choices.
        noun: the noun, which may be a name.
        role: ``subject``, ``object``, ``negated`` (the object of a negated verb), ``no`` (with that
            word), ``liked`` (of *like*), or ``place`` (after a preposition).
        plural: the probability of the plural.
        is_plural: the number, if it is given.
        described: the probability of adjectives.
    """
    # Names are their own plural.
    if noun.english == noun.english_plural:
        return say_name(sentence, noun)
    if is_plural is None:
        is_plural = pick.chance(plural)
    is_plural = is_plural and not noun.is_mass
    if role == "no":
        return say_phrase(sentence, noun, "no", is_plural=is_plural)
    # *Did not see Anna's dog* would need no *de*, unlike other negated objects.
    if role != "negated" and not noun.is_mass and pick.chance(0.08):
        owner = pick.one(_OWNING)
        # *The dog's dog* is left out.
        if owner is not noun:
            return say_owned(sentence, pick, noun, owner, is_plural=is_plural)
    if role == "subject" and (noun.is_mass or noun.english in _DIVISIBLE) and pick.chance(0.3):
        adjectives = draw_adjectives(pick, noun, described / 2)
        return say_phrase(sentence, noun, "general", adjectives=adjectives)
    determiner = pick.one(_OBJECT if role in ("object", "negated", "liked") else _DEFINITE)
    if determiner == "number":
        determiner = pick.one(NUMBERS)[0]
        is_plural = True
    if determiner == "amount":
        determiner = "every"
        if noun.is_mass or is_plural:
            determiner = pick.one(("all the", "a lot of", "many" if is_plural else "a lot of"))
    if role == "place" and determiner == "a" and (noun.is_mass or is_plural):
        determiner = "the"  # *de* never stands before *du* or *des*
    is_indefinite = determiner in ("a", "some", "bare")
    # *Some pizza*, *pizza is good*: food of which one can eat a part.
    is_part = role != "place" and noun.english in _DIVISIBLE and not is_plural and pick.chance(0.5)
    if noun.is_mass and determiner in _FRENCH_NUMBERS:
        determiner = "the"
        is_plural = False
    elif role == "liked" and is_indefinite:
        determiner = "general" if noun.is_mass or is_plural or is_part else "a"
    elif role == "negated" and is_indefinite:
        determiner = "any" if noun.is_mass or is_plural or is_part else "not a"
        if determiner == "any" and pick.chance(0.4):
            determiner = "not bare"
    elif is_indefinite and (noun.is_mass or is_plural or is_part):
        determiner = "some" if determiner == "some" or role == "subject" else "bare"
        if role == "subject":
            # English has no word for *des* before a subject.
            determiner = pick.one(("general", "some"))
    elif is_indefinite:
        determiner = "a" if determiner != "some" else "the"
    adjectives = draw_adjectives(pick, noun, described)
    return say_phrase(sentence, noun, determiner, is_plural=is_plural, adjectives=adjectives)


def say_of(sentence: Sentence, pick: Pick, noun: Noun) -> None:
    """Say *of the house*, *of my sweater*, *of Anna*."""
    sentence.say("of", "de:0")
    if noun.english == noun.english_plural:
        say_name(sentence, noun)
        return
    determiner = pick.one(("the", "the", "the", "my", "your", "his", "her", "our", "their"))
    is_plural = not noun.is_mass and pick.chance(0.2)
    adjectives = draw_adjectives(pick, noun, 0.2)
    say_phrase(sentence, noun, determiner, is_plural=is_plural, adjectives=adjectives)
