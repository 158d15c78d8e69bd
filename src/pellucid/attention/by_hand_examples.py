"""The worked examples by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pellucid.attention.by_hand import Example
from pellucid.attention.by_hand_beginning import lets_go
from pellucid.attention.by_hand_decoding import show_me_the_money
from pellucid.attention.by_hand_lecture import toy_four
from pellucid.attention.by_hand_masked import not_on_your_life
from pellucid.attention.by_hand_rooms import room_number
from pellucid.attention.by_hand_slides import pizza
from pellucid.attention.by_hand_vectors import help_me

__all__ = ["EXAMPLES"]

EXAMPLES: Mapping[str, Callable[[], Example]] = {
    "toy-four": toy_four,
    "pizza": pizza,
    "not-on-your-life": not_on_your_life,
    "help-me": help_me,
    "room-number": room_number,
    "show-me-the-money": show_me_the_money,
    "lets-go": lets_go,
}
"""``not_on_your_life`` also takes a d_k."""
