"""Sentence splitting, by rules that hold for many languages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from pellucid.languages.letters import is_unspaced

# Every character that may end a sentence.
_MARK = re.compile(r"[.!?…。！？｡．؟۔।॥။።፧։។\u037e;]")

# The end of a sentence: its marks, and the closing quotation marks and brackets after them. Marks
# that open a quotation in one language close it in another; French puts a space before ».
_END = re.compile(
    r"""(?P<marks>[.!?…。！？｡．؟۔।॥။።፧։។]+|\u037e|(?<=[\u0370-\u03ff\u1f00-\u1fff]);)"""
    r"""(?:["'”’»›)\]」』】）》〉]|[“‘«‹](?=\s|\Z)|[ \u00a0\u202f][»›](?!\w))*"""
)
_WIDE_MARKS = frozenset("。！？｡")
_WIDE_ENDS = _WIDE_MARKS | frozenset("」』】）》〉")

# The next sentence: white space, opening quotation marks and brackets, and the first character.
_NEXT = re.compile(
    r"""(?P<space>\s*)["'“„”‘‚«‹»›(\[¿¡「『【（《〈\s–—-]*(?P<first>.?)""", re.DOTALL
)
_BEGINNINGS = frozenset(("Lu", "Lt", "Lo", "Nd", "Nl", "No", "Sc", "So"))

# Abbreviations whose full stop does not end a sentence: titles, for example. Those in lower case
# also occur with a capital.
_ABBREVIATIONS = (
    "Mr Mrs Ms Dr Prof Rev Hon Gen Col Maj Capt Lt Sgt Sen Rep Gov Pres St Ste Mt Ft "
    "MM Mme Mmes Mlle Mlles Mgr Pr Hr Fr Frl Dipl Ing Mag Mio Mrd Sr Sra Srta Dra Dña Ud Uds "
    "Sig Dott Avv vs cf ca approx env bzw bspw ggf vgl sog evtl inkl geb dt engl franz "
    "dhr mevr drs dr EE TP ul al prof mgr inż hab e.g i.e z.B d.h u.a m.in o.a "
    "ул пр пл пер им гр тов акад"
)
# Abbreviations only before a number.
_BEFORE_NUMBERS = (
    "no nos nr art arts fig figs p pp vol vols ch chap sec eq ed abb abs abschn bd str tel núm "
    "pág págs jan feb febr mar apr jun jul aug sep sept oct okt nov dec dez janv févr avr juil déc"
)
_ALWAYS = frozenset(_ABBREVIATIONS.split())
_NUMBERED = frozenset(_BEFORE_NUMBERS.split())
# Words that follow an abbreviation such as "p.m." or an initial only if a sentence begins there.
_SENTENCE_STARTS = (
    "The He She It They We You I This That These Those There Then But And So My Our His Her Their "
    "When What Who Why How Where Il Elle Ils Elles On Nous Vous Je Mais Puis Er Sie Es Wir Ich "
    "Dann Aber Ella Ellos Pero Entonces Lui Lei Loro Ma Poi Он Она Они Мы Это Но"
)
_STARTERS = frozenset(_SENTENCE_STARTS.split())
_FIRST_WORD = re.compile(r"[^\W\d_]+")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")
_LAST_WORD = re.compile(r"[^\s\"'“„«‹»›(\[’]*\Z")
# Limits of looking back. Without them a long line would take quadratic time.
_LONGEST_WORD = 20
_LONGEST_QUOTATION = 500


def split_sentences(text: str) -> list[str]:
    """Cut a text into its sentences.

    A sentence ends at a full stop, a question or exclamation mark or an ellipsis (with the closing
    quotation marks and brackets after it), if white space and the beginning of a sentence follow:
    an opening mark, a digit, or any letter except a lower-case one, which counts only in a text
    without capitals. The marks of Chinese and Japanese need no white space, unless they are
    followed by a closing quotation mark. A full stop does not end a sentence after a common
    abbreviation, nor after a number of one or two digits (``am 3. Mai``); after a single letter or
    a word with full stops inside (``5 p.m.``) it does only if a word such as *The* or *She*
    follows. In doubt two sentences stay together.

    Args:
        text: any text.

    Returns:
        The sentences without white space around them; nothing else of the text is lost.
    """
    return [text[start:end] for start, end in _spans(text)]


def may_be_several(text: str) -> bool:
    """Tell quickly whether a text may have several sentences: a mark stands before its end."""
    return _MARK.search(text, 0, len(text.rstrip()) - 1) is not None


def count_sentences(text: str) -> int:
    """Count the sentences of a text, as `split_sentences` cuts it."""
    return sum(1 for _ in _spans(text)) if may_be_several(text) else int(bool(text.strip()))


def join_parts(parts: Sequence[str], gaps: Sequence[str | None]) -> str:
    """Join the parts of a text.

    Args:
        parts: sentences, or groups of them.
        gaps: what stands before, between and after them; None between two sentences of one line,
            which `gap_between` joins.
    """
    text = gaps[0] or ""
    line = ""
    for part, gap in zip(parts, gaps[1:], strict=True):
        line += gap_between(line, part) + part
        if gap is not None:
            text += line + gap
            line = ""
    return text + line


def gap_between(before: str, after: str) -> str:
    """Return what stands between two sentences: a space, or nothing after a wide full stop."""
    # A wide mark brings its own white space.
    if not before or not after or before[-1] in _WIDE_ENDS:
        return ""
    return "" if _is_wide(before[-1]) and _is_wide(after[0]) else " "


def _is_wide(letter: str) -> bool:
    """Tell whether a character is one of Chinese or Japanese, which have no spaces."""
    return unicodedata.east_asian_width(letter) in "WF" and is_unspaced(letter)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each sentence, without white space around it."""
    start = 0
    is_lower = text.islower()
    for match in _END.finditer(text):
        if _is_end(text, match, is_lower=is_lower):
            yield from _trimmed(text, start, match.end())
            start = match.end()
    yield from _trimmed(text, start, len(text))


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the span without white space around it, unless it is empty."""
    piece = text[start:end]
    if length := len(piece.strip()):
        start += len(piece) - len(piece.lstrip())
        yield start, start + length


def _is_end(text: str, match: re.Match[str], *, is_lower: bool) -> bool:
    """Tell whether a sentence ends with these marks."""
    following = _NEXT.match(text, match.end())
    if following is None or not following["first"]:
        return True
    first = following["first"]
    if not _WIDE_MARKS.isdisjoint(match["marks"]):
        # After a closing quotation mark, the sentence around the quotation may continue, unless
        # the quotation was its last part.
        is_quotation = match.end() > match.end("marks")
        return not is_quotation or following.start("first") > match.end() or _is_last(text, match)
    # Without white space the mark is inside a number or a name: 3.14, example.org.
    if not (following["space"] or is_unspaced(first)):
        return False
    if unicodedata.category(first) not in _BEGINNINGS and not (
        match["marks"] in ".!?" and first.isalpha() and is_lower
    ):
        return False
    # Only a single full stop can belong to an abbreviation.
    if match[0] != ".":
        return True
    word = _FIRST_WORD.match(text, following.start("first"))
    next_word = word[0] if word else ""
    return not _is_abbreviated(text, match.start(), first, next_word, is_lower=is_lower)


def _is_last(text: str, match: re.Match[str]) -> bool:
    """Tell whether a quotation that ends here is the last part of its sentence: 他说：“…。”."""
    start = max(0, match.start() - _LONGEST_QUOTATION)
    opening = max(text.rfind(mark, start, match.start()) for mark in "“「『")
    return opening > 0 and text[opening - 1] in "：:，、"


def _is_abbreviated(text: str, end: int, first: str, next_word: str, *, is_lower: bool) -> bool:
    """Tell whether the full stop at this place belongs to the word before it.

    Args:
        text: the text.
        end: the place of the full stop.
        first: the first letter or digit after it.
        next_word: the word that begins with it.
        is_lower: True if the text has no capitals.
    """
    before = _LAST_WORD.search(text[max(0, end - _LONGEST_WORD) : end])
    word = before[0] if before else ""
    if word.isdecimal():
        return len(word) <= 2 and first.isalpha()
    if word in _ALWAYS or word[:1].lower() + word[1:] in _ALWAYS:
        return True
    if is_lower:  # the lists have capitals
        next_word = next_word.capitalize()
        if word.capitalize() in _ALWAYS:
            return True
    if first.isdecimal() and word.lower() in _NUMBERED:
        return True
    is_initial = len(word) == 1 and word.isalpha() and not is_unspaced(word)
    return (is_initial or _DOTTED.fullmatch(word) is not None) and next_word not in _STARTERS
