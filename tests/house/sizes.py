"""Count the lines of code of every room, and keep CONTRIBUTING's table of them.

    python tests/house/sizes.py           # print the table
    python tests/house/sizes.py --write   # put it into CONTRIBUTING.md

Docstrings, comments and blank lines do not count.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAD = "| room | lines | files |\n| --- | ---: | ---: |\n"
ROW = re.compile(r"^\| `?([a-z_/.]+)`? \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)


def count_lines(source: str) -> int:
    """Count the lines of a module that hold code."""
    code = {
        number
        for number, line in enumerate(source.split("\n"), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno:
            code |= set(range(node.lineno, (node.end_lineno or 0) + 1))
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            docstrings |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(code - docstrings)


def count_rooms(package: Path) -> dict[str, tuple[int, int]]:
    """Count the lines and files of every folder and file at the top of a package."""
    lines, files = Counter[str](), Counter[str]()
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0]
        lines[room] += count_lines(path.read_text(encoding="utf-8"))
        files[room] += 1
    return {room: (count, files[room]) for room, count in lines.most_common()}


def read_table(text: str) -> dict[str, tuple[int, int]]:
    """Read the table of rooms in a page."""
    _, _, after = text.partition(HEAD)
    table = re.match(r"(?:\|.*\n)*", after)
    assert table is not None
    rows = ROW.findall(table[0])
    return {room: (_number(lines), _number(files)) for room, lines, files in rows}


def write_table(rooms: dict[str, tuple[int, int]]) -> str:
    """Write the table of rooms, the largest first, with their sum."""
    rows = [f"| `{room}` | {lines:,} | {files} |" for room, (lines, files) in rooms.items()]
    total = [sum(column) for column in zip(*rooms.values(), strict=True)]
    return HEAD + "\n".join([*rows, f"| all | {total[0]:,} | {total[1]} |"]) + "\n"


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put it into CONTRIBUTING.md")
    table = write_table(count_rooms(ROOT / "src" / "pellucid"))
    if parser.parse_args().write:
        page = ROOT / "CONTRIBUTING.md"
        before, head, after = page.read_text(encoding="utf-8").partition(HEAD)
        assert head, "CONTRIBUTING.md has no table of rooms"
        rest = re.sub(r"\A(?:\|.*\n)*", "", after)
        page.write_text(before + table + rest, encoding="utf-8")
    print(table, end="")


if __name__ == "__main__":
    main()
