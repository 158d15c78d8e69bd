"""Self-contained pages of text and tables: they load nothing, and need no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; background: #fff }
h1, h2 { line-height: 1.2 }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .25rem .6rem; text-align: left; border-bottom: 1px solid #ddd }
td.number { text-align: right; font-variant-numeric: tabular-nums }
figure { margin: 1rem 0 } figcaption, .note { color: #555; font-size: 14px }
code { background: #f2f2f2; padding: .1rem .3rem }
@media (prefers-color-scheme: dark) {
  body { color: #eee; background: #181818 } th, td { border-color: #444 }
  code { background: #2a2a2a } figcaption, .note { color: #aaa } svg { background: #fff }
}
"""


def html_page(title: str, *parts: str) -> str:
    """Make a page of some parts of HTML."""
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Make a plain table of text; numbers are aligned to the right."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "\n".join(
        "<tr>" + "".join(f"<td{_align(cell)}>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _align(cell: str) -> str:
    is_number = cell[:1].isdigit() and not any(letter.isalpha() for letter in cell)
    return ' class="number"' if is_number else ""
