"""A sentence pair under construction, the choices that make it, and phrases that many share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar

from pellucid.corpora.french import (
    Word,
    agree,
    begins_with_vowel,
    make_prenominal,
    to_plural_verb,
)
from pellucid.corpora.lexicon import Adjective, Noun, Phrase, Verb, adjectives_of

Article = Literal["the", "a", "some", "no", ""]
Relation = Literal["adjective", "object", "predicate"]
T = TypeVar("T")


class Pick:
    """Choices made with numbers from [0, 1), which the caller provides one by one."""

    def __init__(self, uniform: Callable[[], float]) -> None:
        self._uniform = uniform

    def one(self, options: Sequence[T]) -> T:
        """Choose one of several, all with the same probability."""
        return options[int(self._uniform() * len(options))]

    def of(self, weighted: str) -> Any:
        """Choose one of some words, each as often as its number says: ``act 3, give 2, go``."""
        return self.one(_repeat(weighted))

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._uniform() < probability


@cache
def _repeat(weighted: str) -> tuple[str, ...]:
    """Repeat each word as often as the number after it says."""
    entries = [entry.split() for entry in weighted.split(", ")]
    return tuple(word for word, *times in entries for _ in range(int(times[0]) if times else 1))


class Combination(NamedTuple):
    """Two words that belong together, such as an adjective and its noun."""

    relation: Relation
    word: str
    noun: str


class Entity(NamedTuple):
    """A noun of a sentence, which a later word may agree with or stand for."""

    noun: Noun
    is_plural: bool
    role: int
    english: int


class PronounLink(NamedTuple):
    """A pronoun and its antecedent: the English indices, and the roles of the French words."""

    english: int
    english_antecedent: int
    role: int
    role_antecedent: int


class _Template(NamedTuple):
    text: str
    links: tuple[int, ...]
    agrees: bool
    is_finite: bool


@dataclass(slots=True)
class Sentence:
    """The words of a sentence so far, in both languages.

    The French words are not joined yet: *de le* is two words here. ``num_roles`` is the number of
    noun phrases and pronouns so far, which count from 1; see `Word`. ``has_unknown`` tells that a
    word is made up, for training only.
    """

    construction: str
    english: list[str] = field(default_factory=list)
    french: list[Word] = field(default_factory=list)
    combinations: list[Combination] = field(default_factory=list)
    pronouns: list[PronounLink] = field(default_factory=list)
    num_roles: int = 0
    mood: Literal["statement", "order", "question", "name"] = "statement"
    has_unknown: bool = False

    def copy(self) -> Sentence:
        """Copy the sentence, so that the copy can grow independently."""
        return replace(
            self,
            english=self.english.copy(),
            french=self.french.copy(),
            combinations=self.combinations.copy(),
            pronouns=self.pronouns.copy(),
        )

    def say(self, english: str, french: str, subject: Entity | None = None) -> None:
        """Add a phrase.

        Args:
            english: its English words.
            french: its French words, in the lexicon's notation.
            subject: the noun that ``@`` and ``^`` words agree with; masculine singular if None.
        """
        start = len(self.english)
        self.english += english.split()
        gender = subject.noun.gender if subject else "m"
        is_plural = subject is not None and subject.is_plural
        for text, links, agrees, is_finite in read_lexicon_words(french):
            if agrees:
                text = agree(text, gender, is_plural=is_plural)
            elif is_finite and is_plural:
                # The lexicon has the singular only.
                text = to_plural_verb(text)
            # The phrase counts its words from 0, the sentence continues.
            self.french.append(Word(text, tuple([start + link for link in links])))

    def noun_phrase(
        self,
        article: Article,
        noun: Noun,
        *,
        is_plural: bool = False,
        adjective: Adjective | None = None,
    ) -> Entity:
        """Add an article, at most one adjective and a noun.

        Args:
            article: ``the``; ``a`` (in the plural nothing in English, *des* in French); ``some``;
                ``no`` for *any* after a negation, *de* in French; ``""`` for a noun in general,
                which takes *le* in French.
            noun: the noun.
            is_plural: True for the plural.
            adjective: its adjective, if any.
        """
        name = noun.english_plural if is_plural else noun.english
        start = len(self.english)
        # *An old man*: the article goes by the next word.
        first = adjective.english if adjective else name
        self._english_article(article, first, is_plural=is_plural)
        has_article = len(self.english) > start
        noun_index = len(self.english) + (adjective is not None)
        # A French article without an English one is linked to the noun.
        article_links = (start,) if has_article else (noun_index,)
        if adjective:
            self.english.append(adjective.english)
            self.combine("adjective", adjective.english, noun)
        self.english.append(name)

        self.num_roles += 1
        text = noun.french_plural if is_plural else noun.french
        head = Word(text, (noun_index,), (self.num_roles,))
        # *De grandes maisons*: des becomes de before an adjective.
        is_de = article in ("a", "some") and is_plural and adjective and adjective.is_before
        for word in ("de",) if is_de else _french_article(article, noun, is_plural=is_plural):
            self.french.append(Word(word, article_links))
        if adjective is None:
            self.french.append(head)
        elif adjective.is_before:
            form = make_prenominal(
                adjective.french, noun.gender, is_plural=is_plural, following=text
            )
            # The adjective stands just before the noun in English.
            self.french += [Word(form, (noun_index - 1,)), head]
        else:
            form = agree(adjective.french, noun.gender, is_plural=is_plural)
            self.french += [head, Word(form, (noun_index - 1,))]
        return Entity(noun, is_plural, self.num_roles, noun_index)

    def _english_article(self, article: Article, first: str, *, is_plural: bool) -> None:
        if article == "a":
            if not is_plural:
                # French counts a mute h as a vowel, English does not.
                self.english.append("an" if begins_with_vowel(first) and first[0] != "h" else "a")
        elif article == "no":
            self.english.append("any")
        elif article:
            self.english.append(article)

    def pronoun(self, english: str, french: str, antecedent: Entity) -> None:
        """Add a pronoun that stands for something said before."""
        self.num_roles += 1
        index = len(self.english)
        self.english.append(english)
        self.french.append(Word(french, (index,), (self.num_roles,)))
        # The English places are final; French ones are known only after words were joined.
        self.pronouns.append(
            PronounLink(index, antecedent.english, self.num_roles, antecedent.role)
        )

    def pause(self) -> None:
        """Add a comma in both languages."""
        self.english[-1] += ","
        self.french[-1] = self.french[-1]._replace(text=self.french[-1].text + ",")

    def combine(self, relation: Relation, word: str, noun: Noun) -> None:
        """Note that a word and a noun are combined, for the held-out pairs."""
        self.combinations.append(Combination(relation, word, noun.english))


def _french_article(article: Article, noun: Noun, *, is_plural: bool) -> tuple[str, ...]:
    if article == "no":
        return ("de",)
    if article in ("a", "some"):
        if is_plural:
            return ("des",)
        if article == "a":
            return ("un",) if noun.gender == "m" else ("une",)
        # *Some bread*: the partitive, contracted later.
        return ("de", "le") if noun.gender == "m" else ("de", "la")
    if is_plural:
        return ("les",)
    return ("le",) if noun.gender == "m" else ("la",)


@cache
def read_lexicon_words(french: str) -> tuple[_Template, ...]:
    """Read French words in the notation of the lexicon."""
    templates = []
    for entry in french.split():
        text, _, links = entry.partition(":")
        agrees = text[0] == "@"
        is_finite = text[0] == "^"
        indices = tuple(int(link) for link in links.split(","))
        templates.append(_Template(text.lstrip("@^"), indices, agrees, is_finite))
    return tuple(templates)


def say_noun(
    sentence: Sentence,
    pick: Pick,
    noun: Noun,
    *,
    is_plural: bool,
    described: float,
    article: Article = "the",
) -> Entity:
    """Say an article and a noun, with an adjective at the probability ``described``."""
    adjective = None
    if pick.chance(described) and (options := adjectives_of(noun.kind)):
        adjective = pick.one(options)
    return sentence.noun_phrase(article, noun, is_plural=is_plural, adjective=adjective)


def say_subject(sentence: Sentence, pick: Pick, noun: Noun, *, is_plural: bool) -> Entity:
    """Say *the* and a noun, one time in three with an adjective."""
    return say_noun(sentence, pick, noun, is_plural=is_plural, described=1 / 3)


def say_object(sentence: Sentence, pick: Pick, noun: Noun, article: Article) -> Entity:
    """Say an article and a noun; *a* and *some* replace each other as the noun requires."""
    # *Any apples*: a countable noun is plural after a negation.
    is_plural = not noun.is_mass and (article == "no" or pick.chance(0.3))
    if article == "a" and (noun.is_mass or is_plural):
        article = "some"
    elif article == "some" and not noun.is_mass and not is_plural:
        article = "a"
    described = 0.4 if article != "no" else 0.0
    return say_noun(sentence, pick, noun, is_plural=is_plural, described=described, article=article)


def say_adjective(sentence: Sentence, subject: Entity, english: str, french: str) -> None:
    """Say an adjective of a noun after *is*."""
    sentence.combine("adjective", english, subject.noun)
    sentence.say(english, f"@{french}:0", subject)


def say_predicate(sentence: Sentence, subject: Entity, phrase: Phrase) -> None:
    """Say what a noun did or was; *was* becomes *were* in the plural."""
    english = phrase.english
    if subject.is_plural and english.startswith("was "):
        english = "were " + english.removeprefix("was ")
    # In the singular, which names the predicate.
    sentence.combine("predicate", phrase.english, subject.noun)
    sentence.say(english, phrase.french, subject)


def say_object_pronoun(
    sentence: Sentence, antecedent: Entity, verb: Verb, *, is_past: bool, agent: Entity
) -> None:
    """Say a verb and its object as a pronoun: *read it*, in French *l'a lue* or *la lit*."""
    sentence.combine("object", verb.name, antecedent.noun)
    index = len(sentence.english)
    english = "them" if antecedent.is_plural else "it"
    french = "les" if antecedent.is_plural else "le" if antecedent.noun.gender == "m" else "la"
    sentence.english.append(verb.past if is_past else verb.english_third)
    sentence.pronoun(english, french, antecedent)
    links = "0"
    if verb.particle:
        sentence.english.append(verb.particle)
        links = "0,2"
    forms = f"{'ont' if agent.is_plural else 'a'}:0 @{verb.participle}:{links}"
    # The English words are there already, and the French verb comes after its pronoun. So the verb
    # is said in an empty sentence, and its links are moved to where the English verb is.
    verb_only = Sentence("")
    verb_only.say("", forms if is_past else f"{verb.il}:{links}", antecedent)
    sentence.french += [
        word._replace(links=tuple(index + link for link in word.links)) for word in verb_only.french
    ]
