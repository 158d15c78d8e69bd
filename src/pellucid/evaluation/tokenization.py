"""How text is cut into words: by BLEU's tokenizer for its language and script, or by Moses."""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU

from pellucid.errors import ConfigurationError, PellucidError, suggestion
from pellucid.languages.codes import short_code

DEFAULT = "13a"
"""sacreBLEU's tokenizer for scripts that have spaces between words."""

TOKENIZERS = tuple(sorted(set(BLEU.TOKENIZERS) - {"spm"}))
"""sacreBLEU's names; ``spm`` is its old name of ``flores101``."""

CHINESE = frozenset({"zh", "yue", "lzh", "wuu", "hak", "nan", "gan", "hsn"})

PYTHON_EXTRAS = {"ja-mecab": "sacrebleu[ja]", "ko-mecab": "sacrebleu[ko]"}
DOWNLOAD_SECONDS = 30.0

_KANA = "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HAN = "\u3005-\u3007\u3100-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
# Thai, Lao, Tibetan, Burmese, Khmer, Tai Le, New Tai Lue, Tai Tham, Javanese, Tai Viet.
_OTHERS = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\ua980-\ua9df\ua9e0-\ua9ff"
    "\uaa60-\uaadf"
)

LARGE_SHARE = 0.3
"""The share of words above which a script decides; a letter without spaces counts as a word."""

KANA_SHARE = 0.1
"""The share of kana above which text with Chinese characters is Japanese."""

LINES_LOOKED_AT = 1000


def choose_tokenizer(
    references: Sequence[str], language: str = "", *, may_use_mecab: bool = True
) -> str:
    """Choose sacreBLEU's tokenizer for a target language.

    The default, ``13a``, cuts at spaces and punctuation. A text without spaces is one word a line
    to it, and BLEU counts sequences of four words.

    Args:
        references: translations made by people; their script decides.
        language: the code of their language, ``""`` if it is unknown. It tells Chinese from
            Japanese in text without kana, and ``zh`` suits Chinese with any share of Latin.
        may_use_mecab: choose ``ja-mecab`` and ``ko-mecab`` if they are installed. Without them,
            or if False, Japanese and Korean are counted in characters.

    Returns:
        ``zh``, ``ja-mecab``, ``ko-mecab``, ``char`` for other scripts without spaces, or ``13a``.
    """
    code = short_code(language)
    if code in CHINESE:
        return "zh"
    counts = _count_scripts(references)
    east_asian = counts["kana"] + counts["han"]
    least = LARGE_SHARE * sum(counts.values())
    if counts["hangul"] > max(least, east_asian, counts["others"]):
        return "ko-mecab" if may_use_mecab and _is_installed("ko-mecab") else "char"
    if counts["others"] + east_asian <= least:
        return DEFAULT
    if counts["others"] > east_asian:
        return "char"
    if code == "ja" or counts["kana"] > KANA_SHARE * east_asian:
        return "ja-mecab" if may_use_mecab and _is_installed("ja-mecab") else "char"
    return "zh"


def has_no_spaces(references: Sequence[str]) -> bool:
    """Tell whether a text is in a script without spaces between words; Korean has spaces."""
    counts = _count_scripts(references)
    return counts["kana"] + counts["han"] + counts["others"] > max(
        LARGE_SHARE * sum(counts.values()), counts["hangul"]
    )


def check_tokenizer(name: str) -> None:
    """Refuse a tokenizer that sacreBLEU does not have, or that cannot be used here.

    Raises:
        ConfigurationError: its name is unknown, or it is not installed.
        PellucidError: its vocabulary cannot be downloaded.
    """
    make_bleu(name)


def make_bleu(tokenizer: str, *, has_short_lines: bool = False) -> BLEU:
    """Make sacreBLEU's BLEU.

    Args:
        tokenizer: one of `TOKENIZERS`.
        has_short_lines: count only sequences as long as the longest line (effective order).

    Raises:
        ConfigurationError: the tokenizer's name is unknown, or it is not installed.
        PellucidError: its vocabulary cannot be downloaded.
    """
    if tokenizer not in TOKENIZERS:
        raise ConfigurationError(
            f"The tokenizer of BLEU must be one of sacreBLEU's, but is {tokenizer!r} (tokenize). "
            f"{suggestion(tokenizer, TOKENIZERS)}"
        )
    try:
        # `force` silences advice about tokenized text that names a parameter users do not have.
        with _short_wait():
            return BLEU(tokenize=tokenizer, force=True, effective_order=has_short_lines)
    except (ImportError, RuntimeError, AssertionError, OSError, SystemExit) as error:
        # SystemExit too: sacreBLEU ends the program if SSL fails or a download is damaged.
        if tokenizer in PYTHON_EXTRAS:
            raise ConfigurationError(
                f"The tokenizer {tokenizer} needs packages that are not installed. Install them "
                f"with: pip install '{PYTHON_EXTRAS[tokenizer]}', or use char."
            ) from error
        raise PellucidError(
            f"The tokenizer {tokenizer} needs a vocabulary that sacreBLEU downloads once, but "
            f"that failed: {' '.join(str(error).split())} ({_vocabulary(tokenizer)}). Try again "
            "with a network, delete the file if it is damaged, or use char."
        ) from error


def _vocabulary(tokenizer: str) -> str:
    """Name the file that sacreBLEU downloads."""
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    return str(Path(SACREBLEU_DIR) / "models" / Path(SPM_MODELS[tokenizer]["url"]).name)


@contextmanager
def _short_wait() -> Iterator[None]:
    """Bound the wait for a network: sacreBLEU sets no limit."""
    before = socket.getdefaulttimeout()
    # Its download takes no limit as an argument, so the whole process gets one for a moment.
    socket.setdefaulttimeout(DOWNLOAD_SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


@cache
def _is_installed(tokenizer: str) -> bool:
    try:
        make_bleu(tokenizer)
    except PellucidError:
        return False
    return True


def _count_scripts(lines: Sequence[str]) -> Counter[str]:
    """Count letters of scripts without spaces, and words of the others, in some of the lines."""
    counts: Counter[str] = Counter()
    # Lines from all over the text, whose beginning may be unlike the rest.
    for line in lines[:: max(1, len(lines) // LINES_LOOKED_AT)]:
        # Such a line holds only words, and needs no pattern.
        if line.isascii():
            counts["words"] += len(line.split())
        else:
            counts.update(match.lastgroup or "" for match in _scripts().finditer(line))
    return counts


@cache
def _scripts() -> re.Pattern[str]:
    return re.compile(
        f"(?P<kana>[{_KANA}])|(?P<han>[{_HAN}])|(?P<others>[{_OTHERS}])|(?P<hangul>[{_HANGUL}]+)"
        rf"|(?P<words>[^\W_{_KANA}{_HAN}{_OTHERS}{_HANGUL}]+)"
    )


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

    For comparison with published lower-cased, tokenized figures: ``'`` becomes ``&apos;``, and
    hyphens are not split. In this order, and with the two details of the Perl scripts that the
    code explains, the English, French and German sides of Multi30k come out exactly as its
    authors published them.

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
            f"but is {language!r} (--moses). "
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
