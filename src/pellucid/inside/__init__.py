"""Looking inside: pairs, traces and their files, and how they are shown.

Reading order: `pair` (a source and a target with a model), `ask` (what is to be seen), `replay`
(the one run that sees it), `trace` (what was seen), `saving`.
"""

from pellucid.inside.ask import Ask
from pellucid.inside.color import ink_on, shade
from pellucid.inside.looking import Replaying
from pellucid.inside.page import attention_maps, html_page, html_table
from pellucid.inside.pair import Pair, make_pair
from pellucid.inside.replay import replay
from pellucid.inside.saving import load_trace
from pellucid.inside.terminal import draw_row
from pellucid.inside.trace import Trace

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
