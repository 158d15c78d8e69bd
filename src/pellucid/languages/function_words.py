"""Words that another language may say with no word: articles, auxiliaries and small prepositions.

Pronouns, conjunctions and negations are not among them: what they say is lost with them.
"""

from __future__ import annotations

from pellucid.languages.codes import short_code

_WORDS = {
    "en": """
a an the on in of to at by for from with up out off is are was were be been do does did has have had
""",
    "fr": """
le la les l' un une des du de d' à au aux en dans sur par pour est sont était étaient être été a ont
ai as avons avez
""",
    "de": """
der die das den dem des ein eine einen einem einer in im an am auf zu zum zur von vom für mit bei
ist sind war waren hat haben hatte hatten wird werden
""",
    "es": """
el la los las un una unos unas de del a al en por para con es son está están era eran ha han
""",
    "it": """
il lo la i gli le l' un uno una di del della a al alla in nel nella da per con è sono era erano ha
hanno
""",
    "pt": """
o a os as um uma uns umas de do da dos das em no na nos nas por para com é são está estão era eram
tem
""",
}
_BY_LANGUAGE = {language: frozenset(words.split()) for language, words in _WORDS.items()}


def is_function_word(word: str, language: str) -> bool:
    """Tell whether a word of a language may have no counterpart; False if that is not known."""
    return word.lower() in _BY_LANGUAGE.get(short_code(language), ())
