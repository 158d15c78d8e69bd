"""The other gender or number of a word: what it is compared with when a reader asks why.

*Why "mangée"?* means *why not "mangé"?*: the model had to choose between the forms of one word, and
the source decides which. The forms come from the rules that write the corpus (`agree`), and only
those count that the vocabulary of a model has. Nouns have a gender of their own, so a noun has no
rival.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

from pellucid.corpora.french import agree, to_plural_verb
from pellucid.corpora.lexicon import ADJECTIVES, NATIONALITIES, NOUNS, RELATIONAL, WORDS

# Masculine and feminine singular, then plural. Without *un*: its plural *des* is also *de les*.
_CLOSED = tuple(
    tuple(row.split())
    for row in (
        "il elle ils elles",
        "le la les les",
        "mon ma mes mes",
        "ton ta tes tes",
        "son sa ses ses",
        "notre notre nos nos",
        "votre votre vos vos",
        "leur leur leurs leurs",
        "celui celle ceux celles",
    )
)
_GERMAN = (("er", "sie", "sie", "sie"),)
# Words that only a vocabulary of the language has all of.
_SIGNS_OF_FRENCH = frozenset(("il", "elle", "les"))
_SIGNS_OF_GERMAN = frozenset(("er", "sie", "der"))
_JOINERS = "￭▁"
# *goût* is masculine wherever it stands, and *goûte* is a form of the verb.
_NOUNS_OF_EXPRESSIONS = frozenset(("goût", "goûts"))
_GENDER = 0
_NUMBER = 1


class RivalForms:
    """The forms of the words of a vocabulary.

    Args:
        vocabulary: its tokens. Of pieces of words only those count that are whole words.
    """

    def __init__(self, vocabulary: Iterable[str]) -> None:
        known = frozenset(token.strip(_JOINERS) for token in vocabulary)
        nouns = {form for noun in NOUNS.values() for form in (noun.french, noun.french_plural)}
        nouns |= _NOUNS_OF_EXPRESSIONS
        # *son* is a sound, and *his*.
        words = known - (nouns - {form for forms in _CLOSED for form in forms})
        self._rivals: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
        for forms in _paradigms(known):
            # What a table above says of a word holds, and no rule after it.
            new = [form for form in forms if form in words and form not in self._rivals]
            for slot, form in enumerate(forms):
                if form in new:
                    self._add(form, _GENDER, forms[slot ^ 1], words)
                    self._add(form, _NUMBER, forms[slot ^ 2], words)

    def _add(self, form: str, kind: int, other: str, known: Collection[str]) -> None:
        if other != form and other in known:
            self._rivals[form][kind].add(other)

    def rivals(self, word: str) -> tuple[str, ...]:
        """List the forms of another gender, or of another number if there are none.

        Args:
            word: as written: ``qu'elle`` has the rival ``qu'il``, ``La`` has ``Le``.
        """
        begin, apostrophe, rest = word.replace("’", "'").rpartition("'")
        begin = word[: len(begin) + len(apostrophe)]
        of_gender, of_number = self._rivals.get(rest.lower(), ((), ()))
        found = sorted(of_gender or of_number)
        if rest[:1].isupper():
            found = [form.capitalize() for form in found]
        return tuple(begin + form for form in found)


@lru_cache(maxsize=4)
def rival_ids(vocabulary: tuple[str, ...]) -> Mapping[int, list[int]]:
    """List the rivals of each word of a vocabulary, by ids.

    A piece with a sign for a space before it is none of these words.
    """
    agreement = RivalForms(vocabulary)
    ids = {token: id_ for id_, token in enumerate(vocabulary)}
    found = {}
    for token, id_ in ids.items():
        others = [ids[other] for other in agreement.rivals(token) if other in ids]
        if others:
            found[id_] = others
    return found


def _paradigms(known: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield the forms of words as `agree` orders them, the surest ones first."""
    if _SIGNS_OF_GERMAN.issubset(known):
        yield from _GERMAN
    if not _SIGNS_OF_FRENCH.issubset(known):
        return
    yield from _CLOSED
    words = sorted(word for word in known if word.islower() and word.isalpha())
    for word in words:
        feminine = agree(word, "f", is_plural=False)
        # *dans* is no adjective though *danse* is a word: before an -s they have a vowel.
        is_adjective = not word.endswith("ns")
        if feminine != word and feminine in known and is_adjective:
            yield _forms(word)
    free = (row["french"] for row in WORDS["free"]["adjectives"].values())
    listed = (one.french for one in (*ADJECTIVES, *NATIONALITIES, *RELATIONAL))
    for adjective in (*listed, *free):
        yield _forms(adjective)
    for verb in words:
        # *était* and *étaient*, *mange* and *mangent*: one form for both genders.
        plural = verb + "nt" if verb.endswith("e") else to_plural_verb(verb)
        if plural != verb and plural in known:
            yield verb, verb, plural, plural


def _forms(adjective: str) -> tuple[str, ...]:
    return tuple(
        agree(adjective, gender, is_plural=is_plural)
        for is_plural in (False, True)
        for gender in ("m", "f")
    )
