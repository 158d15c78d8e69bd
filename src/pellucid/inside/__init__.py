"""Looking inside: pairs, traces and their files, and how they are shown.

Reading order: `pair` (a source and a target with a model), `ask` (what is to be seen), `replay`
(the one run that sees it), `trace` (what was seen), `saving`.
"""

from pellucid.inside.ask import Ask
from pellucid.inside.look import Replaying
from pellucid.inside.pair import Pair, make_pair
from pellucid.inside.replay import replay
from pellucid.inside.show.colors import ink_on, shade
from pellucid.inside.show.page.html import attention_maps, html_page, html_table
from pellucid.inside.show.terminal.row import draw_row
from pellucid.inside.traces import Trace, load_trace

__all__ = [
    "Ask",
    "Pair",
    "Replaying",
    "Trace",
    "attention_maps",
    "draw_row",
    "html_page",
    "html_table",
    "ink_on",
    "load_trace",
    "make_pair",
    "replay",
    "shade",
]
