"""Real messages through a model as documents: what is lost, and whether the report says it.

    python benchmarks/silent_losses.py FOLDER [--model demo] [--messages 2000] [--out FILE]

FOLDER holds catalogues, such as unpacked wheels of Django and Wagtail or /usr/share/locale: every
``.po`` and ``.mo`` of French below it is read for its source texts. Of those with a placeholder or
an element the first by the hash of their text are written as a catalogue, a table of JSON and a
page of HTML, and `pellucid translate` translates each with a report. Placeholders and elements are
found again by patterns that share no code with the package. Counted are

- ``differ``: texts whose placeholders are not their source's, and ``silent`` ones among them, which
  the report does not list;
- ``emptied``: texts with an element that held words and holds none, and ``silent`` ones among them;
- ``unreported``: texts that no one is asked to look at. ``FOLDER/read.tsv`` has them, to be read.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import polib

PLACEHOLDER = re.compile(
    r"%(?:\(\w+\)|\d+\$)?[-+#0']*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|j|z|t|L)?[diouxXeEfFgGcrsaS]"
    r"|%%|\{\{.*?\}\}|\{%.*?%\}|\$?\{[\w.!:,#]*\}|\$\w+|&\w+;"
)
ELEMENT = re.compile(r"<(\w+)(?:\s[^<>]*)?>(.*?)</\1>", re.DOTALL)
LETTER = re.compile(r"[^\W\d_]")
TAG = re.compile(r"<[^<>]*>")
KINDS = ("po", "json", "html")


def messages(folder: Path) -> list[str]:
    """Read the source texts of all French catalogues."""
    found: dict[str, None] = {}
    for path in sorted([*folder.rglob("*.po"), *folder.rglob("*.mo")]):
        if not re.search(r"(^|[/_.-])fr([/_.-]|$)", str(path)):
            continue
        try:
            read = polib.mofile if path.suffix == ".mo" else polib.pofile
            for one in read(str(path)):
                found |= dict.fromkeys(filter(None, (one.msgid, one.msgid_plural)))
        except (OSError, ValueError):
            continue
    return [*found]


def choose(texts: Sequence[str], most: int) -> list[str]:
    """Choose texts of one line with a placeholder or an element, the same ones each time."""
    lines = (" ".join(one.split()) for one in texts)
    fit = {
        one
        for one in lines
        if LETTER.search(PLACEHOLDER.sub("", TAG.sub("", one)))
        and (PLACEHOLDER.search(one) or emptiable(one))
        # A page reads what is not a tag as text, so that the signs would not compare.
        and not re.search(r"<(?![/\w])|&(?!\w+;)", one)
    }
    return sorted(fit, key=lambda one: hashlib.sha256(one.encode()).digest())[:most]


def emptiable(text: str) -> int:
    """Count the elements that hold words."""
    return sum(bool(LETTER.search(TAG.sub("", one[2]))) for one in ELEMENT.finditer(text))


def write(path: Path, texts: Sequence[str]) -> None:
    """Write texts as a document of the kind that its name has."""
    if path.suffix == ".json":
        path.write_text(json.dumps(dict(enumerate(texts)), indent=1))
    elif path.suffix == ".html":
        path.write_text("".join(f'<p id="{k}">{one}</p>\n' for k, one in enumerate(texts)))
    else:
        file = polib.POFile()
        file.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Language": "fr"}
        file.extend(polib.POEntry(msgid=one) for one in texts)
        file.save(str(path))


def read(path: Path, texts: Sequence[str]) -> list[str]:
    """Read the translation of each text."""
    if path.suffix == ".json":
        return [*json.loads(path.read_text()).values()]
    if path.suffix == ".html":
        rows = path.read_text().splitlines()
        return [re.sub(r"^<p[^>]*>|</p>$", "", one) for one in rows]
    known = {one.msgid: one.msgstr for one in polib.pofile(str(path))}
    # A message that is not translated stays the source's for whoever reads it.
    return [known[one] or one for one in texts]


def reported(path: Path, texts: Sequence[str], kind: str) -> dict[int, str]:
    """Return the reasons of a report by the number of their text."""
    rows = [json.loads(one) for one in path.read_text().splitlines()]
    places = {one: number for number, one in enumerate(texts)}
    number = {
        "po": lambda row: places[row["key"]],
        "json": lambda row: int(row["key"]),
        "html": lambda row: row["line"] - 1,
    }[kind]
    return {number(row): row["reason"] for row in rows}


def codes(text: str) -> Counter[str]:
    """Count the placeholders of a text outside its tags, as a reader sees them."""
    return Counter(map(html.unescape, PLACEHOLDER.findall(TAG.sub("", text))))


def measure(folder: Path, model: str, kind: str, texts: Sequence[str]) -> Mapping[str, int]:
    """Translate texts as a document, and count what is lost."""
    source, output, report = (folder / f"{name}.{kind}" for name in ("source", "output", "report"))
    write(source, texts)
    command = [sys.executable, "-m", "pellucid", "translate", model, "-i", source, "-o", output]
    options = ["--report", report.with_suffix(f".{kind}.jsonl"), "--overwrite", "--threads", "1"]
    done = subprocess.run([*map(str, command), *map(str, options)], check=False)
    # 3: a text was too long, and stayed; the report has it.
    if done.returncode not in (0, 3):
        sys.exit(done.returncode)
    reasons = reported(report.with_suffix(f".{kind}.jsonl"), texts, kind)
    counts = Counter[str](texts=len(texts), reported=len(reasons))
    # A reference such as &amp; is read and written again by a page, and text elsewhere.
    for number, (own, made) in enumerate(zip(texts, read(output, texts), strict=True)):
        is_silent = number not in reasons
        differs = codes(own) != codes(made)
        emptied = emptiable(own) > emptiable(made)
        counts["with placeholders"] += bool(codes(own))
        counts["with elements that hold words"] += bool(emptiable(own))
        counts["differ"] += differs
        counts["differ, silent"] += differs and is_silent
        counts["emptied"] += emptied
        counts["emptied, silent"] += emptied and is_silent
        if is_silent:
            with (folder / "read.tsv").open("a") as stream:
                stream.write(f"{kind}\t{'LOST' * (differs or emptied)}\t{own}\t{made}\n")
    counts["unreported"] = len(texts) - len(reasons)
    return {name: counts[name] for name in sorted(counts)}


def main() -> None:
    """Choose messages, translate them in each kind, and count."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    folder: Path = options.folder
    (folder / "read.tsv").write_text("")
    texts = choose(messages(folder), options.messages)
    results = {kind: measure(folder, options.model, kind, texts) for kind in options.kinds}
    text = json.dumps({"model": options.model, "messages": len(texts), **results}, indent=1)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
