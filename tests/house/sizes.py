"""Count the statements and tokens of every room, and keep CONTRIBUTING's table of them.

    python tests/house/sizes.py           # print the table
    python tests/house/sizes.py --write   # put it into CONTRIBUTING.md

Lines do not count, so saving them gains nothing: code that is packed into few lines has as many
statements and tokens as code that breathes. Docstrings and comments count neither.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAD = "| room | statements | tokens | files |\n| --- | ---: | ---: | ---: |\n"
ROW = re.compile(r"^\| `?([a-z_/.]+)`? \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
"""Kinds of tokens that only lay code out."""


@dataclass(frozen=True)
class Size:
    """The size of some source code."""

    statements: int = 0
    tokens: int = 0
    files: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(
            self.statements + other.statements,
            self.tokens + other.tokens,
            self.files + other.files,
        )


def measure(source: str) -> Size:
    """Count the statements and tokens of a module."""
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    first_lines = {node.lineno for node in statements if is_docstring(node)}
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _LAYOUT and token.start[0] not in first_lines
    ]
    return Size(count_statements(ast.parse(source)), len(tokens), 1)


def count_statements(tree: ast.AST) -> int:
    """Count the statements of a module or a function, without docstrings."""
    return sum(isinstance(node, ast.stmt) and not is_docstring(node) for node in ast.walk(tree))


def is_docstring(node: ast.AST) -> bool:
    """Tell whether a statement is only a string: a docstring, or the text below an attribute."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


def measure_rooms(package: Path) -> dict[str, Size]:
    """Measure every folder and file at the top of a package, the largest first."""
    rooms: dict[str, Size] = {}
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0]
        rooms[room] = rooms.get(room, Size()) + measure(path.read_text(encoding="utf-8"))
    return dict(sorted(rooms.items(), key=lambda item: (-item[1].statements, item[0])))


def read_table(text: str) -> dict[str, Size]:
    """Read the table of rooms in a page."""
    _, _, after = text.partition(HEAD)
    table = re.match(r"(?:\|.*\n)*", after)
    assert table is not None
    rows = ROW.findall(table[0])
    return {room: Size(*(int(number.replace(",", "")) for number in row)) for room, *row in rows}


def write_table(rooms: dict[str, Size]) -> str:
    """Write the table of rooms, with their sum."""
    named = {f"`{room}`": size for room, size in rooms.items()}
    named["all"] = sum(rooms.values(), Size())
    rows = [
        f"| {name} | {size.statements:,} | {size.tokens:,} | {size.files} |"
        for name, size in named.items()
    ]
    return HEAD + "\n".join(rows) + "\n"


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put it into CONTRIBUTING.md")
    table = write_table(measure_rooms(ROOT / "src" / "pellucid"))
    if parser.parse_args().write:
        page = ROOT / "CONTRIBUTING.md"
        before, head, after = page.read_text(encoding="utf-8").partition(HEAD)
        assert head, "CONTRIBUTING.md has no table of rooms"
        rest = re.sub(r"\A(?:\|.*\n)*", "", after)
        page.write_text(before + table + rest, encoding="utf-8")
    print(table, end="")


if __name__ == "__main__":
    main()
