"""Write anew what the pages say that their blocks print, after another model came into the package.

    python docs/make_printed.py [PAGE…]

Without a page it takes those whose blocks ask the packaged models only. What a page leaves out with
``…`` stays left out, and numbers keep their digits. The sentences around a block are not touched:
read them after it, as they may speak of the old numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "shared"))

import page_code  # noqa: E402

PAGES = (
    "README.md",
    "docs/start.md",
    "docs/attention/README.md",
    *(
        f"docs/guides/{name}.md"
        for name in ("looking", "measures", "probes", "recurrent", "translating", "what-if")
    ),
)
MARK = "\x1d"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def main() -> None:
    """Write the pages that differ, and name them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path)
    pages = parser.parse_args().pages or [ROOT / name for name in PAGES]
    program = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ |= {"PATH": program, "COLUMNS": "80"}
    for page in map(Path.resolve, pages):
        before = text = page.read_text(encoding="utf-8")
        names: dict[str, Any] = {}
        start = 0
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for block in shown_blocks(page):
                if not block.is_run:
                    continue
                try:
                    changes = list(changes_of(block, names))
                except (Exception, SystemExit) as error:
                    # Such as a word that this model does not write: another must be found by hand.
                    print(f"{block.place} is left as it is: {error}")
                    continue
                # One after the other: two lines of a page may be the same.
                start = text.index(block.text, start)
                for old, new in changes:
                    place = text.index(old, start)
                    text = text[:place] + new + text[place + len(old) :]
                    start = place + len(new)
        if text != before:
            page.write_text(text, encoding="utf-8")
            print(f"{page.relative_to(ROOT)} is written anew.")


def shown_blocks(page: Path) -> list[page_code.Block]:
    """Read the blocks of a page that say what they print, its Python whole or not at all."""
    blocks = page_code.read_blocks(page)
    python = [one for one in blocks if one.language == "python"]
    has_prints = any(one.output or re.search(r"(?m)^print\(.*\)  # ", one.text) for one in python)
    # The comments of README.md say what a line is for.
    has_prints = has_prints and page.name != "README.md"
    return [one for one in blocks if has_prints or one.language != "python"]


def changes_of(block: page_code.Block, names: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Run a block; yield each part of the page that another text must replace."""
    if block.language == "python":
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            exec(page_code.mark_prints(block.runnable), names)
        yield from python_changes(block, shown.getvalue())
    elif block.language == "console":
        yield from console_changes(block)
    elif block.output is not None:
        printed = run(block.runnable)
        if page_code.compare(block.output, printed):
            yield block.output, renew(block.output, printed)


def run(text: str) -> str:
    """Run commands of the shell; return what they print."""
    command = ["bash", "-euo", "pipefail", "-c", text]
    line = "The dog ate the bread.\n"
    done = subprocess.run(command, capture_output=True, check=True, text=True, input=line)
    return done.stdout


def console_changes(block: page_code.Block) -> Iterator[tuple[str, str]]:
    """Yield what changes below each command of a block with prompts."""
    for part in re.split(r"(?m)^(?=\$ )", block.text)[1:]:
        command, _, wanted = part.partition("\n")
        printed = run(f"exec 2>&1\n{command.removeprefix('$ ')}")
        if page_code.compare(wanted, printed):
            yield part, f"{command}\n{renew(wanted, printed)}"


def python_changes(block: page_code.Block, shown: str) -> Iterator[tuple[str, str]]:
    """Yield what changes after the prints of a block, and below it."""
    parts = shown.split(f"{MARK}\n")
    printed_by_line = iter(parts[1::2])
    for line in block.text.splitlines():
        found = re.fullmatch(r"(print\(.*\))  # (.+)", line)
        if found is None:
            continue
        printed = next(printed_by_line)
        said, colon, why = found[2].partition(": ")
        if page_code.compare_comment(found[2], printed):
            yield line, f"{found[1]}  # {with_digits(said, printed.strip())}{colon}{why}"
    if block.output is not None and page_code.compare(block.output, "".join(parts)):
        yield block.output, renew(block.output, "".join(parts))


def with_digits(said: str, printed: str) -> str:
    """Round the printed numbers as the comment does; those that it does not have, to two digits."""
    digits = [len(number.partition(".")[2]) for number in NUMBER.findall(said)]
    places = iter(digits)

    def put(match: re.Match[str]) -> str:
        return f"{float(match[0]):.{next(places, 2)}f}" if "." in match[0] else match[0]

    return NUMBER.sub(put, printed)


def renew(wanted: str, printed: str) -> str:
    """Replace the lines of an output, where the page leaves lines out by their neighbors."""
    lines = list(without_ends(wanted, printed))
    groups = re.split(r"(?m)^…\n", wanted)
    kept = []
    start = 0
    for number, group in enumerate(groups):
        size = len(group.splitlines())
        if number == len(groups) - 1:
            # Without a gap after it, the last lines are the last of the output.
            start = max(start, len(lines) - size) if number else 0
            size = len(lines) - start
        elif number:
            start = max(
                range(start, max(start, len(lines) - size) + 1),
                key=lambda at: likeness(group, lines[at : at + size]),
            )
        kept.append("".join(f"{line}\n" for line in lines[start : start + size]) if group else "")
        start += size if group else 0
    return "…\n".join(kept)


def without_ends(wanted: str, printed: str) -> Iterator[str]:
    """Yield the printed lines; where the page leaves out a line's end, up to the next gap."""
    begins = [without_digits(line[:-1]) for line in wanted.splitlines() if re.search(".…$", line)]
    is_left_out = False
    for line in map(str.rstrip, printed.rstrip().splitlines()):
        is_left_out = is_left_out and bool(line)
        begin = next((one for one in begins if without_digits(line).startswith(one)), None)
        if begin is not None:
            is_left_out = True
            yield f"{line[: len(begin)]}…"
        elif not is_left_out:
            yield line


def without_digits(text: str) -> str:
    """Put a 0 in the place of every digit: numbers differ between models."""
    return re.sub(r"\d", "0", text)


def likeness(group: str, lines: list[str]) -> float:
    """Compare a group of lines with others, whatever their numbers."""
    return difflib.SequenceMatcher(
        None, without_digits(group), without_digits("\n".join(lines))
    ).ratio()


if __name__ == "__main__":
    main()
