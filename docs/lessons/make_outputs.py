"""Record what the commands of the lessons write, for the web page, which runs no command.

    python docs/lessons/make_outputs.py [--measure "2 cores, idle"]

Outputs are those of this version. Commands that measure are recorded only with ``--measure``, which
takes ten minutes; the page says on which machine. Without it the recorded ones stay.
"""

from __future__ import annotations

import argparse
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from live_cells import find_cells, say_cut

from pellucid import load
from pellucid.cli.commands.lesson import output_of
from pellucid.lessons.walks.walk import NAMES, OUTPUTS, load_walk, read_outputs


def record(machine: str) -> dict[str, Any]:
    """Return the answer and excerpt of every statement, and whole what its command measured.

    Args:
        machine: the machine to measure on; empty to keep what was measured before.
    """
    before = read_outputs()
    measured: dict[str, str] = {} if machine else before["measured"]
    translator = load("demo", precision="float32")
    # The statements are read with the names of these cells.
    cells = find_cells(translator)
    write({**before, "cells": cells})
    walks = {}
    for name in NAMES:
        excerpts = walks[name] = []
        for one in load_walk(name).statements:
            if one.is_measured and one.command not in measured:
                measured[one.command] = output_of(one)
            text = measured[one.command] if one.is_measured else output_of(one)
            cut = say_cut(translator, one)
            excerpts.append({"answer": one.answer(text), "cut": cut, "lines": one.excerpt(text)})
    where = machine or before["machine"]
    return {"machine": where, "cells": cells, "measured": measured, "walks": walks}


def write(found: dict[str, Any]) -> None:
    """Write the file."""
    text = json.dumps(found, ensure_ascii=False, indent=1) + "\n"
    Path(str(files("pellucid.lessons.walks") / OUTPUTS)).write_text(text, encoding="utf-8")


def main() -> None:
    """Record everything, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", metavar="MACHINE", default="", help="measure on this machine")
    write(record(parser.parse_args().measure))


if __name__ == "__main__":
    main()
