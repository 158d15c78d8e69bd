"""The table of commands, and the list of them that ``pellucid --help`` shows.

Typer takes longer to import than all else that the list needs, so it is written without it.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pellucid.terminal.text import wrap

SUMMARY = "Train, run and look inside encoder-decoder Transformers."

GROUPS = {
    "Learn": {
        "demo": "Train a small translator on the built-in corpus and look inside it.",
        "train": "Train a model from a recipe or a table of pairs; the same command again resumes.",
        "distill": "Teach a small fast model from a large one, and compare the two.",
        "recipe": "Show what training would choose and why, or what a key means.",
    },
    "Translate": {
        "translate": "Translate lines, the texts of JSON Lines, or a document, keeping their "
        "order.",
        "bulk": "Translate many files with many workers, on one machine or on many.",
        "serve": "Serve models over HTTP: an API, LibreTranslate's clients, and a page.",
        "keys": "Make, list and remove the keys of clients of a server.",
    },
    "Look inside": {
        "look": "Look inside one translation: translate, replay, and show what was computed.",
        "why": "Say why a model wrote a word and not another one.",
        "patch": "Put vectors of one sentence into another, and see which turn the translation.",
        "study": "Study every head of a model over a corpus: weights, links, and the loss without "
        "it.",
        "vectors": "Collect the vectors of many lines at one place of a model.",
        "history": "Follow every head of a model through its training.",
    },
    "Measure": {
        "evaluate": "Score translations against a reference: BLEU, chrF and TER.",
        "score": "Compute the log-probability of given translations.",
        "align": "Link the words of lines and their translations by cross-attention.",
    },
    "Models": {
        "inspect": "Describe a model: sizes, parameters, data, training, hashes.",
        "convert": "Import a model of another program into a bundle.",
        "export": "Export a model to Marian or CTranslate2, or to a bundle of lower precision.",
    },
    "Text": {
        "check": "Report what is odd about the text of a recipe, or about a table of pairs.",
        "extract": "Write the texts of documents with their translations as tab-separated pairs.",
        "corpus": "Write the built-in English-French corpus, with its gold links and antecedents.",
    },
    "Lessons": {
        "attend": "Work out attention by hand: an example from a text, or your own matrices.",
        "lesson": "Walk through a text on self-attention, statement by statement.",
        "claim": "Measure a claim of the texts on this machine, in a minute or two.",
    },
    "This program": {
        "help": "Show the help of a command.",
        "info": "Show versions, what was built, threads and extras, for a report of a bug.",
        "completion": "Write a script that completes commands, options and known values.",
    },
}
"""One line of help for each command. The function NAME is in `pellucid.cli.commands.NAME`."""

SUBCOMMANDS = {
    "bulk": {
        "run": "Begin a job, or resume it.",
        "join": "Work on a job that another command began.",
        "status": "Show what is done, and by which commands.",
        "collect": "Write the results of a finished job.",
    },
    "keys": {
        "add": "Make a key, write it, and add its hash to a key file.",
        "list": "List the names of the keys.",
        "remove": "Remove a key.",
    },
}
"""The commands of a command: ``bulk run`` is the function ``bulk_run``."""

COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}

NAMES = [
    name
    for group in COMMANDS
    for name in ([f"{group} {word}" for word in SUBCOMMANDS.get(group, ())] or [group])
]
"""The full names of all commands that do something, as in ``bulk run``."""

HELP_OPTIONS = ("-h", "--help")
OPTIONS = {
    "-V, --version": "Show the version and the engine, and exit.",
    "-q, --quiet": "Write only errors to standard error.",
    ", ".join(HELP_OPTIONS): "Show this message and exit.",
}

# Columns that help takes on the narrowest terminal.
NARROWEST = 50


@cache
def read_help() -> Mapping[str, Any]:
    """Read the headings of options, and two examples for each command."""
    import tomllib  # Only help needs it.

    return tomllib.loads(Path(__file__).with_name("help.toml").read_text(encoding="utf-8"))


def help_width() -> int:
    """Return the columns of the terminal."""
    return max(NARROWEST, shutil.get_terminal_size().columns)


def asks_for_overview(arguments: Sequence[str]) -> bool:
    """Tell whether arguments ask for the list of commands, and nothing else."""
    return tuple(arguments) in {("help",), *((option,) for option in HELP_OPTIONS)}


def show_overview() -> None:
    """Write the list of commands."""
    sys.stdout.writelines(f"{line}\n" for line in overview(help_width() - 2))


def show_group(name: str) -> None:
    """Write the list of a command's own commands."""
    tables = {"Commands": SUBCOMMANDS[name]}
    lines = _list(f"pellucid {name} COMMAND [ARGS]...", COMMANDS[name], tables, help_width() - 2)
    sys.stdout.writelines(f"{line}\n" for line in lines)


def overview(width: int) -> Iterator[str]:
    """Yield the lines of the list of commands.

    Args:
        width: of the longest line, in characters.
    """
    yield from _list(
        "pellucid [OPTIONS] COMMAND [ARGS]...", SUMMARY, {"Options": OPTIONS, **GROUPS}, width
    )
    yield ""
    yield from wrap("pellucid help COMMAND shows the options of one, with examples.", width)


def _list(
    usage: str, summary: str, tables: Mapping[str, Mapping[str, str]], width: int
) -> Iterator[str]:
    yield f"Usage: {usage}"
    yield ""
    yield from wrap(summary, width, first="  ", breaks_words=True)
    column = max(len(name) for table in tables.values() for name in table)
    for heading, table in tables.items():
        yield ""
        yield f"{heading}:"
        for name, line in table.items():
            first = f"  {name:{column}}  "
            later = " " * len(first)
            yield from wrap(line, width, first=first, later=later, breaks_words=True)
