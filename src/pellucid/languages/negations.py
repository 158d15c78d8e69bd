"""Words that deny, in some languages: a translation without one may say the opposite."""

from __future__ import annotations

import re

_NEGATIONS = {
    code: re.compile(words, re.IGNORECASE)
    for code, words in {
        "en": r"\b(?:not|never|no|nobody|nothing|neither|nor|without|cannot|none)\b|\b\w+n['’]t\b",
        "fr": r"\b(?:ne|pas|jamais|aucune?|non|sans|rien|personne|ni)\b|\bn['’]",
        "de": r"\b(?:nicht|nichts|nie|niemals|niemand\w*|kein\w*|ohne|weder|noch|nein)\b",
    }.items()
}
"""By the code of the language. *Noch* also means *still*: it only hides a loss.

Each alternative begins at the edge of a word: one that may begin at any letter takes minutes for a
long line without spaces.
"""


def lost_negations(
    source: str, target: str, *, source_language: str, target_language: str
) -> tuple[str, ...]:
    """List the negations of a source whose translation has none, if both languages are known.

    Args:
        source: a line.
        target: its translation.
        source_language: the code of its language.
        target_language: the code of the translation's.
    """
    of_source = _NEGATIONS.get(source_language)
    of_target = _NEGATIONS.get(target_language)
    if of_source is None or of_target is None or of_target.search(target):
        return ()
    return tuple(of_source.findall(source))
