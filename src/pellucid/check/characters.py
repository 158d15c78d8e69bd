"""Odd features of a single line: broken characters, markup, another script."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from html.entities import html5
from zlib import crc32

from pellucid.text.reading.joining import CUT_KINDS

_CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff"
_NO_BREAK = r"\xa0\u202f"
_SPACES = r"\u1680\u2000-\u200a\u205f\u3000"
# Zero-width joiners are left out: Persian, Indic scripts and emoji need them.
_INVISIBLE = r"\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069"
# One set of characters: alternatives would make the search several times slower.
_SIGNS = re.compile(
    rf"[{_CONTROL}{_NO_BREAK}{_SPACES}{_INVISIBLE}\t\r\x80-\x9f\ufffdÃÂâÐÑ<&@#\u2581\uffed]"
)

BETWEEN_WORDS = "no-break spaces between words"

DECOMPOSED = "decomposed characters"

_ODDITIES = {
    "control characters": re.compile(f"[{_CONTROL}]"),
    "carriage returns": re.compile("\r"),
    "lost characters": re.compile("\ufffd"),
    # UTF-8 read as Latin-1 or Windows-1252, then written as UTF-8; Windows-1252 read as Latin-1.
    "mojibake": re.compile(
        r"[\x80-\x84\x86-\x9f]|[ÃÂ][\x80-\xba\xbc-\xbf\u0152\u0153\u0160\u0161\u0178\u0192\u2030\u20ac\u2122]"
        r"|â€|â\x80|(?:[ÐÑ][\x80-\xbf\u0152-\u0192\u2013-\u203a\u20ac]){2}"
    ),
    "markup": re.compile(r"</?[a-zA-Z][^<>]{0,200}>"),
    "escapes": re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,30});"),
    "tabs": re.compile("\t"),
    "no-break spaces": re.compile(f"[{_NO_BREAK}]"),
    BETWEEN_WORDS: re.compile(rf"[^\W\d_][{_NO_BREAK}][^\W\d_]"),
    "other spaces": re.compile(f"[{_SPACES}]"),
    "invisible characters": re.compile(f"[{_INVISIBLE}]"),
    **{f"cut by {name}": kind.pattern for name, kind in CUT_KINDS.items()},
}

_BY_NAME = frozenset(
    {"control characters", "no-break spaces", "other spaces", "invisible characters"}
)
"""Oddities of which the report names the characters."""

# Quotes around the field, and each quote within it doubled.
_IN_TABLE_QUOTES = re.compile(r'"(?:[^"]|"")*"')

_NUMBER = re.compile(r"\d+")
_NOT_WORD = re.compile(r"[\W_]+")
_BEYOND_LATIN = re.compile("[^\0-\u024f\u1e00-\u20cf]")
_LETTER = re.compile(r"[^\W\d_]")
_FOUR_LETTERS = re.compile(r"[^\W\d_]{4}")

# Scripts that one language uses together count as one.
_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "KATAKANA-HIRAGANA": "CJK", "BOPOMOFO": "CJK"}


def oddities(line: str) -> list[str]:
    """Name the odd features of a line's characters; nearly all lines have none."""
    apart = [DECOMPOSED] if _is_decomposed(line) else []
    if '""' in line and _IN_TABLE_QUOTES.fullmatch(line.strip()):
        apart.append("quoted")
    if _SIGNS.search(line) is None:
        return apart
    found = apart + [name for name, pattern in _ODDITIES.items() if pattern.search(line)]
    if "escapes" in found and not any(map(_is_escape, _ODDITIES["escapes"].findall(line))):
        found.remove("escapes")
    if BETWEEN_WORDS in found:
        found.remove("no-break spaces")
    return found


def _is_decomposed(line: str) -> bool:
    """Tell whether a line has letters and marks apart (NFD) that Unicode has in one character."""
    if line.isascii() or unicodedata.is_normalized("NFC", line):
        return False
    return len(unicodedata.normalize("NFC", line)) < len(line)


def odd_characters(name: str, line: str) -> list[str]:
    """List the characters that make a line odd in this way, if they should be named."""
    return _ODDITIES[name].findall(line) if name in _BY_NAME else []


def _is_escape(text: str) -> bool:
    """Tell whether a text such as ``&eacute;`` stands for a character."""
    return text[1] == "#" or text[1:] in html5


def anchors(line: str) -> int:
    """Hash the numbers and names of a line, which a translation keeps, into a set of 64 bits."""
    names = [word for word in line.split()[1:] if not word.islower() and word[0].isupper()]
    bits = 0
    for found in (*_NUMBER.findall(line), *names):
        bits |= 1 << (crc32(found.encode()) & 63)
    return bits


def normalized_words(line: str) -> str:
    """Fold case, punctuation and kinds of spaces; a line of only such characters stays."""
    if not line.isascii():
        line = unicodedata.normalize("NFKC", line)
    return _NOT_WORD.sub(" ", line.casefold()).strip() or line.strip()


def main_script(line: str) -> str:
    """Name the script of most letters, such as ``latin``; empty for fewer than four letters."""
    if _BEYOND_LATIN.search(line) is None:
        has_letters = _FOUR_LETTERS.search(line) or len(_LETTER.findall(line)) >= 4
        return "latin" if has_letters else ""
    scripts = Counter(map(_script, line))
    del scripts[""]
    if scripts.total() < 4:
        return ""
    return scripts.most_common(1)[0][0].lower()


@cache
def _script(letter: str) -> str:
    """Name a letter's script, which is the first word of its name; empty for other characters."""
    if not letter.isalpha():
        return ""
    name = unicodedata.name(letter, "").partition(" ")[0]
    return _TOGETHER.get(name, name)
