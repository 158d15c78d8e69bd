"""An example cut into pages: an explanation, some steps, and then how they compare with the text.

A part is a page; a long part is cut between its steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pellucid.by_hand.printed import WorkedNumber
from pellucid.by_hand.sheet import Part, Step, WorkedExample
from pellucid.errors import InputError

_MOST_LINES = 38
_HEAD_LINES = 4
_MOST_COMPARED = 14
_WIDTH = 78
_COLUMN = 10

_EXPLANATIONS = {
    "query": "A query is what a word looks for, a key what it is found by, a value what it hands "
    "over. Each is the word's vector times a matrix.",
    "scores": "Each query meets each key: their products, feature by feature, are added up. The "
    "larger the sum, the better the two fit. Dividing by √d_k keeps wide keys from making "
    "all scores large.",
    "exponentials": "The exponential makes every number positive and large differences larger. "
    "Dividing by the sum of the row turns the row into shares of 1: the weights.",
    "output": "Each number of a joined row times a number of the matrix, column by column, and "
    "added: the heads' findings are mixed into one row of the input's width.",
    "sum": "Added up, the shares of the heads are what the joined rows times W⁰ gave before.",
    "M · PE": "Each row of M times an encoding is a number of the encoding three places farther.",
    "mean and variance": "The mean of a row is taken away from it, and the root of its variance "
    "divides it. Each row is treated by itself.",
    "inner": "The first layer: products, a bias, and every negative result becomes 0.",
    "feed-forward": "The second layer brings each row back to its width.",
    "probabilities": "The output layer gives each token a score; the softmax turns the scores of "
    "a row into probabilities.",
    "cross-entropy": "The loss of a row is −ln of the probability that it gave the right token.",
    "state": "After attention, each row is added to its input and normed.",
    "reset": "A gate is a number from 0 to 1 for each feature, from the word and the state. This "
    "one says how much of the state the candidate gets to see.",
    "candidate": "The candidate is what the state would become if nothing were kept.",
    "update": "The update gate says how much of the old state stays. The rest comes from the "
    "candidate.",
    "compared": "The numbers that the text prints for these steps, next to those computed.",
    "weights × values": "Each word hands over its value, as much of it as its weight says. "
    "The sum is the context vector.",
}
_SAME_AS = {
    "query = key = value": "query",
    "key": "query",
    "value": "query",
    "key = value": "query",
    "scaled": "scores",
    "masked": "scores",
    "weights": "exponentials",
    "context": "weights × values",
}


@dataclass(frozen=True, eq=False)
class Page:
    """One page of an example.

    Attributes:
        number: from 1.
        count: of all pages of the example.
        part: its title, explanation, steps and corrections.
    """

    number: int
    count: int
    part: Part

    @property
    def printed(self) -> tuple[WorkedNumber, ...]:
        """The numbers that a text prints, of all steps of the page."""
        return tuple(number for step in self.part.steps for number in step.printed)


def pages_of(example: WorkedExample) -> tuple[Page, ...]:
    """Cut an example into pages that are read one at a time."""
    # Counted over the whole example, since --page has one number.
    parts = [piece for part in example.parts for piece in _cut(part)]
    return tuple(Page(number, len(parts), part) for number, part in enumerate(parts, start=1))


def choose_page(example: WorkedExample, number: int) -> Page:
    """Return one page, counted from 1.

    Raises:
        InputError: the example does not have it.
    """
    pages = pages_of(example)
    if not 1 <= number <= len(pages):
        raise InputError(
            f"The page must be from 1 to {len(pages)}, but is {number} (--page, {example.name}). "
            "Choose one of those, or all."
        )
    return pages[number - 1]


def correction_groups(page: Page) -> tuple[tuple[str, tuple[WorkedNumber, ...]], ...]:
    """Group the printed numbers that differ from the computed ones by the cause they share."""
    groups: dict[str, list[WorkedNumber]] = {}
    for number in page.printed:
        if not number.is_right:
            groups.setdefault(number.cause, []).append(number)
    return tuple((cause, tuple(numbers)) for cause, numbers in groups.items())


def _cut(part: Part) -> Iterator[Part]:
    """Cut a part between steps, so that a page has few lines."""
    groups: list[list[Step]] = [[]]
    used = _HEAD_LINES + _text_lines(part.note)
    compared = sum(_comparison_lines(step) for step in part.steps)
    steps = part.steps
    # Many comparisons would fill the pages of the steps: they get a separate page.
    if compared > _MOST_COMPARED:
        steps = tuple(replace(step, printed=()) for step in steps)
    for step in steps:
        lines = _count_lines(step)
        # A step is never cut: one that is longer than a page gets its own.
        if groups[-1] and used + lines > _MOST_LINES:
            groups.append([])
            # A continued page begins with its title and a line or two of explanation.
            used = _HEAD_LINES + 2
        groups[-1].append(step)
        used += lines
    if compared > _MOST_COMPARED:
        printed = tuple(number for step in part.steps for number in step.printed)
        groups.append([Step("compared", printed=printed)])
    for index, group in enumerate(groups):
        first = index == 0
        last = index == len(groups) - 1
        yield replace(
            part,
            title=part.title if first and last else f"{part.title} ({index + 1} of {len(groups)})",
            note=part.note or _explain(group) if first else _explain(group),
            steps=tuple(group),
            # The text's mistakes follow once all of it was shown.
            corrections=part.corrections if last else (),
        )


def _explain(steps: list[Step]) -> str:
    """Explain the first step that has an explanation."""
    for step in steps:
        name = _SAME_AS.get(step.name, step.name)
        if name in _EXPLANATIONS:
            return _EXPLANATIONS[name]
    return f"The same, continued: {', '.join(dict.fromkeys(step.name for step in steps))}."


def _count_lines(step: Step) -> int:
    tables = sum(
        (len(table.rows) + 1) * _count_blocks(len(table.columns)) + bool(table.title)
        for table in step.tables
    )
    written = sum(_text_lines(line) for line in step.lines)
    # The step's title and an empty line.
    return 2 + _text_lines(step.note) + written + tables + _comparison_lines(step)


def _count_blocks(num_columns: int) -> int:
    """Estimate into how many blocks of columns a table is cut."""
    return -(-(num_columns + 1) * _COLUMN // _WIDTH)


def _comparison_lines(step: Step) -> int:
    # A number that differs is followed by both values and the cause.
    return sum(1 if number.is_right else 6 for number in step.printed)


def _text_lines(text: str) -> int:
    return -(-len(text) // 74)
