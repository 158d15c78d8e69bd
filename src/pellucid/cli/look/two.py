"""Two models that answer one line, and the difference of two heads: shown, drawn or written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pellucid.bundle import resolve_model
from pellucid.cli.look.replaying import LookedLine, remarks_on, replay_line, report_problems
from pellucid.cli.look.trace import choose_array
from pellucid.cli.look.writer import LookWriter
from pellucid.config.head_address import parse_head
from pellucid.errors import InputError
from pellucid.files import write_text
from pellucid.inside.ask import Ask
from pellucid.inside.heads.compare import MapDifference, compare_heads
from pellucid.inside.line_traces import Replaying
from pellucid.inside.record.trace_files import trace_to_json
from pellucid.inside.show.view import HeadView
from pellucid.inside.traces import Trace
from pellucid.inside.two_models import AnswerOfModel, check_languages, make_answer, side_by_side
from pellucid.translate.translator import Translator, load

FORMAT = 1


def look_beside(
    models: tuple[str, str],
    line: LookedLine,
    files: Mapping[Path, str],
    options: Mapping[str, Any],
    *,
    float64: bool,
    threads: int | None,
) -> int:
    """Let two models answer a line, and show or write both answers.

    Args:
        models: the names of both.
        line: the line.
        files: the form of each file; without files, the terminal shows the answers.
        options: those of `pellucid.cli.look.look_options` and of decoding.
        float64: True to keep the arrays in double precision.
        threads: number of processor threads.

    Returns:
        The exit code: 1 if a check of a replay failed.

    Raises:
        InputError: both names are one model, or the models' languages differ.
    """
    if len({resolve_model(name).resolve() for name in models}) == 1:
        raise InputError(
            f"--compare-model must be another model, but {models[1]} is the same as {models[0]}. "
            "Name two."
        )
    translators = [load(name, threads=threads) for name in models]
    check_languages(*(translator.bundle for translator in translators))
    # The codes of languages differ from model to model.
    lines = [line.coded(translator.tokenizer) for translator in translators]
    _warn_about(lines, models, translators)
    sides = [
        _answer(name, translator, one, options, float64=float64)
        for name, translator, one in zip(_short_names(models), translators, lines, strict=True)
    ]
    exit_code = report_problems([side.trace for side in sides])
    if files:
        for path, form in files.items():
            if form == "json":
                write_text(path, _sides_to_json(line.text, sides) + "\n", follows_link=True)
            else:
                from pellucid.inside.show.figures.beside import draw_answers_figure

                draw_answers_figure(sides, path)
    else:
        _show_answers(line.text, sides, LookWriter())
    return exit_code


def _short_names(models: Sequence[str]) -> Sequence[str]:
    """Name folders by their last part, unless both would have the same name."""
    names = [Path(model).name or model for model in models]
    return names if len(set(names)) > 1 else models


def _warn_about(
    lines: Sequence[LookedLine], models: Sequence[str], translators: Sequence[Translator]
) -> None:
    """Write remarks on the line to standard error; one that holds for both models, once."""
    remarks = [
        list(remarks_on(translator, line.text))
        for translator, line in zip(translators, lines, strict=True)
    ]
    # The same sentence twice would look like two faults.
    if remarks[0] == remarks[1]:
        for say, sentence in remarks[0]:
            say(sentence)
        return
    for name, sentences in zip(_short_names(models), remarks, strict=True):
        for say, sentence in sentences:
            say(f"{name}: {sentence}")


def _answer(
    name: str,
    translator: Translator,
    line: LookedLine,
    options: Mapping[str, Any],
    *,
    float64: bool,
) -> AnswerOfModel:
    # A model without attention has no map, but its one vector can be shown.
    has_attention = translator.model.config.has_attention
    ask = Ask("decoder.*.cross") if has_attention else Ask(stages=("vector",))
    trace, *_ = replay_line(translator, line, Replaying(ask, float64=float64), options)
    translation = line.target or translator.tokenizer.decode_target(trace.predicted_ids)
    bundle = translator.bundle
    return make_answer(bundle, trace, name=name, translation=translation)


def _show_answers(line: str, sides: Sequence[AnswerOfModel], writer: LookWriter) -> None:
    """Show in the terminal what each model answers, token by token, and its map."""
    writer.lines(_summarize_answers(line, sides))
    writer.table(side_by_side(sides))
    for side in sides:
        writer.lines(["", f"{side.name}. {side.reason}"])
        if side.view is not None:
            writer.array(side.trace, side.view.name, side.view.head)


def _sides_to_json(line: str, sides: Sequence[AnswerOfModel]) -> str:
    """Turn answers into one JSON object: each with its record and its whole trace."""
    # Joined as text: a trace writes its own JSON, array by array.
    head = json.dumps({"format": FORMAT, "source": line}, ensure_ascii=False)[:-1]
    written = []
    for side in sides:
        record = json.dumps(side.to_record(), ensure_ascii=False, allow_nan=False)[:-1]
        written.append(f'{record}, "trace": {trace_to_json(side.trace)}}}')
    return f'{head}, "sides": [{", ".join(written)}]}}'


def _summarize_answers(line: str, sides: Sequence[AnswerOfModel]) -> Iterator[str]:
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


@dataclass(frozen=True)
class HeadOnLine:
    """One head on one line.

    Attributes:
        trace: trace of the line.
        head: the head.
        name: name for a reader.
    """

    trace: Trace
    head: str
    name: str

    @property
    def view(self) -> HeadView:
        """The head's weights as a map to draw."""
        head = parse_head(self.head)
        return HeadView.of(self.trace, f"{head.site}.weights", head.head or 0)


def choose_side(trace: Trace, head: str | None, name: str) -> HeadOnLine:
    """Choose the head to compare: the given one, or else the one that would be shown.

    Args:
        trace: trace of a line.
        head: such as ``decoder.1.cross.3``.
        name: name of the line and the model.

    Raises:
        InputError: the head does not exist.
    """
    if head is None:
        found, number, _ = choose_array(trace)
        head = f"{found.rpartition('.')[0]}.{number}"
    address = str(parse_head(head))
    return HeadOnLine(trace, address, f"{address}, {name}")


def show_difference(first: HeadOnLine, second: HeadOnLine, writer: LookWriter) -> None:
    """Show one head's weights minus another's.

    Raises:
        InputError: the heads are of different parts or kinds.
    """
    difference = compare_heads(first.trace, first.head, second.trace, second.head)
    writer.lines(_describe_difference(first, second, difference))
    if difference.values.size:
        rows = difference.row_tokens
        columns = difference.column_tokens
        writer.matrix(difference.values, rows, columns, is_share=False)


def draw_difference(first: HeadOnLine, second: HeadOnLine, files: Iterable[Path]) -> None:
    """Draw one head's weights minus another's into files.

    Raises:
        InputError: the heads are of different parts or kinds, or share no word.
        OutputError: a file cannot be written.
    """
    from pellucid.inside.show.figures.draw import draw_difference_figure

    for path in files:
        names = (first.name, second.name)
        draw_difference_figure(first.view, second.view, path, names=names)


def _describe_difference(
    first: HeadOnLine, second: HeadOnLine, difference: MapDifference
) -> Iterator[str]:
    yield f"Weights of     {first.name}"
    yield f"minus those of {second.name}"
    yield (
        f"Half the sum of a row's absolute differences, on average: {difference.distance:.3f}; it "
        "is 0 for two equal rows, and 1 for two that share no word."
    )
    sides: Any = (
        ("first", first, difference.only_first),
        ("second", second, difference.only_second),
    )
    for which, side, rows in sides:
        tokens = side.view.rows
        if rows:
            yield f"Rows that only the {which} has: {' '.join(tokens[row] for row in rows)}"
    left = difference.left_out
    # Less would be written as 0.00.
    if left.size and left.max() > 0.005:
        yield (
            "Weight on columns that only one of them has, on average over the rows: "
            f"{left[:, 0].mean():.2f} of the first, {left[:, 1].mean():.2f} of the second."
        )
    yield "Columns are attended to. Blue: the first has less weight; orange: it has more."


def look_at_difference(
    translator: Translator,
    trace: Trace,
    line: LookedLine,
    files: Mapping[Path, str],
    options: Mapping[str, Any],
    threads: int | None,
) -> int:
    """Show or draw the difference to another line, another head or another model."""
    other_text = options["compare_text"] or line.text
    name = options["compare_model"]
    other = translator if name is None else load(name, threads=threads)
    # The prefix begins the translation of the first line only.
    other_prefix = line.prefix if other_text == line.text else None
    other_line = replace(line, text=other_text, prefix=other_prefix).coded(other.tokenizer)
    second, *_ = replay_line(other, other_line, Replaying(), options)
    exit_code = report_problems([trace, second])
    first_side = choose_side(trace, None, f"{translator.bundle.folder.name}: {line.text}")
    # The same head on both sides, unless another one is named.
    head = options["compare_head"] or str(first_side.head)
    second_side = choose_side(second, head, f"{other.bundle.folder.name}: {other_text}")
    if files:
        draw_difference(first_side, second_side, files)
    else:
        show_difference(first_side, second_side, LookWriter())
    return exit_code
