"""The Moses chain, for comparison with published lower-cased, tokenized figures.

Lower-case, normalize punctuation, tokenize with escaping (``'`` becomes ``&apos;``) and without
splitting hyphens. In this order, and with the two details of the Perl scripts that
`lowercase_and_tokenize` explains, the English, French and German sides of Multi30k come out
exactly as its authors published them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from pellucid.errors import ConfigurationError

# fmt: off
MOSES_LANGUAGES = (
    "as", "bn", "ca", "cs", "de", "el", "en", "es", "et", "fi", "fr", "ga", "gu", "hi", "hu",
    "is", "it", "kn", "lt", "lv", "ml", "mni", "mr", "nl", "or", "pa", "pl", "pt", "ro", "ru",
    "sk", "sl", "sv", "ta", "tdt", "te", "yue", "zh",
)
# fmt: on
"""Languages whose abbreviations Moses knows; for others it silently uses English rules."""


def lowercase_and_tokenize(lines: Sequence[str], language: str) -> list[str]:
    """Lower-case, normalize and tokenize as Moses does, with escaping.

    Args:
        lines: raw text, one sentence each.
        language: a code of `MOSES_LANGUAGES`; it decides about apostrophes and abbreviations.

    Returns:
        As many lines, with one space between tokens.

    Raises:
        ConfigurationError: Moses has no rules for the language.

    Differs:
        The Perl scripts have special rules for colons in Finnish and Swedish; sacremoses does not.
    """
    if language not in MOSES_LANGUAGES:
        raise ConfigurationError(
            f"The language of lower-cased tokenized scores must be one that Moses has rules for, "
            f"but is {language!r} (lowercased_tokenized). "
            f"Use one of: {', '.join(MOSES_LANGUAGES)}."
        )
    # Imported late: it is rarely needed, and takes longer to load than the rest of this folder.
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    # Perl parity: a typographic apostrophe outside a word becomes a double quotation mark.
    normalizer = MosesPunctNormalizer(language, perl_parity=True)
    tokenizer = MosesTokenizer(language)
    return [
        # The Perl script reads the line with its line break, which lets it swap ." at the end.
        tokenizer.tokenize(normalizer.normalize(f"{line.lower()}\n"), return_str=True)
        for line in lines
    ]


def moses_signature(language: str) -> str:
    """Describe `lowercase_and_tokenize` in the notation of sacreBLEU's signatures."""
    return f"moses:{language}|steps:lc+norm+tok+escape|sacremoses:{version('sacremoses')}"
