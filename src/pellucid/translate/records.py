"""Translations and scores as JSON values, the same in files and in answers over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.bundle import Bundle
    from pellucid.translate.results import Scored, Translation
    from pellucid.translate.translator import Translator

MOST_WORDS = 10
"""Words outside a vocabulary that are named."""

_TOKENS = ("tokens", "ids", "token_log_probabilities")
_LINKS = ("words", "alignment")


def hypothesis_records(
    translation: Translation, *, has_tokens: bool, has_links: bool
) -> list[dict[str, Any]]:
    """Write the hypotheses of a translation.

    Args:
        translation: the translation.
        has_tokens: True to add tokens and their log-probabilities.
        has_links: True to add words and their links.
    """
    tokens = _TOKENS if has_tokens else ()
    links = _LINKS if has_links else ()
    fields = ("text", *tokens, "log_probability", "score", *links)
    return [{name: getattr(one, name) for name in fields} for one in translation.hypotheses]


def translation_record(
    translation: Translation, *, has_tokens: bool, has_links: bool
) -> dict[str, Any]:
    """Write a translation without its text; arguments as for `hypothesis_records`."""
    notes = translation.notes.to_json()
    return {
        "error": translation.error,
        **({"source_words": translation.source_words} if has_links else {}),
        "hypotheses": hypothesis_records(translation, has_tokens=has_tokens, has_links=has_links),
        # Nothing unusual, nothing to say: most lines have no such key.
        **({"notes": notes} if notes else {}),
    }


def clean_line(bundle: Bundle, text: str) -> str:
    """Replace or drop the characters of a line that a model has not learned."""
    from pellucid.text.cleaning import Cleaner
    from pellucid.text.learned import LearnedText

    learned = LearnedText.read(bundle.manifest, bundle.tokenizer)
    return Cleaner(learned.characters, bundle.tokenizer).clean(text).text


def line_notes(translator: Translator, text: str) -> dict[str, Any]:
    """Describe what is unusual about a line, as the page words it.

    Returns:
        ``words`` that the vocabulary lacks as one phrase, the names of ``changed`` and ``unknown``
        characters, and ``isLong``.
    """
    from pellucid.text.cleaning import character_name
    from pellucid.text.outside import say_unknown_words

    # Not split, because looking inside replays the line as a whole.
    notes = translator.examine(text, split=False)
    return {
        "words": say_unknown_words(notes.unknown_words, translator.tokenizer, most=MOST_WORDS),
        "changed": list(map(character_name, {**notes.replaced, **notes.dropped})),
        "unknown": list(map(character_name, notes.unknown)),
        "isLong": notes.is_long,
    }


def score_record(scored: Scored, *, has_tokens: bool) -> dict[str, Any]:
    """Write the score of a pair.

    Args:
        scored: the pair.
        has_tokens: True to add tokens and their log-probabilities.
    """
    is_scored = scored.error is None
    return {
        "error": scored.error,
        # The default, 0.0, would mean a certain translation.
        "log_probability": scored.log_probability if is_scored else None,
        **({name: getattr(scored, name) for name in _TOKENS} if has_tokens else {}),
    }
