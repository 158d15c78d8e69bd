"""SRT and WebVTT: a sentence over several cues is one segment, and cues end at points in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pellucid.documents.escapes import REFERENCES, read_escapes
from pellucid.documents.markup.lexing import Token
from pellucid.documents.markup.segments import Maker, Piece, Segment, Spelled, Syntax, spell
from pellucid.documents.placeholders import add_text
from pellucid.documents.units import Source, Unit

_BLOCK = re.compile(r"[^\r\n]+(?:\r?\n[^\r\n]+)*")
_TIME_LINE = (
    r"[ \t]*((?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3})[ \t]+-->[ \t]+"
    r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}[^\r\n]*(?:\r?\n|\Z)"
)
_TIME = re.compile(rf"^{_TIME_LINE}", re.MULTILINE)
_BETWEEN = re.compile(rf"\s*\r?\n(?:[ \t]*\r?\n)+(?:[^\r\n]*\r?\n)?{_TIME_LINE}\s*")
_NUMBER = re.compile(r"\d+[ \t]*\r?(?:\n|\Z)")
_PART = re.compile(r"<[^<>\r\n]{0,200}>|\{\\[^{}\r\n]{0,200}\}")
_ENDED = re.compile(r"[.!?…。！？:;♪♫\])\"»”][\s\"'»”’)]*$")
_SPEAKER = re.compile(r"\r?\n(?=(?:</?\w[^<>\r\n]*>|\{[^{}\r\n]*\})*[-–—])")
_CUE_END = "cue end"
_MOST_CUES = 4
"""Cues of one sentence; more are rather text without punctuation."""


def _finish(segment: Segment, written: str) -> str:
    """Leave out spaces around the ends of cues, and empty lines, which would end a cue."""
    parts: list[str] = []
    for point in segment.points:
        if point.name == _CUE_END:
            before, raw, written = written.partition(spell(point.opening))
            parts += [before.lstrip() if parts else before, raw]
            parts[-2] = parts[-2].rstrip()
    return "".join((*parts, written.lstrip() if parts else written))


_PLAIN = Syntax({}, finish=_finish)
_WEB = Syntax({"&": "&amp;", "<": "&lt;", ">": "&gt;"}, finish=_finish)


@dataclass
class _Cue:
    """A cue: where its text is, and its beginning in seconds as it is written."""

    start: int
    end: int
    time: str


def read_srt(source: Source) -> Iterator[Unit]:
    """Find the sentences of an SRT file.

    Raises:
        DataError: a cue has no time.
    """
    return _read(source, replace(_PLAIN, read=lambda raw: _read_text(_cut(raw), _PLAIN)))


def read_vtt(source: Source) -> Iterator[Unit]:
    """Find the sentences of a WebVTT file; notes, styles and regions are copied.

    Raises:
        DataError: a cue has no time, or the file does not begin with WEBVTT.
    """
    if not source.text.startswith("WEBVTT"):
        source.refuse(0, "A WebVTT file must begin with WEBVTT, but does not", "Add this line.")
    return _read(source, replace(_WEB, read=lambda raw: _read_text(_cut(raw), _WEB)))


def _read(source: Source, syntax: Syntax) -> Iterator[Unit]:
    group: list[_Cue] = []
    text = source.text
    for cue in _read_cues(source, is_web=syntax.escapes != {}):
        if group and not _continues(text, group[-1], cue):
            yield _unit(source, group, syntax)
            group = []
        group.append(cue)
        if len(group) == _MOST_CUES or _SPEAKER.search(text[cue.start : cue.end]):
            yield _unit(source, group, syntax)
            group = []
    if group:
        yield _unit(source, group, syntax)


def _read_cues(source: Source, *, is_web: bool) -> Iterator[_Cue]:
    for block in _BLOCK.finditer(source.text):
        time = _TIME.search(source.text, *block.span())
        if time is None:
            is_copied = is_web and re.match(r"(?:WEBVTT|NOTE|STYLE|REGION)\b", block[0])
            is_number = not is_web and _NUMBER.fullmatch(block[0])
            if not is_copied and not is_number:
                what = "A cue must have a line with its times, 00:00:01,000 --> 00:00:02,000"
                source.refuse(block.start(), f"{what}, but has none", "Add the line.")
            continue
        own = source.text[time.end() : block.end()]
        if own.strip():
            start = time.end() + len(own) - len(own.lstrip())
            yield _Cue(start, time.end() + len(own.rstrip()), time[1])


def _plain(text: str, cue: _Cue) -> str:
    return _PART.sub("", text[cue.start : cue.end]).strip()


def _continues(text: str, one: _Cue, other: _Cue) -> bool:
    """Tell whether a sentence continues in the next cue."""
    is_next = _BETWEEN.fullmatch(text, one.end, other.start)
    is_new = _plain(text, other)[:1] in ("-", "–", "—", "[", "(", "♪", "♫")
    return bool(is_next) and not is_new and not _ENDED.search(_plain(text, one))


def _cut(raw: str) -> list[tuple[str, str]]:
    """Cut a written segment into the texts of cues and what is between them."""
    parts, place = [], 0
    for match in _BETWEEN.finditer(raw):
        parts.append((raw[place : match.start()], match[0]))
        place = match.end()
    return [*parts, (raw[place:], "")]


def _unit(source: Source, group: list[_Cue], syntax: Syntax) -> Unit:
    """Make a unit of cues that share a sentence, or of one whose lines are of several speakers."""
    text, first, last = source.text, group[0], group[-1]
    pieces: list[Piece] = []
    if len(group) == 1:
        place = first.start
        for match in _SPEAKER.finditer(text, first.start, first.end):
            pieces += [_read_text([(text[place : match.start()], "")], syntax), match[0]]
            place = match.end()
        pieces.append(_read_text([(text[place : first.end], "")], syntax))
    else:
        ends = [*(cue.start for cue in group[1:]), 0]
        parts = [
            (text[cue.start : cue.end], text[cue.end : end] if end else "")
            for cue, end in zip(group, ends, strict=True)
        ]
        pieces.append(_read_text(parts, syntax))
    return Unit(first.time, first.start, last.end, pieces)


def _read_text(parts: list[tuple[str, str]], syntax: Syntax) -> Segment:
    """Read the texts of cues, and what is between them, as one segment."""
    maker = Maker(syntax)
    for raw, between in parts:
        place = 0
        for match in _PART.finditer(raw):
            add_text(maker, _spelled(raw[place : match.start()], syntax))
            maker.add_tag(_token(raw, match), [match[0]])
            place = match.end()
        add_text(maker, _spelled(raw[place:], syntax))
        if between:
            maker.add_space()
            maker.add_tag(Token("end", "", _CUE_END), [between])
    return maker.take()


def _token(raw: str, match: re.Match[str]) -> Token:
    name = re.match(r"</?([a-z]+)", match[0])
    if name is None:
        return Token("void", match[0])
    if match[0].startswith("</"):
        return Token("end", match[0], name[1])
    return Token("start" if f"</{name[1]}" in raw[match.end() :] else "void", match[0], name[1])


def _spelled(raw: str, syntax: Syntax) -> Spelled:
    """Read the references of WebVTT; SRT has none."""
    return read_escapes(raw, escapes=REFERENCES)[1] if syntax.escapes else Spelled(raw)
