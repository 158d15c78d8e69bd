"""SRT and WebVTT: a sentence over several cues is one segment, and cues end at points in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pellucid.documents.escapes import REFERENCES, Strings
from pellucid.documents.markup.lexing import Token
from pellucid.documents.markup.segments import Maker, Piece, Segment, Syntax, spell
from pellucid.documents.placeholders import add_text
from pellucid.documents.units import Source, Unit

_BLOCK = re.compile(r"[^\r\n]+(?:\r?\n[^\r\n]+)*")
_TIME = (
    r"[ \t]*((?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3})[ \t]+-->[ \t]+"
    r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}[^\r\n]*(?:\r?\n|\Z)"
)
_TIME_LINE = re.compile(rf"^{_TIME}", re.MULTILINE)
_BETWEEN = re.compile(rf"\s*\r?\n(?:[ \t]*\r?\n)+(?:[^\r\n]*\r?\n)?{_TIME}\s*")
_TAGS = r"(?:<[^<>\r\n]*>|\{\\[^{}\r\n]*\})*"
_ENDED = re.compile(r"[.!?…。！？:;♪♫\])\"»”][\s\"'»”’)]*(?:<[^<>]*>\s*)*$")
_SPEAKER = re.compile(rf"(?:\A|\r?\n){_TAGS}[-–—]\s*")
_NEW = re.compile(rf"{_TAGS}[-–—\[(♪♫]")
_CUE_END = "cue end"
_MOST_CUES = 4
"""Cues of one sentence; more are rather text without punctuation."""

Cue = tuple[int, int, str]
"""Where a cue's text begins and ends, and its time."""


def _finish(segment: Segment, written: str) -> str:
    """Leave out the spaces around the ends of cues."""
    parts: list[str] = []
    for point in segment.points:
        if point.name == _CUE_END:
            before, raw, written = written.partition(spell(point.opening))
            parts += [(before.lstrip() if parts else before).rstrip(), raw]
    return "".join((*parts, written.lstrip() if parts else written))


_SRT: Syntax = Syntax({}, finish=_finish, read=lambda raw: _read_text(raw, _SRT))
_VTT: Syntax = replace(
    _SRT,
    escapes={"&": "&amp;", "<": "&lt;", ">": "&gt;"},
    read=lambda raw: _read_text(raw, _VTT),
)


def read_srt(source: Source) -> Iterator[Unit]:
    """Find the sentences of an SRT file.

    Raises:
        DataError: a cue has no time.
    """
    return _read(source, _SRT)


def read_vtt(source: Source) -> Iterator[Unit]:
    """Find the sentences of a WebVTT file; notes, styles and regions are copied.

    Raises:
        DataError: a cue has no time, or the file does not begin with WEBVTT.
    """
    if not source.text.startswith("WEBVTT"):
        source.refuse(0, "A WebVTT file must begin with WEBVTT, but does not", "Add this line.")
    return _read(source, _VTT)


def _read(source: Source, syntax: Syntax) -> Iterator[Unit]:
    text, group = source.text, list[Cue]()
    for cue in _read_cues(source, is_web=syntax is _VTT):
        if group and (len(group) == _MOST_CUES or not _continues(text, group[-1], cue)):
            yield _unit(text, group, syntax)
            group = []
        group.append(cue)
    if group:
        yield _unit(text, group, syntax)


def _read_cues(source: Source, *, is_web: bool) -> Iterator[Cue]:
    copied = re.compile(r"(?:WEBVTT|NOTE|STYLE|REGION)\b" if is_web else r"\d+\s*\Z")
    for block in _BLOCK.finditer(source.text):
        time = _TIME_LINE.search(source.text, *block.span())
        if time is not None:
            own = source.text[time.end() : block.end()]
            if own.strip():
                start = time.end() + len(own) - len(own.lstrip())
                yield start, time.end() + len(own.rstrip()), time[1]
        elif not copied.match(block[0]):
            what = "A cue must have a line with its times, 00:00:01,000 --> 00:00:02,000"
            source.refuse(block.start(), f"{what}, but has none", "Add the line.")


def _continues(text: str, one: Cue, other: Cue) -> bool:
    """Tell whether a sentence continues in the next cue."""
    first, second = text[one[0] : one[1]], text[other[0] : other[1]]
    is_next = _BETWEEN.fullmatch(text, one[1], other[0]) is not None
    has_speakers = _SPEAKER.search(first) or _NEW.match(second)
    return is_next and not has_speakers and not _ENDED.search(first)


def _unit(text: str, group: list[Cue], syntax: Syntax) -> Unit:
    """Make a unit of cues that share a sentence, or of one whose lines are of several speakers."""
    (start, _, time), (_, end, _) = group[0], group[-1]
    place, pieces = start, list[Piece]()
    for match in _SPEAKER.finditer(text[start:end]):
        if place < start + match.start():
            pieces.append(_read_text(text[place : start + match.start()], syntax))
        pieces.append(match[0])
        place = start + match.end()
    return Unit(time, start, end, [*pieces, _read_text(text[place:end], syntax)])


def _read_text(raw: str, syntax: Syntax) -> Segment:
    """Read the texts of cues, and what is between them, as one segment."""
    strings = Strings(syntax.escapes, REFERENCES if syntax.escapes else r"(?!)")
    maker, place = Maker(syntax), 0
    for match in _BETWEEN.finditer(raw):
        add_text(maker, strings.read(raw[place : match.start()])[1], has_copied_tags=False)
        maker.add_space()
        maker.add_tag(Token("end", "", _CUE_END), [match[0]])
        place = match.end()
    add_text(maker, strings.read(raw[place:])[1], has_copied_tags=False)
    return maker.take()
