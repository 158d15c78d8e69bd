"""Looking inside one translation: replay, and how it is shown."""

from pellucid.inside.color import ink_on, shade
from pellucid.inside.page import attention_maps, html_page, html_table
from pellucid.inside.replay import CrossAttention, replay_cross_attention
from pellucid.inside.terminal import draw_row

__all__ = [
    "CrossAttention",
    "attention_maps",
    "draw_row",
    "html_page",
    "html_table",
    "ink_on",
    "replay_cross_attention",
    "shade",
]
