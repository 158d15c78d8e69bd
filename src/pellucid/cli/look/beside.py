"""Two models that answer the same line, shown or written next to each other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pellucid.bundle import resolve_model
from pellucid.cli.ending import warn
from pellucid.cli.look.line import Line, remarks_on, replay_line, report_problems
from pellucid.cli.look.writer import Writer
from pellucid.errors import InputError
from pellucid.files import write_text
from pellucid.formats.exporting import guided_head
from pellucid.inside.ask import Ask, Kind
from pellucid.inside.beside import Side, check_languages, make_side, side_by_side
from pellucid.inside.look import Replaying
from pellucid.inside.record.files import trace_to_json
from pellucid.translate.translator import Translator, load

FORMAT = 1
_CROSS: tuple[Kind, ...] = ("cross",)


def look_beside(
    models: tuple[str, str],
    line: Line,
    files: Mapping[str, Path],
    options: Mapping[str, Any],
    *,
    float64: bool,
    threads: int | None,
) -> int:
    """Let two models answer a line, and show or write both answers.

    Args:
        models: the names of both.
        line: the line.
        files: file to write by kind; without files, the terminal shows the answers.
        options: those of `pellucid.cli.look.options` and of decoding.
        float64: True to keep the arrays in double precision.
        threads: number of processor threads.

    Returns:
        The exit code: 1 if a check of a replay failed.

    Raises:
        InputError: both names are one model, or the models' languages differ.
    """
    if len({resolve_model(name).resolve() for name in models}) == 1:
        raise InputError(
            f"--beside must be another model, but {models[1]} is the same as {models[0]}. Name two."
        )
    translators = [load(name, threads=threads) for name in models]
    check_languages(*(translator.own_bundle for translator in translators))
    _warn_about(line, models, translators)
    sides = [
        _answer(name, translator, line, options, float64=float64)
        for name, translator in zip(_short_names(models), translators, strict=True)
    ]
    exit_code = report_problems([side.trace for side in sides])
    if files:
        _write_sides(line.text, sides, files)
    else:
        _show_sides(line.text, sides, Writer(is_plain=bool(options["plain"])))
    return exit_code


def _short_names(models: Sequence[str]) -> Sequence[str]:
    """Name folders by their last part, unless both would have the same name."""
    names = [Path(model).name or model for model in models]
    return names if len(set(names)) > 1 else models


def _warn_about(line: Line, models: Sequence[str], translators: Sequence[Translator]) -> None:
    """Write remarks on the line to standard error; one that holds for both models, once."""
    remarks = [list(remarks_on(translator, line.text)) for translator in translators]
    if remarks[0] == remarks[1]:
        for sentence in remarks[0]:
            warn(sentence)
        return
    for name, sentences in zip(_short_names(models), remarks, strict=True):
        for sentence in sentences:
            warn(f"{name}: {sentence}")


def _answer(
    name: str, translator: Translator, line: Line, options: Mapping[str, Any], *, float64: bool
) -> Side:
    has_attention = translator.model.config.has_attention
    ask = Ask(kinds=_CROSS) if has_attention else Ask(stages=("vector",))
    trace, *_ = replay_line(translator, line, Replaying(ask, float64=float64), options)
    translation = line.target or translator.tokenizer.decode_target(trace.predicted_ids)
    bundle = translator.own_bundle
    taught = guided_head(bundle)
    return make_side(bundle, trace, name=name, translation=translation, taught=taught)


def _show_sides(line: str, sides: Sequence[Side], writer: Writer) -> None:
    """Show in the terminal what each model answers, token by token, and its map."""
    writer.lines(_summarize(line, sides))
    writer.step(side_by_side(sides))
    for side in sides:
        writer.lines(["", f"{side.name}. {side.reason}"])
        if side.view is not None:
            writer.array(side.trace, side.view.name, side.view.head)


def _write_sides(line: str, sides: Sequence[Side], files: Mapping[str, Path]) -> None:
    """Write what each model answers as JSON, and draw the maps as pictures.

    Raises:
        InputError: there is nothing to draw.
        OutputError: a file cannot be written.
    """
    for kind, path in files.items():
        if kind == "json":
            write_text(path, _sides_to_json(line, sides) + "\n", follows_link=True)
        else:
            from pellucid.inside.show.figures.beside import draw_sides_figure

            draw_sides_figure(sides, path)


def _sides_to_json(line: str, sides: Sequence[Side]) -> str:
    """Turn answers into one JSON object: each with its record and its whole trace."""
    head = json.dumps({"format": FORMAT, "source": line}, ensure_ascii=False)[:-1]
    written = []
    for side in sides:
        record = json.dumps(side.to_record(), ensure_ascii=False, allow_nan=False)[:-1]
        written.append(f'{record}, "trace": {trace_to_json(side.trace)}}}')
    return f'{head}, "sides": [{", ".join(written)}]}}'


def _summarize(line: str, sides: Sequence[Side]) -> Iterator[str]:
    yield f"Source  {line}"
    for side in sides:
        yield ""
        yield f"{side.name}: {side.about}"
        yield f"  {side.translation}"
        checks = ", ".join(f"{name} {value:.1e}" for name, value in side.trace.checks.items())
        checked = f"; checks: largest differences: {checks}" if checks else ""
        yield f"  log-probability {side.log_probability:.4f}{checked}"
    yield ""
    answers = {side.translation for side in sides}
    yield "Both answer the same." if len(answers) == 1 else "The answers differ."
