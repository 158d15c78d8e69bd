"""The Moses chain that published lower-cased, tokenised figures were computed on.

Lower-case, normalise punctuation, tokenise with escaping (``'`` becomes ``&apos;``) and without
splitting hyphens. In this order, and with the two details of the Perl scripts that
`lowercase_and_tokenize` explains, the English, French and German sides of Multi30k come out
exactly as its authors published them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from pellucid.errors import ConfigurationError

__all__ = ["MOSES_LANGUAGES", "lowercase_and_tokenize", "moses_signature"]

# fmt: off
MOSES_LANGUAGES = (
    "as", "bn", "ca", "cs", "de", "el", "en", "es", "et", "fi", "fr", "ga", "gu", "hi", "hu",
    "is", "it", "kn", "lt", "lv", "ml", "mni", "mr", "nl", "or", "pa", "pl", "pt", "ro", "ru",
    "sk", "sl", "sv", "ta", "tdt", "te", "yue", "zh",
)
# fmt: on
"""Languages whose abbreviations Moses knows; for others it would silently use English rules."""


def lowercase_and_tokenize(lines: Sequence[str], language: str) -> list[str]:
    """Lower-case, normalise and tokenise as Moses does, with escaping.

    Args:
        lines: raw text, one sentence each.
        language: a code of `MOSES_LANGUAGES`; it decides on apostrophes and abbreviations.

    Returns:
        As many lines, tokens apart by one space.

    Raises:
        ConfigurationError: for a language that Moses has no rules for.

    Differs:
        The Perl scripts give Finnish and Swedish colons rules of their own; sacremoses does not.
    """
    if language not in MOSES_LANGUAGES:
        raise ConfigurationError(
            f"The language of lower-cased tokenised scores must be one that Moses has rules for, "
            f"but is {language!r} (lowercased_tokenized). "
            f"Use one of: {', '.join(MOSES_LANGUAGES)}."
        )
    # Imported late: it takes longer to load than the rest of this folder and is rarely needed.
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    # Perl parity: a typographic apostrophe outside a word becomes a double quotation mark.
    normalizer = MosesPunctNormalizer(language, perl_parity=True)
    tokenizer = MosesTokenizer(language)
    return [
        # The Perl script works on the line with its end, which lets it swap ." at the end.
        tokenizer.tokenize(normalizer.normalize(f"{line.lower()}\n"), return_str=True)
        for line in lines
    ]


def moses_signature(language: str) -> str:
    """Say what `lowercase_and_tokenize` did, in the notation of sacreBLEU's signatures."""
    return f"moses:{language}|steps:lc+norm+tok+escape|sacremoses:{version('sacremoses')}"
