"""Worked examples by name or from a file, shown in one of three forms."""

from __future__ import annotations

import sys
from pathlib import Path

from pellucid.by_hand.examples.by_name import EXAMPLES
from pellucid.by_hand.examples.not_on_your_life import not_on_your_life
from pellucid.by_hand.matrices import read_example
from pellucid.by_hand.row import follow_row_of
from pellucid.by_hand.sheet import Example
from pellucid.cli.attend.draw import draw_example
from pellucid.cli.attend.record import example_to_record
from pellucid.cli.attend.say import say_example
from pellucid.cli.lines.streams import to_json_line

__all__ = ["show_example"]


def show_example(
    name: str, *, row: int | None, d_key: int | None, is_json: bool, is_plain: bool
) -> None:
    """Write a worked example to standard output.

    Args:
        name: the name of an example, or a file.
        row: the row to follow number by number, or None to show the whole example.
        d_key: d_k of the example ``not-on-your-life``.
        is_json: True to write JSON.
        is_plain: True to write sentences instead of tables.
    """
    example = _find(name, d_key)
    if row is not None:
        example = follow_row_of(example, row)
    if is_json:
        sys.stdout.write(to_json_line(example_to_record(example)))
    elif is_plain:
        sys.stdout.writelines(f"{line}\n" for line in say_example(example))
    else:
        draw_example(example, has_hint=row is None)


def _find(name: str, d_key: int | None) -> Example:
    if name not in EXAMPLES:
        return read_example(Path(name))
    if name == "not-on-your-life" and d_key is not None:
        return not_on_your_life(d_key)
    return EXAMPLES[name]()
