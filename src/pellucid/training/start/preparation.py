"""Preparing a large text: what is being done, how long it takes, and the check next to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from pellucid.config import DataConfig, validate
from pellucid.errors import PellucidError
from pellucid.machine.hardware import threads_in_use
from pellucid.machine.processes import Child, end_all
from pellucid.text.reading.sentence_pairs import read_pairs, resolve_folder

LARGE = 20_000_000
"""Bytes of training text from which its preparation is described and shared among processes."""

SAMPLE = 5_000
SHARE_OF_READING = 0.06
"""Reading takes this share of the time to prepare text, measured on 500,000 pairs."""

FIRST = 5.0
"""Seconds after which a stage says how far it is."""

EVERY = 15.0
"""Seconds between its later lines."""

AT_ONCE = 4096
"""Pairs that are handled together."""

Say = Callable[[str], None]
Item = TypeVar("Item")


def be_silent(_sentence: str) -> None:
    """Say nothing."""


def in_groups(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield items in groups, as many as are handled together."""
    rest = iter(items)
    while group := list(islice(rest, AT_ONCE)):
        yield group


def say_progress(items: Iterable[Item], doing: str, say: Say) -> Iterator[Item]:
    """Yield items, and say from time to time how many there were.

    Args:
        items: pairs of the text.
        doing: the stage, for the line.
        say: takes a line for people.
    """
    due = time.monotonic() + FIRST
    for number, item in enumerate(items):
        if number % AT_ONCE == 0 and time.monotonic() >= due:
            say(f"{doing}: {number:,} pairs.")
            due = time.monotonic() + EVERY
        yield item


@contextmanager
def preparing(
    values: Any, base: Path, *, is_new: bool, say: Say
) -> Iterator[Callable[[], list[str]] | None]:
    """Say how long a large text takes to prepare, and check it in another process meanwhile.

    Args:
        values: the recipe's data section as its file has it.
        base: the folder that its names start from.
        is_new: False if the text was prepared before.
        say: takes a line for people.

    Yields:
        A function that waits for the check's lines; None if training is to make the check, because
        the text is small, not usable, or there is one processor only.
    """
    children: list[Child] = []
    try:
        if is_new and (found := _large_text(values, base)):
            data, size = found
            say(_estimate(data, base, size))
            if threads_in_use() > 1:
                arguments = {"data": data.model_dump_json(), "base": str(base)}
                advice = "Train with --threads 1, which checks the text in the same process."
                children.append(Child("pellucid.check.aside:serve_check", arguments, advice=advice))
        yield (lambda: _receive(children[0])) if children else None
    finally:
        end_all(children)


def _large_text(values: Any, base: Path) -> tuple[DataConfig, int] | None:
    """Return the section, and the bytes of its training text, if it is usable and large."""
    try:
        data = validate(DataConfig, values, "the recipe")
        folder = resolve_folder(data.folder, base)
        size = sum((folder / name).stat().st_size for name in chain(*data.names("train")))
    except (PellucidError, OSError):
        return None  # Training says what is wrong.
    return (data, size) if size >= LARGE else None


def _receive(child: Child) -> list[str]:
    child.receive()
    child.send(b"")
    return [str(line) for line in child.receive()]


def _estimate(data: DataConfig, base: Path, size: int) -> str:
    """Estimate the time of preparing all training text from that of reading its first pairs."""
    began = time.monotonic()
    readable = data.model_copy(update={"on_bad_line": "skip", "split": 0})
    sample = list(islice(read_pairs(readable, "train", base), SAMPLE))
    num_bytes = sum(len(f"{pair.source}\n{pair.target}\n".encode()) for pair in sample)
    seconds = (time.monotonic() - began) / SHARE_OF_READING * size / max(1, num_bytes)
    return (
        f"Preparing {size / 1e6:,.0f} MB of text takes about {max(1, round(seconds / 60))} min: "
        "pairs are set aside, counted and checked, a vocabulary is learned, and all is cut into "
        "its tokens. A run does it once."
    )
