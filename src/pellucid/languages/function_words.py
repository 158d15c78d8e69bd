"""Words that another language may say with no word: auxiliaries and small prepositions.

Pronouns, conjunctions and negations are not among them: what they say is lost with them. Nor are
articles: one without a link stands next to a noun that may be lost.
"""

from __future__ import annotations

from pellucid.languages.codes import short_code

_WORDS = {
    "en": "on in of to at by for from with up out off is are was were be been do does did has had",
    "fr": "de d' à au aux en dans sur par pour est sont était étaient être été a ont avons",
    "de": "in im an am auf zu zum zur von vom für mit bei ist sind war waren hat haben wird werden",
    "es": "de a al en por para con es son está están era eran ha han",
    "it": "di a in da per con è sono era erano ha hanno",
    "pt": "de em por para com é são está estão era eram tem",
}
_BY_LANGUAGE = {language: frozenset(words.split()) for language, words in _WORDS.items()}


def is_function_word(word: str, language: str) -> bool:
    """Tell whether a word of a language may have no counterpart; False if that is not known."""
    return word.lower() in _BY_LANGUAGE.get(short_code(language), ())
