"""Write docs/attention/worked-numbers.md: every printed number, ours, and why the two differ.

Run ``python docs/attention/make_worked_numbers.py`` after changing an example.
"""

from __future__ import annotations

import math
from pathlib import Path

from pellucid.by_hand.printed import WorkedNumber, worked_numbers

__all__ = ["PAGE", "worked_numbers_page"]

PAGE = Path(__file__).with_name("worked-numbers.md")

_HEAD = """\
# Every printed number, recomputed

Five texts about attention print small examples to follow by hand. This page lists each printed
number that can be recomputed, the number that `pellucid.attention` gives in float64, and the cause
if the two differ. A number is *right* if ours, rounded to the printed digits, equals it.
"Self-attention mechanism: objectives" and the notes "Self-Attention for Transformer Neural
Networks" print no numbers.

`docs/attention/make_worked_numbers.py` writes this page, and a test keeps it up to date.
[Attention, step by step](README.md#the-texts-words) explains the texts' words."""

_COLUMNS = "| number | printed | computed | | cause |\n| --- | --- | --- | --- | --- |"


def worked_numbers_page() -> str:
    """Write all worked numbers as a page of Markdown, one table a text."""
    lines = [_HEAD]
    text = ""
    for number in worked_numbers():
        if number.text != text:
            text = number.text
            lines.append(f"\n## {text}\n\n{_COLUMNS}")
        lines.append(_table_row(number))
    return "\n".join(lines) + "\n"


def _table_row(number: WorkedNumber) -> str:
    printed = " ".join(number.printed) or "—"
    computed = " ".join(_digits(value) for value in number.computed)
    verdict = "right" if number.is_right else "differs" if number.printed else "not printed"
    return f"| {number.place} | {printed} | {computed} | {verdict} | {number.cause} |"


def _digits(value: float) -> str:
    if value == -math.inf:
        return "−∞"
    if abs(value) < 5e-7:
        return "0"
    return f"{value:.6f}".rstrip("0").rstrip(".").replace("-", "−")


if __name__ == "__main__":
    PAGE.write_text(worked_numbers_page(), encoding="utf-8")
