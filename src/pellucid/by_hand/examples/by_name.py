"""The worked examples, by the names that users type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pellucid.by_hand.examples.gradient import gradient
from pellucid.by_hand.examples.heads import heads
from pellucid.by_hand.examples.help_me import help_me
from pellucid.by_hand.examples.lets_go import lets_go
from pellucid.by_hand.examples.not_on_your_life import not_on_your_life
from pellucid.by_hand.examples.pizza import pizza
from pellucid.by_hand.examples.positions import positions
from pellucid.by_hand.examples.recurrent_step import recurrent_step
from pellucid.by_hand.examples.room_number import room_number
from pellucid.by_hand.examples.show_me_the_money import show_me_the_money
from pellucid.by_hand.examples.toy_four import toy_four
from pellucid.by_hand.matrices import packaged_example
from pellucid.by_hand.sheet import WorkedExample

EXAMPLES: Mapping[str, Callable[[], WorkedExample]] = {
    "toy-four": toy_four,
    "pizza": pizza,
    "not-on-your-life": not_on_your_life,
    "help-me": help_me,
    "room-number": room_number,
    "show-me-the-money": show_me_the_money,
    "lets-go": lets_go,
    "positions": positions,
    "heads": heads,
    "encoder-layer": partial(packaged_example, "encoder-layer"),
    "gradient": gradient,
    "padding": partial(packaged_example, "padding"),
    "recurrent-step": recurrent_step,
}
"""``not_on_your_life`` also takes a d_k."""
