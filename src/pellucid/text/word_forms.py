"""Forms of words: a word of a text, and the words of a dictionary that it may be a form of.

Rules are short lists of endings and beginnings, so that they are easy to check and to explain in
docs/guides/translating.md. They know no irregular forms.
"""

from __future__ import annotations

import re
from typing import Literal

from pellucid.languages.codes import short_code

Match = Literal["auto", "exact", "forms"]
"""Words as they are; with attached particles and articles; in all common forms, also plurals."""

_HANGUL = 0xAC00
_HANGUL_END = 0xD7A3
_FINALS = 28
"""Hangul syllables come in groups of 28, of which the first has no final consonant."""
_FINAL_RIEUL = 8

# Particles after any syllable, after a final consonant, and after a vowel. A particle that does
# not fit the sound before it is not one: 나이 (age) is not 나 (I) with 이.
_AFTER_ALL = (
    *("의", "에", "에서", "에게", "에는", "에도", "에서는", "에서도", "에게는", "도", "만", "까지"),
    *("부터", "처럼", "보다", "마다", "하고", "한테", "께서", "밖에", "조차", "마저"),
    *("들", "들이", "들은", "들을", "들의", "들과", "들도", "들에", "들에게", "들로"),
)
_AFTER_CONSONANT = ("은", "이", "을", "과", "이나", "이랑", "이라도")
_AFTER_VOWEL = ("는", "가", "를", "와", "나", "랑", "라도")
_DIRECTION = ("로", "로는", "로도", "로부터", "로서", "로써")
"""After a vowel or ㄹ; after other consonants with 으 before it."""
_OTHER_DIRECTION = tuple(f"으{particle}" for particle in _DIRECTION)
_PARTICLES = (*_AFTER_ALL, *_AFTER_CONSONANT, *_AFTER_VOWEL, *_DIRECTION, *_OTHER_DIRECTION)

_ARABIC = re.compile("[\u0621-\u064a]+")
_SHORTEST_ARABIC = 3
_ARTICLE = re.compile("(?:[وف])?(?:[بك])?ال(?P<stem>.+)|(?:[وف])?لل(?P<after_l>.+)")
_PROCLITIC = re.compile("(?:[وف])?(?:[بكل])?(?P<stem>.+)")
_ENCLITICS = ("هما", "كما", "ها", "هم", "هن", "كم", "نا", "ه", "ك", "ي")

# Words that only look like a form of another word.
_NO_PLURALS_EN = """
always as bus does gas goes has his its lens means news perhaps plus series species this thus us was
yes economics mathematics physics politics
"""
_NO_PLURALS_FR = """
alors après bas bois bras choix corps cours croix dans dès deux dos fils fois gens gros jamais jus
mais mois moins noix os pas pays plus poids prix puis sans sous temps toujours toux très trois vers
vieux voix
"""
_NOT_PLURAL = {
    "en": frozenset(_NO_PLURALS_EN.split()),
    "fr": frozenset(_NO_PLURALS_FR.split()),
}
_SHORTEST = {"en": 3, "fr": 3, "de": 4}
_GERMAN = ("ern", "en", "er", "es", "e", "n", "s")
_WITH_UMLAUT = ("ern", "en", "er", "e")
_UMLAUTS = str.maketrans("äöüÄÖÜ", "aouAOU")

_ENDINGS = {"en": ("s", "es"), "fr": ("s", "x"), "de": _GERMAN}
# What becomes another ending in a plural.
_CHANGED = {"en": (("y", "ies"),), "fr": (("al", "aux"), ("ail", "aux"))}

_VOWELS = "aeiouyáéíóúýàèìòùâêîôûäëïöüãõåæøąęıаеёиоуыэюяйьіїєαειουηωάέήίόύώ"
_SHORTEST_STEM = 4
_LONGEST_ENDING = 3


def base_forms(word: str, language: str, match: Match) -> tuple[str, ...]:
    """List the words that a word may be a form of, itself first.

    Args:
        word: a run of letters.
        language: its language, such as ``en`` or ``en-GB``; may be empty.
        match: ``auto`` takes off particles of Korean, and of Arabic the article with what stands
            before it; ``forms`` also takes off other attached words of Arabic, and plurals of
            English, French and German.
    """
    if match == "exact" or not word:
        return (word,)
    code = short_code(language)
    found = [word]
    if _HANGUL <= ord(word[-1]) <= _HANGUL_END:
        found += _korean(word, shortest=2 if match == "auto" else 1)
    # Persian and Urdu have Arabic letters, but not these articles and clitics.
    elif code in ("ar", "") and _ARABIC.fullmatch(word):
        found += _arabic(word, has_all=match == "forms")
    elif match == "forms" and code in _SHORTEST:
        plain = {"en": _english, "fr": _french, "de": _german}[code](word)
        if word.lower() not in _NOT_PLURAL.get(code, ()):
            found += [one for one in plain if len(one) >= _SHORTEST[code]]
    return tuple(dict.fromkeys(found))


def inflections(word: str, language: str) -> tuple[str, ...]:
    """List plurals of a word or a phrase, of which not all exist: let a model choose.

    Languages without rules have none. In a French phrase each word has its plural, in others the
    last one.

    Args:
        word: a word or a phrase in its plain form.
        language: its language, such as ``fr``.
    """
    code = short_code(language)
    *before, last = word.split(" ")
    found = _plurals(last, code)
    if code == "fr":
        before = [(*_plurals(one, code), one)[0] for one in before]
    return tuple(" ".join((*before, one)) for one in found)


def _plurals(word: str, code: str) -> tuple[str, ...]:
    found = [f"{word}{ending}" for ending in _ENDINGS.get(code, ())]
    for old, new in _CHANGED.get(code, ()):
        if word.endswith(old):
            found.append(f"{word.removesuffix(old)}{new}")
    return tuple(one for one in found if word in base_forms(one, code, "forms"))


def is_inflection(word: str, term: str, language: str) -> bool:
    """Tell whether a word is another, or has another ending than that.

    Rules for plurals come first. In any language a word may have up to three letters after a stem
    of four or more, which is the term or all of it but a vowel at its end.

    Args:
        word: a word of a text.
        term: a word of a glossary.
        language: that of both, such as ``fr``; may be empty.
    """
    forms = set(map(str.lower, base_forms(word, language, "forms")))
    if not forms.isdisjoint(map(str.lower, base_forms(term, language, "forms"))):
        return True
    lowered = term.lower()
    stem = lowered[:-1] if lowered[-1:] in _VOWELS else lowered
    is_long = len(stem) >= _SHORTEST_STEM
    return is_long and word.lower().startswith(stem) and len(word) <= len(stem) + _LONGEST_ENDING


def _korean(word: str, shortest: int) -> list[str]:
    """Take a particle off that fits the sound before it."""
    found = []
    for particle in _PARTICLES:
        stem = word.removesuffix(particle)
        if stem != word and len(stem) >= shortest and _fits(stem[-1], particle):
            found.append(stem)
    return found


def _fits(last: str, particle: str) -> bool:
    if particle in _AFTER_ALL:
        return True
    if not _HANGUL <= ord(last) <= _HANGUL_END:
        return True  # A foreign word is read in several ways: API는, API은.
    final = (ord(last) - _HANGUL) % _FINALS
    if particle in _AFTER_CONSONANT:
        return final > 0
    if particle in _AFTER_VOWEL:
        return final == 0
    takes_plain = final in (0, _FINAL_RIEUL)
    return takes_plain == (particle in _DIRECTION)


def _arabic(word: str, *, has_all: bool) -> list[str]:
    """Take the article off, or replace what precedes it; with ``has_all`` also other clitics."""
    found: list[str] = []
    if match := _ARTICLE.fullmatch(word):
        stem = match["stem"] or match["after_l"]
        # A dictionary may have the word with its article or without.
        found += [stem, f"ال{stem}"]
    if has_all:
        bare = [word]
        if match := _PROCLITIC.fullmatch(word):
            bare.append(match["stem"])
        # Fewer letters may be the attached word: والد is not و with الد, but may be read so.
        bare += [word[1:] for letter in "وفبكل" if word.startswith(letter)]
        for stem in dict.fromkeys(bare):
            found.append(stem)
            for enclitic in _ENCLITICS:
                if stem.endswith(enclitic):
                    rest = stem.removesuffix(enclitic)
                    # The feminine ending is written ت before an attached pronoun.
                    found += [rest, *([f"{rest[:-1]}ة"] if rest.endswith("ت") else [])]
    return [stem for stem in found if len(stem.removeprefix("ال")) >= _SHORTEST_ARABIC]


def _english(word: str) -> list[str]:
    # Glass, bus and basis are not plurals.
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return []
    found = [word[:-1]]
    # Both are tried: ties is a form of tie, cities one of city.
    if word.endswith("ies"):
        found.append(f"{word[:-3]}y")
    elif word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        found.append(word[:-2])
    return found


def _french(word: str) -> list[str]:
    if word.endswith("s") and not word.endswith("ss"):
        return [word[:-1]]
    if word.endswith("aux"):
        # Tuyaux comes from tuyau, journaux from journal, travaux from travail.
        return [word[:-1], f"{word[:-3]}al", f"{word[:-3]}ail"]
    return [word[:-1]] if word.endswith(("eux", "oux")) else []


def _german(word: str) -> list[str]:
    """Take endings of plurals and cases off nouns, which begin with a capital."""
    if not word[0].isupper():
        return []
    found = []
    for ending in _GERMAN:
        stem = word.removesuffix(ending)
        if stem != word:
            found.append(stem)
            if ending in _WITH_UMLAUT:
                # Bücher comes from Buch.
                found.append(stem.translate(_UMLAUTS))
    return found
