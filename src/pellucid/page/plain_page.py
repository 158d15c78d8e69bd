"""A plain page of text and tables: one file without script or network, to read or to print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --ground: #ffffff; --faint: #595959;
        --line: #dddddd; --panel: #f2f2f2 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eeeeee; --ground: #181818; --faint: #aaaaaa; --line: #444444; --panel: #2a2a2a }
}
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
       color: var(--ink); background: var(--ground); overflow-wrap: anywhere }
h1, h2, h3 { line-height: 1.25; margin: 1.75rem 0 .5rem }
h1 { font-size: 1.75rem } h2 { font-size: 1.3rem } h3 { font-size: 1rem }
p { max-width: 46rem; margin: .5rem 0 } .scroll { overflow-x: auto; margin: .75rem 0 }
table { border-collapse: collapse; font-size: .9375rem; font-variant-numeric: tabular-nums }
caption { text-align: left; font-weight: 600 }
th, td { padding: .25rem .6rem; text-align: left; vertical-align: top; overflow-wrap: normal;
         border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { padding-left: 0 }
.number { text-align: right; white-space: nowrap }
@media (max-width: 30rem) { th, td { padding: .25rem .3rem } table { font-size: .875rem } }
figure { margin: 1rem 0 } svg { max-width: 100%; height: auto }
figcaption, .note { color: var(--faint); font-size: .9375rem }
code, pre { font: .9375rem/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, monospace }
code { background: var(--panel); padding: .1rem .3rem } h3 code { font-weight: 400 }
pre { background: var(--panel); padding: .75rem; white-space: pre-wrap }
@media print {
  :root { --ink: #000000; --ground: #ffffff; --faint: #444444; --panel: #f2f2f2; --line: #bbbbbb }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact }
  body { font-size: 11pt; max-width: none; margin: 0; padding: 0 }
  .scroll { overflow: visible } table { font-size: .85em } th, td { padding: .15rem .35rem }
  h2, h3, caption { break-after: avoid } tr, figure { break-inside: avoid }
}
"""


def html_page(title: str, *parts: str, style: str = "") -> str:
    """Make a page of some parts of HTML, with further rules of style if it has any."""
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Make a plain table of text; numbers are aligned to the right."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "\n".join(
        "<tr>" + "".join(f"<td{_align(cell)}>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return scrolling(table, header[0])


def scrolling(table: str, name: str) -> str:
    """Let a table that is wider than its window scroll by itself, also by the keyboard."""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">{table}</div>'
    )


def _align(cell: str) -> str:
    starts_with_digit = cell.removeprefix("−")[:1].isdigit()
    # Digits with letters, such as `3 lines`, are words, and stand at the left.
    is_number = starts_with_digit and not any(letter.isalpha() for letter in cell)
    return ' class="number"' if is_number else ""
