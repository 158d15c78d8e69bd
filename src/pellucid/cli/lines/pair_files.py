"""PAIRS: the argument of every command that reads lines with their translations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated

import typer

from pellucid.errors import InputError, PellucidError, not_together
from pellucid.text.reading.pair_sides import PairSide, is_table

Pairs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PAIRS",
        help="Lines with their translations: a .tsv, .jsonl, .csv, .parquet, .po, .xlf or .tmx, or "
        "a source and a target file. Or give the files with --source and --target.",
    ),
]

SOURCE = ("FILE", "Source lines; '-' is standard input.")
TARGET = ("FILE", "Their translations, line by line.")
OWN_TARGET = ("FILE", "Their translations, line by line. [default: the model's own, greedy]")
GOLD = ("FILE", "The gold links of each pair: i-j sure, ipj possible.")


def pair_files(
    pairs: Sequence[str] | None,
    source: str | None,
    target: str | None,
    *,
    model: str | None,
    command: str,
    target_name: str = "--target",
    needs_target: bool = True,
) -> dict[str, str]:
    """Collect the files of both sides, by the names of their options.

    A file with both sides is named twice, as a `PairSide` each.

    Args:
        pairs: the files that PAIRS names.
        source: the file of ``--source``.
        target: that of ``--target``, or of what it is called in this command.
        model: the model, whose languages name columns and keys.
        command: the command, for the message.
        target_name: the option of the target.
        needs_target: False for a command that translates sources without targets itself.

    Raises:
        InputError: the lines come from no file, from too many, or from an unknown kind of file.
    """
    if pairs:
        for name, path in (("--source", source), (target_name, target)):
            if path is not None:
                raise not_together("PAIRS", name, "both name the text")
        if len(pairs) == 1 and is_table(pairs[0]):
            source, target = _sides(pairs[0], model)
        elif len(pairs) == 2 and not any(map(is_table, pairs)):
            source, target = pairs
        else:
            raise InputError(
                "PAIRS must be one file with both sides, such as a .tsv or .jsonl, or a source and "
                f"a target file, but {command} is given {', '.join(pairs)}. A single file of lines "
                "is given with --source."
            )
    found = {"--source": source, target_name: target}
    files = {name: path for name, path in found.items() if path is not None}
    if source is None or (needs_target and target is None):
        needed = [*found] if needs_target else ["--source"]
        missing = [name for name in needed if name not in files]
        raise InputError(
            f"{command} needs lines{' with their translations' if needs_target else ''}: PAIRS (a "
            f".tsv or .jsonl, or two files), or {' and '.join(f'{name} FILE' for name in needed)}. "
            f"Add {' and '.join(missing)}."
        )
    return files


def _sides(path: str, model: str | None) -> tuple[PairSide, PairSide]:
    languages = languages_of(model)
    return PairSide(path, 0, languages), PairSide(path, 1, languages)


def languages_of(model: str | None) -> tuple[str, str]:
    """Read the languages of a model, as far as they are known."""
    if model is None:
        return "", ""
    from pellucid.bundle import resolve_model
    from pellucid.config.parsing import read_json_text

    # Loading the model reports what is wrong with it.
    with suppress(PellucidError, OSError, ValueError):
        path = resolve_model(model) / "config.json"
        config = read_json_text(path.read_text(encoding="utf-8"))
        languages = config.get("languages") if isinstance(config, Mapping) else None
        if isinstance(languages, Mapping):
            return str(languages.get("source", "")), str(languages.get("target", ""))
    return "", ""
