"""Translations, scores and remarks on a line, as answers over HTTP and the page have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.bundle import Bundle
    from pellucid.translate.results import Scored, Translation
    from pellucid.translate.translator import Translator

MOST_WORDS = 10
"""Words outside a vocabulary that are named."""


def translation_record(
    translation: Translation, *, has_tokens: bool, has_links: bool
) -> dict[str, Any]:
    """Write a translation, see `Translation.to_dict`; it has links if they were asked for."""
    assert has_links or translation.best.alignment is None
    return translation.to_dict(has_tokens=has_tokens)


def score_record(scored: Scored, *, has_tokens: bool) -> dict[str, Any]:
    """Write the score of a pair that the asker knows."""
    record = scored.to_dict(has_tokens=has_tokens)
    return {name: one for name, one in record.items() if name not in ("source", "target")}


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
    from pellucid.translate.text_translator import examine

    # Not split, because looking inside replays the line as a whole.
    notes = examine(translator, text, split="none")
    return {
        "words": say_unknown_words(notes.unknown_words, translator.tokenizer, most=MOST_WORDS),
        "changed": list(map(character_name, {**notes.replaced, **notes.dropped})),
        "unknown": list(map(character_name, notes.unknown)),
        "isLong": notes.is_long,
    }
