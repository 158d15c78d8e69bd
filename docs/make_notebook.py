"""Run the cells of the notebooks, in order, and write what they show into them.

    python docs/make_notebook.py [notebook] [course]

Only the standard library is needed. A cell shows what it prints, then the value of its last line.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

NOTEBOOKS = {name: Path(__file__).with_name(f"{name}.ipynb") for name in ("notebook", "course")}


def run(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run one cell and return its outputs, in the notebook's format."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(text)})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = lines(value._repr_html_())
        outputs.append({"data": data, "metadata": {}, "output_type": "execute_result"})
    return outputs


def lines(text: str) -> list[str]:
    """Split a text as notebooks store it."""
    return text.splitlines(keepends=True)


def completed(notebook: dict[str, Any]) -> dict[str, Any]:
    """Run all cells and return the notebook with their outputs."""
    names: dict[str, Any] = {}
    cells = []
    for number, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] == "code":
            outputs = run("".join(cell["source"]), names)
            for output in outputs:
                if output["output_type"] == "execute_result":
                    output["execution_count"] = number
            cell = {**cell, "outputs": outputs, "execution_count": number}
        cells.append(cell)
    return {**notebook, "cells": cells}


def main() -> None:
    """Run the notebooks that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", choices=[[], *NOTEBOOKS], metavar="NOTEBOOK")
    for name in parser.parse_args().notebooks or NOTEBOOKS:
        path = NOTEBOOKS[name]
        found = completed(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
