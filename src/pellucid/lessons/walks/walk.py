"""The walks through the texts: each a TOML file next to this one."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any

from pellucid.errors import InputError, suggestion

NAMES = ("lecture", "slides", "notes", "objectives", "study-notes")
"""The texts, from the first to read to the last."""

SENTENCE = "The pizza came out of the oven and it tasted good."
"""The sentence that a page shows for a statement whose command has none."""


OUTPUTS = "outputs.json"
"""The file with the outputs, which ``docs/lessons/make_outputs.py`` writes."""


def read_outputs() -> dict[str, Any]:
    """Read what was recorded: ``machine``, ``cells``, by walk each statement's answer and lines."""
    text = files("pellucid.lessons.walks").joinpath(OUTPUTS).read_text(encoding="utf-8")
    return dict(json.loads(text))


@dataclass(frozen=True)
class Statement:
    """One statement of a text, with what shows it.

    Attributes:
        place: where the text says it: a section, an equation, a slide.
        says: what it says, in our words.
        expect: a question to answer before the command runs.
        command: what shows it, as typed after the prompt: ``pellucid attend toy-four --page 2``.
        shows: phrases of the output that answer the question. Each stands in one of its lines.
        number: the answer, in one sentence; names in braces are numbers of the output.
        read: for each name a pattern that finds its number in the output; a space of it is any
            white space.
        check: an expression that is true if the answer is, of these numbers, ``output``, ``exp``,
            ``sin``, ``inf`` and ``rows(heading)``: the first table after a heading, as numbers by
            the label of their row. The tests compute it, and make each part fail on other output.
        errs: where the text errs, and what is right; empty if it does not.
        to_try: commands to try next.
        vary: what they show, or what to try without a command.
        lines: how many lines of the output to show, from the first that has a phrase of ``shows``;
            0 for all. Of what is measured the answer is shown, and each paragraph that has one.
        live: what a page shows of the model after the answer, as ``VIEW HEAD:ROW>COLUMN``; empty if
            no view shows it. HEAD is ``PART.LAYER.KIND.HEAD`` of the packaged model; ROW and COLUMN
            are words, of the decoder the word that the row predicts. A stage, a step of the
            arithmetic or a part of *Change* may follow. ``@pronoun`` and ``@copying`` stand for the
            cells of `find_cells`, ``@pronoun:`` for the head alone, ``@pronoun.row`` for its word.
    """

    place: str
    says: str
    expect: str
    command: str
    shows: tuple[str, ...]
    number: str
    read: dict[str, str] = field(default_factory=dict)
    check: str = ""
    errs: str = ""
    to_try: tuple[str, ...] = ()
    vary: str = ""
    lines: int = 0
    live: str = ""

    @property
    def arguments(self) -> list[str]:
        """The command's arguments, after the word ``pellucid``."""
        first, *arguments = shlex.split(self.command)
        assert first == "pellucid", self.command
        return arguments

    @property
    def sentence(self) -> str:
        """The sentence that a page shows with it: that of the command, or the texts' own."""
        arguments = self.arguments
        if arguments[:2] not in (["look", "demo"], ["why", "demo"]):
            return SENTENCE
        # --contexts names a word before the sentences.
        rest = arguments[4:] if arguments[2] == "--contexts" else arguments[2:]
        return rest[0]

    def write_next(self, code: str = "{}") -> str:
        """Write what to try next, with each command in a form such as ``code`` has."""
        written = " · ".join(code.format(command) for command in self.to_try)
        return ": ".join(part for part in (written, self.vary) if part)

    @property
    def is_measured(self) -> bool:
        """Whether the command measures on this machine, so that its output varies."""
        return self.arguments[0] == "claim"

    def excerpt(self, output: str) -> list[str]:
        """Cut from the command's output what answers the question.

        Raises:
            ValueError: the output does not have it.
        """
        lines = output.splitlines()
        for phrase in self.shows:
            if phrase not in output:
                raise ValueError(f"{self.command} must show {phrase!r}, but does not")
        # What was measured differs each time: a number of lines would cut a table anywhere.
        if self.is_measured:
            first, *others = output.strip().split("\n\n")
            kept = [first, *(one for one in others if any(each in one for each in self.shows))]
            return "\n\n".join(kept).splitlines()
        if not self.lines:
            return lines
        start = next(n for n, line in enumerate(lines) if any(one in line for one in self.shows))
        return lines[start : start + self.lines]

    def find_numbers(self, output: str) -> dict[str, str]:
        """Find the numbers of the answer in the command's output.

        Raises:
            ValueError: the output does not have one.
        """
        found = {}
        for name, pattern in self.read.items():
            # Lines are broken at the width of the terminal.
            match = re.search(pattern.replace(" ", r"\s+"), output, re.MULTILINE)
            if match is None:
                raise ValueError(f"{self.command} must show {pattern!r}, but does not")
            found[name] = " ".join(match[1].split())
        return found

    def answer(self, output: str) -> str:
        """Return the answer with the numbers of the command's output."""
        return self.number.format(**self.find_numbers(output))


@dataclass(frozen=True)
class Walk:
    """One text as a walk.

    Attributes:
        name: the word after ``pellucid lesson``.
        title: the text's title.
        about: what the text is, and what to have seen at its end.
        statements: in the text's order.
    """

    name: str
    title: str
    about: str
    statements: tuple[Statement, ...]

    def to_record(self) -> dict[str, Any]:
        """Return the walk as data, for pages, with the answers that were recorded."""
        record = asdict(self)
        answers = read_outputs()["walks"][self.name]
        for statement, recorded in zip(record["statements"], answers, strict=True):
            statement["number"] = recorded["answer"]
        return record


def load_walk(name: str) -> Walk:
    """Load a walk.

    Raises:
        InputError: it does not exist.
    """
    if name not in NAMES:
        raise InputError(f"The lesson {name!r} does not exist. {suggestion(name, NAMES)}")
    text = files("pellucid.lessons.walks").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    # Which head decides differs between models: it is found when the outputs are recorded.
    for cell_name, cell in read_outputs()["cells"].items():
        head, row, _ = re.split("[:>]", cell)
        text = text.replace(f"@{cell_name}.row", row).replace(f"@{cell_name}:", f"{head}:")
        text = text.replace(f"@{cell_name}", cell)
    table = tomllib.loads(text)
    statements = []
    for one in table["statements"]:
        lists = {key: tuple(one.get(key, ())) for key in ("shows", "to_try")}
        statements.append(Statement(**{**one, **lists}))
    return Walk(name, table["title"], table["about"], tuple(statements))
