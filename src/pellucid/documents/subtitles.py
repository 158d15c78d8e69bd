"""SRT and WebVTT: a sentence over several cues is one segment, and cues end at points in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain as join
from typing import NamedTuple

from pellucid.documents.escapes import REFERENCES, Strings
from pellucid.documents.markup.lexing import Token
from pellucid.documents.markup.segments import MARKUP, Maker, Piece, Segment, Syntax, spell
from pellucid.documents.placeholders import add_text
from pellucid.documents.units import Source, Unit
from pellucid.languages.letters import is_unspaced

_BLOCK = re.compile(r"[^\r\n]+(?:\r?\n[^\r\n]+)*")
_CLOCK = r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}"
_TIME = rf"[ \t]*+({_CLOCK})[ \t]*+-->[ \t]*+({_CLOCK})[^\r\n]*+(?:\r?\n|\Z)"
_TIME_LINE = re.compile(rf"^{_TIME}", re.MULTILINE)
_SPACES = re.compile(r"\s++")
_EMPTY_LINE = re.compile(r"\n[ \t]*+\r?\n")
_HEAD = re.compile(rf"(?:[^\r\n]*+\r?\n)?{_TIME}\s*+")
"""The lines of a cue before its text."""
_TAG = r"<[^<>\r\n]*>|\{\\[^{}\r\n]*\}"
_TAGS = rf"(?:{_TAG})*+"
_STOP = rf"[.!?…。！？｡．؟۔।॥။።፧։།♪♫](?:[ \t\"'»”’)\]」』]|{_TAG})*+"
# Before other signs at the end, of several quotes the last one is enough.
_ENDED = re.compile(rf"(?:{_STOP}|[:;\])\"»”][\s'’]*+(?:<[^<>]*+>\s*+)*+)\Z")
_SPEAKER = re.compile(rf"(?:\A|\r?\n){_TAGS}[-–—]\s*")
_SIGN = re.compile(rf"{_TAG}|.", re.DOTALL)
_VOICE = re.compile(r"<v[.\s][^<>\r\n]*>")
_CUTS = re.compile(
    rf"{_STOP}(?P<stop>\r?\n(?:{_TAGS}[-–—]\s*)?)|(?P<dash>{_SPEAKER.pattern})"
    rf"|(?P<voice>\r?\n(?=(?:(?!<v[.\s])(?:{_TAG}))*+<v[.\s])"
    r"|(?:(?<=</v>)|(?<=[^>\s]))[ \t]*+(?=<v[.\s]))"
)
"""What is between two sentences of a cue: a line's end after a stop, or what precedes a speaker."""
# A dash, a bracket or a note begins something new: a speaker, a sound or a song.
_NEW = re.compile(rf"{_TAGS}[-–—\[(♪♫]")
_CUE_END = "cue end"
_MOST_CUES = 4
_MOST_LETTERS = 160
"""Cues of one sentence, or letters if they are short; more are rather text without punctuation."""
_MOST_SECONDS = 3.0
"""The longest pause in a sentence: speakers rarely wait so long, and viewers forget its start."""


class _Cue(NamedTuple):
    """Where a cue's text begins and ends, and when it is shown."""

    start: int
    end: int
    time: str
    until: str


def _finish(segment: Segment, written: str) -> str:
    """Leave out the spaces around the ends of cues, each of which gets a word.

    If there are fewer words than cues, nothing is written, so that the source stays.
    """
    raws = [spell(point.opening) for point in segment.points if point.name == _CUE_END]
    if not raws:
        return written
    words = [list[str]()]
    bounds = list[int]()
    last = ""
    ends = [*raws, ""]
    for part in _split(written, ends):
        is_end = part == ends[len(bounds)]
        # Scripts without spaces may be cut between any two letters.
        if last and (is_end or part.isspace() or (is_unspaced(last) and is_unspaced(part[0]))):
            words.append([])
            last = ""
        elif is_end and len(words) > 1:  # Tags and spaces after the last word.
            trailing = words.pop()
            words[-1] += trailing
            words.append([])
        if is_end:
            bounds.append(len(words) - 1)
        else:
            words[-1].append(part)
            last = part if len(part) == 1 and not part.isspace() else last
    if bounds[-1] <= len(raws):
        return ""
    parts = list[str]()
    first = 0
    for number, (raw, bound) in enumerate(zip(ends, bounds, strict=True)):
        # Each cue gets a word, and leaves one for each cue after it.
        end = min(max(bound, first + 1), bounds[-1] - len(raws) + number)
        parts += ["".join(join.from_iterable(words[first:end])).strip(), raw]
        first = end
    text = "".join(join.from_iterable(words))
    before = text[: len(text) - len(text.lstrip())]
    after = text[len(text.rstrip()) :]
    return "".join((before, *parts, after))


def _split(written: str, ends: Sequence[str]) -> Iterator[str]:
    """Cut a written text into tags, characters, and what is at the ends of cues in their order."""
    place = 0
    number = 0
    while place < len(written):
        if ends[number] and written.startswith(ends[number], place):
            part = ends[number]
            number += 1
        else:
            match = _SIGN.match(written, place)
            assert match is not None
            part = match[0]
        yield part
        place += len(part)
    yield ""


# SRT has no references: & and < are written as they are.
_SRT: Syntax = Syntax({}, finish=_finish, read=lambda raw: _read_text(raw, _SRT))
_VTT: Syntax = replace(_SRT, escapes=MARKUP, read=lambda raw: _read_text(raw, _VTT))


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
    text = source.text
    group = list[_Cue]()
    for cue in _read_cues(source, is_web=syntax is _VTT):
        if group and not _continues(text, group, cue):
            yield _unit(text, group, syntax)
            group = []
        group.append(cue)
    if group:
        yield _unit(text, group, syntax)


def _read_cues(source: Source, *, is_web: bool) -> Iterator[_Cue]:
    copied = re.compile(r"(?:WEBVTT|NOTE|STYLE|REGION)\b" if is_web else r"\d+\s*\Z")
    last: _Cue | None = None
    for block in _BLOCK.finditer(source.text):
        time = _TIME_LINE.search(source.text, *block.span())
        if time is not None:
            own = source.text[time.end() : block.end()]
            if own.strip():
                start = time.end() + len(own) - len(own.lstrip())
                last = _Cue(start, time.end() + len(own.rstrip()), time[1], time[2])
                yield last
        elif last and "-->" not in block[0] and not copied.match(block[0]):
            # Players show what comes after an empty line in a cue.
            yield _Cue(block.start(), block.end(), last.time, last.until)
        elif not copied.match(block[0]):
            what = "A cue must have a line with its times, 00:00:01,000 --> 00:00:02,000"
            source.refuse(block.start(), f"{what}, but has none", "Add the line.")


def _continues(text: str, group: Sequence[_Cue], other: _Cue) -> bool:
    """Tell whether the sentence of some cues continues in the next one."""
    one = group[-1]
    letters = sum(cue.end - cue.start for cue in (*group, other))
    first = text[one.start : one.end]
    second = text[other.start : other.end]
    start = re.match(_TAGS, second)
    voices = _VOICE.findall(start[0] if start else "")
    cuts = [match.end(match.lastgroup or 0) for match in _CUTS.finditer(first)]
    return (
        _match_between(text, one.end, other.start) == other.start
        and (len(group) < _MOST_CUES or letters <= _MOST_LETTERS)
        # Cues that overlap for long do not share a sentence either.
        and abs(_seconds(other.time) - _seconds(one.until)) <= _MOST_SECONDS
        and not (_SPEAKER.search(first) or _NEW.match(second) or _ENDED.search(first))
        # The cues of one speaker may each name the voice again.
        and (not voices or voices == _VOICE.findall(text, group[0].start, one.end)[-1:])
        # A last line with nothing but tags has no word that could continue.
        and all(re.sub(_TAG, "", one).strip() for one in (first[max(cuts, default=0) :], second))
    )


def _match_between(text: str, start: int, stop: int) -> int | None:
    """Return the end of what is between two cues, from the spaces after the first one on."""
    spaces = _SPACES.match(text, start, stop)
    if spaces is None or not _EMPTY_LINE.search(text, *spaces.span()):
        return None
    line = text.rfind("\n", start, spaces.end()) + 1
    head = _HEAD.match(text, line, stop)
    return head.end() if head else None


def _find_between(text: str) -> Iterator[tuple[int, int]]:
    """Find what is between cues: spaces with an empty line, a number, and the times of a cue."""
    place = 0
    while spaces := _SPACES.search(text, place):
        place = spaces.end()
        end = _match_between(text, spaces.start(), len(text))
        if end is not None:
            yield spaces.start(), end
            place = end


def _seconds(time: str) -> float:
    *hours, minutes, seconds = time.replace(",", ".").split(":")
    # WebVTT may leave out the hours: `float()` is 0.
    return 3600 * float(*hours) + 60 * float(minutes) + float(seconds)


def _unit(text: str, group: Sequence[_Cue], syntax: Syntax) -> Unit:
    """Make a unit of cues that share a sentence, or of one with several sentences or speakers."""
    place = group[0].start
    pieces = list[Piece]()
    for cue in group:
        for match in _CUTS.finditer(text[cue.start : cue.end]):
            start, end = (cue.start + one for one in match.span(match.lastgroup or 0))
            if place < start:
                pieces.append(_read_text(text[place:start], syntax))
            pieces.append(text[start:end])
            place = end
    end = group[-1].end
    return Unit(group[0].time, group[0].start, end, [*pieces, _read_text(text[place:end], syntax)])


def _read_text(raw: str, syntax: Syntax) -> Segment:
    """Read the texts of cues, and what is between them, as one segment."""
    strings = Strings(syntax.escapes, REFERENCES if syntax.escapes else r"(?!)")
    maker = Maker(syntax)
    place = 0
    for start, end in _find_between(raw):
        add_text(maker, strings.read(raw[place:start])[1], has_copied_tags=False)
        # The model reads the cues as one sentence, in which their ends are spaces.
        maker.add_space()
        maker.add_tag(Token("end", "", _CUE_END), [raw[start:end]])
        place = end
    add_text(maker, strings.read(raw[place:])[1], has_copied_tags=False)
    return maker.take()
