"""The constraints of a text, from phrases and a glossary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary
    from pellucid.decode.constraints.request import LineConstraints
    from pellucid.translate.translator import Translator


def fit_glossary(glossary: Glossary, translator: Translator) -> Glossary:
    """Fit a glossary to a model: the forms of its source language, the letters it can write."""
    tokenizer = translator.tokenizer
    bundle = translator.bundle

    def can_write(term: str) -> bool:
        return tokenizer.config.unk_id not in tokenizer.encode_target(term)

    language = "" if bundle is None else bundle.config.languages.source
    return glossary.for_language(language, can_write)


def constraints_of(
    text: str,
    prefix: str,
    forbidden: tuple[str, ...],
    required: Sequence[str],
    own: Sequence[str] = (),
    glossary: Glossary | None = None,
) -> LineConstraints:
    """Build the constraints of one text; the terms of a glossary belong to single lines.

    If several places require the same phrase, the one that requires it most often counts.

    Args:
        text: of one line or several.
        prefix: the beginning of its translation.
        forbidden: phrases that no translation may contain.
        required: phrases that each translation must contain.
        own: phrases that this text's translation must contain.
        glossary: terms of the source, with those that the translation must then contain.
    """
    from pellucid.decode.constraints.request import Constraints

    def require(line: str) -> tuple[str, ...]:
        terms = glossary.terms_for(line) if glossary is not None else ()
        # `|` takes the larger count of each phrase. A sum would require it once for each place.
        wanted = Counter(required) | Counter(own) | Counter[str](terms)
        return tuple(wanted.elements())

    lines = text.split("\n")
    # Required phrases need a text of one line: with more, `Preparer` refuses the text.
    if len(lines) == 1 or required or own:
        return Constraints(prefix, forbidden, require(text))
    # A blank line is not translated, so the prefix goes to the first line with text.
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    return [
        Constraints(prefix if number == first else "", forbidden, require(line))
        for number, line in enumerate(lines)
    ]
