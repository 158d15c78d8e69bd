"""Self-contained pages: no network, no script, no font from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pellucid.inside.color import ink_on, shade
from pellucid.inside.cross import CrossAttention

__all__ = ["attention_maps", "html_page", "html_table"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; background: #fff }
h1, h2 { line-height: 1.2 }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .25rem .6rem; text-align: left; border-bottom: 1px solid #ddd }
td.number { text-align: right; font-variant-numeric: tabular-nums }
.maps { display: flex; flex-wrap: wrap; gap: 1.5rem; overflow-x: auto }
table.map { font-size: 12px; margin: 0 }
table.map caption { text-align: left; font-weight: 600; padding-bottom: .25rem }
table.map th { font-weight: 400; border: 0; padding: 0 .4rem; white-space: nowrap }
table.map thead th { writing-mode: vertical-rl; transform: rotate(180deg); padding: .3rem 0 }
table.map td { width: 1.9rem; height: 1.4rem; padding: 0; text-align: center; border: 0;
               font-variant-numeric: tabular-nums }
figure { margin: 1rem 0 } figcaption, .note { color: #555; font-size: 14px }
code { background: #f2f2f2; padding: .1rem .3rem }
@media (prefers-color-scheme: dark) {
  body { color: #eee; background: #181818 } th, td { border-color: #444 }
  code { background: #2a2a2a } figcaption, .note { color: #aaa } svg { background: #fff }
}
"""


def html_page(title: str, *parts: str) -> str:
    """Put parts together to a page."""
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table of text; cells that are numbers stand to the right."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "\n".join(
        "<tr>" + "".join(f"<td{_align(cell)}>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _align(cell: str) -> str:
    is_number = cell[:1].isdigit() and not any(letter.isalpha() for letter in cell)
    return ' class="number"' if is_number else ""


def attention_maps(attention: CrossAttention) -> str:
    """Every layer and head of one translation as a map of weights from 0 to 1.

    Each row is labelled with the token it reads and the token it predicts. Weights from 1 % are
    printed in per cent; all of them show in the color and when pointed at.
    """
    depth, num_heads = attention.weights_NHTS.shape[:2]
    maps = [_map(attention, layer, head) for layer in range(depth) for head in range(num_heads)]
    return f'<div class="maps">\n{"".join(maps)}\n</div>'


def _map(attention: CrossAttention, layer: int, head: int) -> str:
    weights_TS = attention.weights_NHTS[layer, head]
    head_cells = "".join(f"<th>{escape(token)}</th>" for token in attention.source_tokens)
    rows = []
    for row, (read, predicted) in enumerate(
        zip(attention.read_tokens, attention.predicted_tokens, strict=True)
    ):
        label = f"{escape(read)} → {escape(predicted)}"
        cells = "".join(
            _cell(weight, f"{read} → {predicted}: {token}")
            for weight, token in zip(weights_TS[row].tolist(), attention.source_tokens, strict=True)
        )
        rows.append(f"<tr><th>{label}</th>{cells}</tr>")
    body = "\n".join(rows)
    return (
        f'<table class="map"><caption>layer {layer}, head {head}</caption>\n'
        f"<thead><tr><td></td>{head_cells}</tr></thead>\n<tbody>\n{body}\n</tbody></table>\n"
    )


def _cell(weight: float, what: str) -> str:
    color = shade(weight)
    ground = "#{:02x}{:02x}{:02x}".format(*color)
    number = f"{100 * weight:.0f}" if weight >= 0.01 else ""
    title = escape(f"{what} {weight:.4f}", quote=True)
    return f'<td title="{title}" style="background:{ground};color:{ink_on(color)}">{number}</td>'
