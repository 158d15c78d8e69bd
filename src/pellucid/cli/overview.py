"""The table of commands, and the list of them that ``pellucid --help`` shows.

Typer takes longer to import than all else that the list needs, so it is written without it.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence

from pellucid.terminal.text import wrap

SUMMARY = "Train, run and look inside encoder-decoder Transformers."

COMMANDS = {
    "demo": "Train a small translator on the built-in corpus and look inside it.",
    "train": "Train a model from a recipe or a table of pairs; the same command again resumes.",
    "distill": "Teach a small fast model from a large one, and compare the two.",
    "translate": "Translate lines, the texts of JSON Lines, or a document, keeping their order.",
    "extract": "Write the texts of documents with their translations as tab-separated pairs.",
    "bulk": "Translate many files with many workers, on one machine or on many.",
    "look": "Look inside one translation: translate, replay, and show what was computed.",
    "study": "Study every head of a model over a corpus: weights, links, and the loss without it.",
    "align": "Link the words of lines and their translations by cross-attention.",
    "evaluate": "Score translations against a reference: BLEU, chrF and TER.",
    "inspect": "Describe a model: sizes, parameters, data, training, hashes.",
    "corpus": "Write the built-in English-French corpus, with its gold links and antecedents.",
    "score": "Compute the log-probability of given translations.",
    "attend": "Work out attention by hand: an example from a text, or your own matrices.",
    "lesson": "Walk through a text on self-attention, statement by statement.",
    "why": "Measure a claim of the texts on this machine, in a minute or two.",
    "serve": "Serve models over HTTP: an API, LibreTranslate's clients, and a page.",
    "convert": "Import a Marian or OPUS-MT model into a bundle.",
    "export": "Export a model to Marian or CTranslate2, or to a bundle of lower precision.",
}
"""One line of help for each command. The function NAME is in `pellucid.cli.commands.NAME`."""

HELP_OPTIONS = ("-h", "--help")
OPTIONS = {
    "-V, --version": "Show the version and exit.",
    "-q, --quiet": "Write only errors to standard error.",
    ", ".join(HELP_OPTIONS): "Show this message and exit.",
}

# Columns that Typer's help takes on the narrowest and on the widest terminal.
NARROWEST = 50
WIDEST = 78


def asks_for_overview(arguments: Sequence[str]) -> bool:
    """Tell whether arguments ask for the list of commands, and nothing else."""
    return len(arguments) == 1 and arguments[0] in HELP_OPTIONS


def show_overview() -> None:
    """Write the list of commands as Typer would."""
    columns = shutil.get_terminal_size().columns
    width = max(NARROWEST, min(columns - 2, WIDEST))
    sys.stdout.writelines(f"{line}\n" for line in overview(width))


def overview(width: int) -> Iterator[str]:
    """Yield the lines of the list of commands.

    Args:
        width: of the longest line, in characters.
    """
    yield "Usage: pellucid [OPTIONS] COMMAND [ARGS]..."
    yield ""
    yield from wrap(SUMMARY, width, first="  ", breaks_words=True)
    for heading, table in (("Options", OPTIONS), ("Commands", COMMANDS)):
        yield ""
        yield f"{heading}:"
        column = max(map(len, table))
        for name, line in table.items():
            first = f"  {name:{column}}  "
            later = " " * len(first)
            yield from wrap(line, width, first=first, later=later, breaks_words=True)
