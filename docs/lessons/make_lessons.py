"""Write the lessons as pages, from the same statements as ``pellucid lesson``.

    python docs/lessons/make_lessons.py

Answers and outputs are those that ``make_outputs.py`` recorded: run that first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pellucid.lessons.walks.walk import NAMES, Statement, Walk, load_walk, read_outputs

FOLDER = Path(__file__).parent


def page(walk: Walk) -> Iterator[str]:
    """Yield the lines of one text's page."""
    yield from (f"# {walk.title}", "", as_text(walk.about), "")
    yield f"The same in a terminal: `pellucid lesson {walk.name}`."
    recorded, shown = read_outputs(), set[str]()
    answers = recorded["walks"][walk.name]
    for number, (one, found) in enumerate(zip(walk.statements, answers, strict=True), start=1):
        yield from ("", f"## {number}. {heading(one.place)}", "", as_text(one.says), "")
        yield from (f"*What do you expect?* {as_text(one.expect)}", "")
        if one.command in shown:
            yield from ("Further down in the same output:", "", "```console")
        else:
            yield from ("```console", f"$ {one.command}")
            shown.add(one.command)
        yield from (*found["lines"], "```", "")
        if one.is_measured:
            yield from (f"Measured on {recorded['machine']}; on yours it takes up to a minute.", "")
        yield as_text(found["answer"])
        if one.errs:
            yield from ("", f"**Where the text errs.** {as_text(one.errs)}")
        if further := one.write_next("`{}`"):
            yield from ("", f"Try: {further}")


def heading(place: str) -> str:
    """Name the section of a text whose places begin with its number."""
    is_section = re.match(r"\d+(\.\d+)*(,|:| and )", place)
    return as_text(f"Section {place}" if is_section else place)


def as_text(text: str) -> str:
    """Keep a token such as <end> from being read as HTML."""
    return re.sub(r"(`[^`]*`)|<", lambda match: match[1] or "\\<", text)


def contents() -> Iterator[str]:
    """Yield the lines of the table of all statements."""
    walks = [load_walk(name) for name in NAMES]
    total = sum(len(walk.statements) for walk in walks)
    yield from ("# Lessons", "")
    yield (
        f"Five texts on self-attention and the Transformer, {total} statements in the texts' own "
        "order. Each has a question, a command that answers it, the number, and where the text "
        "errs. `pellucid lesson LESSON` walks through one in the terminal."
    )
    yield from ("", "| lesson | text | statements |", "| --- | --- | ---: |")
    for walk in walks:
        yield f"| [{walk.name}]({walk.name}.md) | {walk.title} | {len(walk.statements)} |"
    yield from ("", "What the texts claim in general is measured, and judged by a rule: "
                "[the answers](../claims.md). Words that are not plain are explained in "
                "[one sentence each](../reference/glossary.md#our-own-words-in-one-sentence-each)."
                )  # fmt: skip
    for walk in walks:
        yield from (
            "",
            f"## {walk.title}",
            "",
            "| | place | shown by |",
            "| ---: | --- | --- |",
        )
        yield from (row(number, one) for number, one in enumerate(walk.statements, start=1))


def row(number: int, one: Statement) -> str:
    """Return the line of a statement in the table."""
    return f"| {number} | {heading(one.place)} | `{one.command}` |"


def main() -> None:
    """Write all pages."""
    for name in NAMES:
        (FOLDER / f"{name}.md").write_text("\n".join(page(load_walk(name))) + "\n")
    (FOLDER / "README.md").write_text("\n".join(contents()) + "\n")


if __name__ == "__main__":
    main()
