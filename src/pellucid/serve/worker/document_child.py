"""The process that reads and writes clients' documents: it can be stopped in the middle.

It keeps nothing between two tasks: a document is read again when it is written, so that the process
may end at any time.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from pellucid.documents.formats import FORMATS
from pellucid.documents.markup.segments import Segment
from pellucid.documents.segment_writing import GivenTranslation, write_segment
from pellucid.documents.units import How, Unit
from pellucid.errors import DataError
from pellucid.machine.processes import Take, serve_parent

# Each point is a tenth less of a processor that others ask for as well: about a third is left.
NICE = 5

MOST_REASONS = 1000
"""Texts to look at that an answer names."""


def serve_documents(descriptor: int, seconds: float, most_bytes: int, memory_code: int) -> NoReturn:
    """Read and write documents until the server ends.

    Args:
        descriptor: of the connection to the server.
        seconds: processor time of one task; the system ends the process after it.
        most_bytes: memory of the process.
        memory_code: the exit code that says that this was not enough.
    """
    _yield_to_server(most_bytes)

    def answer(take: Take) -> tuple[bool, Any]:
        task = json.loads(take())
        _limit_time(seconds)
        try:
            return True, _do(**task)
        except DataError as error:
            return False, str(error)
        except MemoryError:
            # To write a message would take memory that there may not be.
            os._exit(memory_code)

    serve_parent(descriptor, lambda: answer)


def _yield_to_server(most_bytes: int) -> None:
    """Bound the memory, and leave processor and memory to the server where both are short."""
    # A traceback may hold a client's text; the server logs none.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    os.nice(NICE)
    # Memory that is written to, and no reserved addresses, of which threads take much. Some systems
    # refuse to bound it.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    # Linux ends this process before the server if the memory of the machine or container runs out.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _limit_time(seconds: float) -> None:
    """Let the system end this process after so much more processor time, whatever it does."""
    until = math.ceil(time.process_time() + seconds)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (until, hard))


def _do(
    text: str, form: str, languages: Sequence[str], translations: list[Any] | None = None
) -> Any:
    """Read a document's segments, or with their translations write it; archives are in Base64."""
    source, target = languages
    how = How("the file", (source, target))
    kind = FORMATS[form]
    content = b""
    if kind.is_zip:
        content = base64.b64decode(text)
        text = kind.unpack(content, how)
    parts = list(kind.read(text, how))
    units = [one for one in parts if isinstance(one, Unit)]
    segments = [one for unit in units for one in unit.segments]
    distinct: dict[tuple[object, ...], Segment] = {}
    for one in segments:
        # Menus and tables repeat their texts.
        distinct.setdefault(_key(one), one)
    if translations is None:
        return [_describe(one) for one in distinct.values()]
    numbers = {key: number for number, key in enumerate(distinct)}
    for unit in units:
        unit.is_marked = True
        for one in unit.segments:
            source_words, answers, doubt = translations[numbers[_key(one)]]
            # Without an answer the text cannot be translated: the source stays.
            if answers:
                write_segment(one, [_given(*answer) for answer in answers], source_words)
            one.reason = one.reason or doubt
    written = "".join(map(str, parts))
    if kind.is_zip:
        written = base64.b64encode(kind.pack(content, written)).decode()
    unsure = [one for one in units if one.reason]
    reasons = [(one.line, one.key, one.reason) for one in unsure[:MOST_REASONS]]
    places = [(numbers[_key(one)], one.written is not None) for one in segments]
    return written, reasons, places


def _given(text: str, words: Sequence[str], links: list[list[int]] | None) -> GivenTranslation:
    return GivenTranslation(text, words, None if links is None else [(i, j) for i, j in links])


def _key(segment: Segment) -> tuple[object, ...]:
    return segment.has_tags, segment.is_wide, *segment.key


def _describe(segment: Segment) -> tuple[str, bool, bool, bool, list[tuple[int, int]]]:
    """Take what the server needs to know to have a segment translated, as `Described` has it."""
    copies = (one for one in segment.elements.values() if one.is_copy)
    return (
        segment.text,
        segment.has_tags,
        segment.is_wide,
        segment.syntax.has_markup,
        [(one.start, one.end) for one in copies],
    )
