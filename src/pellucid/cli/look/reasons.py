"""Why a word was written: what becomes of it when each source word is hidden."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pellucid.cli.look.writer import LookWriter
from pellucid.inside.measures.contrast import Contrast
from pellucid.inside.measures.hiding import LEAST_CAUSE
from pellucid.inside.measures.maps import Map
from pellucid.terminal.text import lay_out
from pellucid.text.tokenizers.tokenizer import SPACE_SIGN

_HARDLY = 0.2
"""A fall in nats below which nothing is shown, as on the page."""


def show_reasons(contrast: Contrast, writer: LookWriter) -> None:
    """Show what hiding each source word does to a choice, and what leaving it out says of that.

    Args:
        contrast: the written word and the other one.
        writer: where to show it.

    Raises:
        InputError: the model is recurrent.
    """
    hidden = contrast.hidden
    choice = contrast.choice
    writer.lines(summarize_contrast(contrast))
    writer.lines(["", _say_reasons(contrast)])
    asked = f"odds of {choice.own} to {choice.rival}" if choice.rival else f"{choice.own} is"
    rows = tuple((one.word, _say_fall(one.fall), one.stands or "-") for one in hidden)
    writer.lines(
        ["", "Each word is hidden from all others, and the sentence is translated again:", ""]
    )
    table = (("without", asked, "then stands"), *rows)
    writer.lines(line.rstrip() for line in lay_out(table, (False, True, False)))
    left_out = by_word(contrast.measure("occlusion"))
    found = _largest_by_word([one.word for one in hidden], [one.fall for one in hidden])
    said = say_differences(("hiding", "occlusion"), (found, left_out), least=LEAST_CAUSE)
    writer.lines(["", *said])


def by_word(map_: Map) -> dict[str, float]:
    """Return what a measure with one row gives each source word."""
    return _largest_by_word(map_.column_labels, map_.source_matrix[0].tolist())


def _largest_by_word(words: Iterable[str], values: Iterable[float]) -> dict[str, float]:
    """Give each word its number; a word that occurs twice has the larger one."""
    found: dict[str, float] = {}
    # The columns behind the words are the target's.
    for token, value in zip(words, values, strict=False):
        word = token.strip(SPACE_SIGN)
        if not math.isnan(value) and abs(value) >= abs(found.get(word, 0.0)):
            found[word] = value
    return found


def _say_reasons(contrast: Contrast) -> str:
    reasons = contrast.reasons
    own = contrast.choice.own
    if not reasons:
        return f"No single word decides: without any one of them {own} stays nearly as likely."
    turned = next((one for one in reasons if one.stands != contrast.written), None)
    because = f"Because of {_list([one.word for one in reasons])}."
    if turned is None:
        return f"{because} Without {reasons[0].word} it is still {own}, but less likely."
    return f"{because} Without {turned.word} the model writes {turned.stands or 'no such word'}."


def _list(words: Sequence[str]) -> str:
    return " and ".join([part for part in (", ".join(words[:-1]), words[-1]) if part])


def _say_fall(fall: float) -> str:
    if math.isnan(fall):
        return "neither"
    if abs(fall) < _HARDLY:
        return ""
    return f"{'÷' if fall > 0 else '×'} {in_two_digits(abs(fall))}"


def say_differences(
    names: Sequence[str], measures: Sequence[Mapping[str, float]], *, least: float = 0.0
) -> Iterator[str]:
    """Say where measures put another word first, or speak for the other side, or that none does.

    Args:
        names: of the measures.
        measures: for each its number of each source word.
        least: the smallest number with which a word is a reason.
    """
    firsts = []
    for numbers in measures:
        word = max(numbers, key=lambda one: numbers[one], default="")
        firsts.append(word if word and numbers[word] >= least else "no word")
    if len(set(firsts)) == 1:
        what = "no word first" if firsts[0] == "no word" else f"the same word first: {firsts[0]}"
        yield f"{_list(names)} put {what}."
    else:
        each = (f"{name} puts {word} first" for name, word in zip(names, firsts, strict=True))
        yield f"The measures disagree: {', '.join(each)}."
    for word in measures[0]:
        values = [numbers.get(word, 0.0) for numbers in measures]
        if max(values) >= LEAST_CAUSE and min(values) <= -LEAST_CAUSE:
            each = (f"{value:+.2f} in {name}" for name, value in zip(names, values, strict=True))
            yield f"They disagree about {word}: {', '.join(each)}."


def summarize_contrast(contrast: Contrast) -> Iterator[str]:
    """Yield the lines that introduce a choice: the sentence and how likely both words are."""
    why, other = contrast.words
    first, second = contrast.pieces
    # Rows and pieces count from where the two continuations part.
    start = contrast.start
    yield f"Why {why} and not {other}"
    beginning = " ".join(contrast.why.predicted_tokens[:start])
    yield f"Source       {' '.join(contrast.why.source_tokens)}"
    yield f"Beginning    {beginning or '(nothing)'}"
    for pieces, logs in zip((first, second), contrast.log_probabilities, strict=True):
        each = " ".join(f"{piece} {log:.4f}" for piece, log in zip(pieces, logs, strict=True))
        total = f" = {sum(logs):.4f}" if len(logs) > 1 else ""
        yield f"             log-probability {each}{total}"
    yield (
        f"Difference   {contrast.difference:+.4f}: from row {start} on, "
        f"{why if contrast.difference > 0 else other} is {times(abs(contrast.difference))} "
        "likelier."
    )
    if len(first) > 1 or len(second) > 1:
        yield (
            "Words of several pieces: their log-probabilities, and the rows of a measure, are "
            "added up, from where the pieces begin to differ."
        )


def times(difference: float) -> str:
    """Say how many times likelier one word is, from the difference of their logs."""
    return f"{in_two_digits(difference)} times"


def in_two_digits(difference: float) -> str:
    """Write a factor from its logarithm in two digits, as the page does: 2.1, 690, 1.2 million."""
    # Beyond that the exponential overflows.
    factor = math.exp(min(difference, 500))
    digits = 1 - math.floor(math.log10(factor))
    rounded = round(factor, digits)
    if rounded >= 1e9:
        return f"{factor:.1e}"
    if rounded >= 1e6:
        return f"{rounded / 1e6:g} million"
    return f"{rounded:,.1f}" if rounded < 10 else f"{rounded:,.0f}"
