"""Two forms of a worked example: tables to look at, and sentences to listen to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pellucid.by_hand.pages import Page
from pellucid.by_hand.sheet import Example, Step
from pellucid.cli.attend import draw, say


@dataclass(frozen=True)
class Form:
    """Functions that print the pieces of an example to standard output.

    Attributes:
        heading: the title, its source, and what is given.
        opening: the title of a page, and its explanation.
        step: one step.
        comparison: how a page compares with its text.
        text: a sentence.
    """

    heading: Callable[[Example], None]
    opening: Callable[[Page], None]
    step: Callable[[Step], None]
    comparison: Callable[[Page], None]
    text: Callable[[str], None]

    def page(self, page: Page) -> None:
        """Print a whole page."""
        self.opening(page)
        for step in page.part.steps:
            self.step(step)
        self.comparison(page)


DRAWN = Form(
    draw.draw_heading,
    draw.draw_opening,
    draw.draw_step,
    draw.draw_comparison,
    draw.draw_text,
)
SPOKEN = Form(say.say_heading, say.say_opening, say.say_step, say.say_comparison, say.say_text)
