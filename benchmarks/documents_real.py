"""Real documents of this machine under a translator that copies.

    python benchmarks/documents_real.py [--most 500] [--format NAME]… [--out FILE] [FOLDER…]

Walks folders (by default /usr and this repository's environment) for files of every format, takes
each content once, and translates it with its own text through the placing of codes. A document
whose translations stand in the place of its texts must come back byte by byte. A PO file gets a
translation for every message: polib and ``msgfmt -c`` read both files, and nothing but translations
and the fuzzy flag may differ. Files that are refused are counted by the beginning of the sentence.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polib
from documents import copy

from pellucid.documents.formats import FORMATS, format_of
from pellucid.documents.segment_writing import write_segment
from pellucid.documents.units import How, Unit
from pellucid.errors import DataError
from pellucid.text.line_words import line_words

KEPT = ("msgid", "msgctxt", "msgid_plural", "comment", "tcomment", "occurrences", "obsolete")
"""What polib must read in a translated message as before."""

LARGEST = 200_000
"""Bytes of a file that is taken."""


def find_files(folders: list[str], name: str, most: int) -> Iterator[tuple[Path, str]]:
    """Yield so many files of a format with their texts, no content twice."""
    seen: set[str] = set()
    paths = (
        Path(place) / file
        for folder in folders
        for place, inner, files in os.walk(folder)
        for file in sorted(files)
        if inner.sort() is None
    )
    for path in paths:
        found = format_of(path.name)
        if found is None or found.name != name or path.is_symlink():
            continue
        if not 0 < path.stat().st_size <= LARGEST:
            continue
        data = path.read_bytes()
        key = hashlib.sha256(data).hexdigest()
        if key in seen:
            continue
        seen.add(key)
        try:
            yield path, data.decode()
        except UnicodeDecodeError:
            continue
        if len(seen) >= most:
            return


def translate(name: str, text: str, how: How) -> tuple[str, int, int]:
    """Translate a document by copying; return it with its segments and those that stay."""
    parts = list(FORMATS[name].read(text, how))
    segments = [one for unit in parts if isinstance(unit, Unit) for one in unit.segments]
    for segment in segments:
        own = segment.text.strip()
        words = line_words(own)
        write_segment(segment, [copy(words, own, random.Random(1))], words)
    stayed = sum(one.written is None for one in segments)
    return "".join(map(str, parts)), len(segments), stayed


def is_accepted(text: str) -> bool:
    """Tell whether msgfmt accepts a catalog."""
    command = ["msgfmt", "-c", "-o", "/dev/null", "-"]
    return subprocess.run(command, input=text.encode(), capture_output=True).returncode == 0


def compare_catalogs(text: str, answer: str) -> str:
    """Name what differs between a catalog and its translation that should not; empty if nothing."""
    before, after = (polib.pofile(one) for one in (text, answer))
    if before.metadata != after.metadata or len(before) != len(after):
        return "header or number of messages"
    for one, other in zip(before, after, strict=True):
        if any(getattr(one, key) != getattr(other, key) for key in KEPT):
            return f"message {one.msgid[:40]!r}"
        is_plain = not one.obsolete and not one.msgid_plural
        if is_plain and other.msgstr != one.msgid:
            return f"translation of {one.msgid[:40]!r}: {other.msgstr[:40]!r}"
    has_plurals = "Plural-Forms" in before.metadata  # A template may lack what msgfmt asks for.
    if has_plurals and is_accepted(text) and not is_accepted(answer):
        return "msgfmt"
    return ""


def check(name: str, text: str) -> tuple[str, int, int]:
    """Translate a document; return what is wrong, its segments, and those that stay."""
    how = How(languages=("", ""), has_all=True)
    if name in ("csv", "tsv"):
        cells = next(csv.reader(text.splitlines(), delimiter="," if name == "csv" else "\t"), [""])
        how = replace(how, column=cells[0])
    answer, count, stayed = translate(name, text, how)
    if name == "po":
        return compare_catalogs(text, answer), count, stayed
    return "" if answer == text else "other bytes", count, stayed


def main() -> int:
    """Check real documents; print a line for each format."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--most", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=1e9, help="end a format after so long")
    parser.add_argument("--format", action="append", default=[])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    folders = options.folders or ["/usr", sys.prefix]
    names = options.format or [one for one in FORMATS if one not in ("xliff", "tmx")]
    results = {}
    for name in names:
        began, refused, counts = time.monotonic(), Counter[str](), Counter[str]()
        for path, text in find_files(folders, name, options.most):
            try:
                fault, segments, stayed = check(name, text)
            except DataError as error:
                refused[str(error)[:50]] += 1
                continue
            counts.update(files=1, segments=segments, stayed=stayed, faulty=bool(fault))
            if fault:
                print(f"{path}: {fault}", file=sys.stderr)
            if time.monotonic() > began + options.seconds:
                break
        results[name] = {**counts, "refused": refused.total(), "sentences": dict(refused)}
        print(
            f"{name:10} {counts['files']:,} files, {counts['segments']:,} segments "
            f"({counts['stayed']:,} stay), {counts['faulty']} not equal, {refused.total()} refused",
            flush=True,
        )
    if options.out is not None:
        known = json.loads(options.out.read_text()) if options.out.exists() else {}
        options.out.write_text(json.dumps(known | results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
