"""A trace in a notebook: a fragment of HTML without scripts."""

from __future__ import annotations

from html import escape

from pellucid.errors import InputError
from pellucid.inside.record.data import TraceData
from pellucid.inside.show.page.map import static_map
from pellucid.inside.show.view import default_view

_STYLE = """
.pellucid { font: 13px/1.45 system-ui, sans-serif }
.pellucid .pellucid-map { margin: .5em 0 } .pellucid .pellucid-scroll { overflow-x: auto }
.pellucid table { border-collapse: collapse; border: 0; font-size: 11px; margin: 0 }
.pellucid th { font-weight: 400; text-align: right; padding: 0 .5em; white-space: nowrap; border: 0;
               background: none; vertical-align: bottom }
.pellucid th.pellucid-turned { writing-mode: vertical-rl; transform: rotate(180deg);
                               text-align: left; padding: .3em 0 }
.pellucid td { min-width: 2.5em; height: 1.5em; padding: 0; text-align: center;
               border: 1px solid #fff; font-variant-numeric: tabular-nums }
.pellucid td.pellucid-masked { color: #555; background: repeating-linear-gradient(135deg, #d9d9d9,
                               #d9d9d9 3px, #c4c4c4 3px, #c4c4c4 4px) }
.pellucid figcaption { opacity: .8; max-width: 60em; margin-top: .4em }
.pellucid .pellucid-problem { color: #fff; background: #a01010; padding: .3em .6em }
"""


def fragment(trace: TraceData) -> str:
    """Show a trace as safe HTML: its words, one head's map, its checks; no script, no loading.

    Args:
        trace: the trace to show. The map is the first head of the last layer's cross-attention if
            the trace holds it.
    """
    parts = [f'<p class="pellucid-problem">{escape(problem)}</p>' for problem in trace.problems]
    parts.append(
        f"<p><b>{escape(' '.join(trace.source_tokens))}</b><br>"
        f"{escape(' '.join(trace.predicted_tokens))}</p>"
    )
    try:
        parts.append(static_map(default_view(trace)))
    except InputError:
        parts.append(f"<p>{len(trace.arrays)} arrays, none of them a head's.</p>")
    checks = "; ".join(f"{name} {value:.1e}" for name, value in trace.checks.items())
    if checks:
        parts.append(f"<p>Checks, largest differences: {escape(checks)}.</p>")
    return f'<div class="pellucid"><style>{_STYLE}</style>{"".join(parts)}</div>'
