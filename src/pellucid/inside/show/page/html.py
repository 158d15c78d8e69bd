"""Self-contained pages: they load nothing, and need no network."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from pellucid.inside.ask import HEAD_STAGES
from pellucid.inside.record.data import TraceData
from pellucid.inside.show.colors import ground_and_ink
from pellucid.inside.show.page.data import FIGURES, page_data
from pellucid.inside.show.page.map import isolated, static_map
from pellucid.inside.show.view import View, default_view, describe_model_of, views_of

__all__ = ["attention_maps", "html_page", "html_table", "trace_page"]

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


_CHECKS = {
    "decode": "log-probabilities of replay and decode",
    "weights": "weights and a softmax computed again from queries and keys in float64",
    "rows": "sum of a row of weights and 1",
    "contributions": "sum of all contributions and the module's output",
}

_APP = """<div id="app" hidden>
<fieldset aria-label="What to show">
<label>attention <select id="kind"></select></label>
<label>layer <select id="layer"></select></label>
<label>head <select id="head"></select></label>
<label>stage <select id="stage"></select></label>
<span class="hint">Keys: <kbd>k</kbd> kind, <kbd>l</kbd> layer, <kbd>h</kbd> head, <kbd>s</kbd>
stage, with Shift backwards; arrows, <kbd>Home</kbd> and <kbd>End</kbd> within the map.</span>
</fieldset>
<figure>
<div class="legend"><span id="low"></span><span class="bar" id="bar"></span>
<span id="high"></span></div>
<div id="window" hidden><button type="button" id="before">earlier rows</button>
<span id="window-words"></span> <button type="button" id="after">later rows</button></div>
<div class="scroll" id="map"></div>
<p id="cell" aria-live="polite"></p>
<figcaption id="caption"></figcaption>
</figure>
<details id="rows"><summary id="row-words"></summary><div class="scroll" id="row"></div></details>
<section id="all"><h2>All heads that the trace holds</h2>
<p class="note">Weights from 0 to 1, each row of pixels a query. A number describes weights; it does
not say what a head does for the translation.</p>
<label>sorted by, the largest first <select id="sort">{options}</select></label>
<div class="cards" id="cards"></div></section>
</div>"""


def html_page(title: str, *parts: str) -> str:
    """Make a page of some parts of HTML."""
    return _document(title, title, _STYLE, "\n".join(parts))


def _document(title: str, heading: str, style: str, body: str, *, guard: str = "") -> str:
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{guard}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<h1>{escape(heading)}</h1>\n{body}\n</body>\n</html>\n"
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


def attention_maps(trace: TraceData, *, site: str = "decoder.cross") -> str:
    """Show the weights of every layer and head of one kind of attention as maps from 0 to 1.

    Each row is labeled with the token it reads and, in the decoder, the token it predicts. Weights
    from 1 % are printed in percent; all of them show in the color, and when pointed at.

    Args:
        trace: holds the weights.
        site: ``decoder.cross``, ``decoder.self`` or ``encoder.self``.
    """
    views = [
        view
        for view in views_of(trace)
        if f"{view.part}.{view.kind}" == site and view.stage == "weights"
    ]
    return f'<div class="maps">\n{"".join(map(_map, views))}\n</div>'


def _map(view: View) -> str:
    head_cells = "".join(f"<th>{escape(token)}</th>" for token in view.columns)
    rows = []
    predictions = view.predicted or ("",) * len(view.rows)
    for read, predicted, weights in zip(view.rows, predictions, view.cells, strict=True):
        arrow = f" → {isolated(predicted)}" if predicted else ""
        cells = "".join(
            _cell(weight, f"{isolated(read)}{arrow}: {isolated(token)}")
            for weight, token in zip(weights.tolist(), view.columns, strict=True)
        )
        edge = f"<bdi>{escape(read)}</bdi>"
        if predicted:
            edge += f" → <bdi>{escape(predicted)}</bdi>"
        rows.append(f"<tr><th>{edge}</th>{cells}</tr>")
    body = "\n".join(rows)
    return (
        f'<table class="map"><caption>layer {view.layer}, head {view.head}</caption>\n'
        f"<thead><tr><td></td>{head_cells}</tr></thead>\n<tbody>\n{body}\n</tbody></table>\n"
    )


def _cell(weight: float, what: str) -> str:
    ground, ink = ground_and_ink(weight, None)
    number = f"{100 * weight:.0f}" if weight >= 0.01 else ""
    title = escape(f"{what} {weight:.4f}", quote=True)
    return f'<td title="{title}" style="background:{ground};color:{ink}">{number}</td>'


def trace_page(trace: TraceData) -> str:
    """Make a page that shows every head of a trace, with all numbers.

    It loads nothing, and its own policy forbids loading.

    Args:
        trace: the trace to show.

    Raises:
        InputError: the trace holds no array of a head, or more than a page may hold.
    """
    data = page_data(trace)
    script, style = _file("trace.js"), _file("trace.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    body = "\n".join(
        [
            *(f'<p class="problem" role="alert">{escape(text)}</p>' for text in trace.problems),
            _pair(trace),
            f"<noscript>{static_map(default_view(trace))}</noscript>",
            _APP.format(options=_options()),
            '<div class="columns">',
            _tokens(trace),
            _checks(trace),
            "</div>",
            _rest(trace),
            f'<script type="application/json" id="trace">{data}</script>',
            f"<script>{script}</script>",
        ]
    )
    return _document(
        f"Inside: {' '.join(trace.source_tokens)}",
        "What the heads attend to",
        f"\n{style}",
        body,
        guard=f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n',
    )


def _file(name: str) -> str:
    return files("pellucid.inside.show.page").joinpath(name).read_text(encoding="utf-8")


def _pair(trace: TraceData) -> str:
    text = str(trace.decoding.get("text") or "")
    lines = [
        ("Source", " ".join(trace.source_tokens)),
        ("Target", " ".join(trace.predicted_tokens)),
        *([("Text", text)] if text else []),
        ("Log-probability", f"{math.fsum(trace.log_probabilities):.4f}".replace("-", "−")),
        ("From", describe_model_of(trace)),
    ]
    body = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in lines)
    return f'<dl class="pair">{body}</dl>'


def _options() -> str:
    named = {"order": "order of the model", **FIGURES}
    return "".join(f'<option value="{name}">{what}</option>' for name, what in named.items())


def _tokens(trace: TraceData) -> str:
    decoded = trace.decode_log_probabilities
    heads = ["row", "reads", "predicts", "log p", "p", "likeliest"]
    heads += ["decode"] if decoded else []
    rows = []
    for row, log in enumerate(trace.log_probabilities):
        predicted, likeliest = trace.predicted_tokens[row], trace.argmax_tokens[row]
        numbers = [f"{log:.4f}".replace("-", "−"), f"{math.exp(log):.4f}"]
        words = (str(row), trace.target_tokens[row], predicted)
        cells = [f"<td>{escape(word)}</td>" for word in words]
        cells += [f'<td class="number">{number}</td>' for number in numbers]
        other = "the same" if likeliest == predicted else f"<b>{escape(likeliest)}</b>"
        cells.append(f"<td>{other}</td>")
        if decoded:
            cells.append(f'<td class="number">{decoded[row]:.4f}</td>'.replace("-", "−"))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in heads)
    return (
        "<section><h2>What each row predicts</h2><div class='scroll'><table class='plain'>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _checks(trace: TraceData) -> str:
    rows = "".join(
        f"<tr><td>{escape(_CHECKS.get(name, name))}</td>"
        f'<td class="number">{difference:.1e}</td></tr>'
        for name, difference in trace.checks.items()
    )
    verdict = '<p class="good">All hold.</p>' if trace.checks else "<p>None were made.</p>"
    if trace.problems:
        verdict = '<p class="bad">Not all hold; see above.</p>'
    table = (
        "<table class='plain'><thead><tr><th>between</th><th>largest difference</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )
    return f"<section><h2>Checks</h2>{verdict}{table if rows else ''}</section>"


def _rest(trace: TraceData) -> str:
    others = sum(1 for name in trace.arrays if name.rpartition(".")[2] not in HEAD_STAGES)
    kept = (
        ""
        if not others
        else (
            f" The trace also holds {others} arrays that belong to no head, such as logits and "
            "residuals; its .npz and .json files have them."
        )
    )
    return (
        '<p class="note">Weights are shares of a row. They show what a head attends to, not why a '
        f"word was chosen. No numbers are averaged unless stated, and no token is hidden.{kept}</p>"
        f'<p class="note">Model hash {escape(str(trace.model.get("model_hash", "unknown")))}.</p>'
    )
