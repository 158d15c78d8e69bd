"""``pellucid distill``: a small fast model learns from a large one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pellucid.cli.ending import note, warn
from pellucid.cli.options import Changes, Device, Ensemble, Json, Model, Threads, described
from pellucid.errors import ConfigurationError
from pellucid.terminal.text import lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pellucid.training.distill.run import MeasuredModel


@described(
    out=("DIR", "The folder.  [default: runs/RECIPE-student]", {"name": "-o --output"}),
    layers=(
        "E+D",
        "The student's layers; --set model.decoder=ssru gives its decoder recurrent units. "
        "[default: 6+1, or those of a ready-made size: --set model.size=tiny]",
    ),
    half=("", "Halve the student's widths and number of heads."),
    beam=("N", "Number of hypotheses that the teacher grows together.", {"min": 1, "max": 100}),
    n_best=(
        "K",
        "Number of hypotheses that the teacher returns for each sentence, of which the one most "
        "like the reference is taken (sentence BLEU).",
        {"min": 1},
    ),
    extra=("FILE", "More sentences to translate; may be repeated."),
    with_original=("", "Train on the recipe's own pairs too."),
    minutes=(
        "N",
        "Time budget in minutes, for teacher, student and comparison together.",
        {"min": 0.01},
    ),
    guided=("", "Teach a head of the student the word links of the teacher."),
)
def distill(
    model: Model,
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="Its training text is what the teacher translates, its settings are the "
            "student's.",
        ),
    ],
    out: Path | None = None,
    ensemble: Ensemble = None,
    layers: str | None = None,
    half: bool = False,
    beam: int = 5,
    n_best: int = 1,
    extra: list[Path] | None = None,
    with_original: bool = False,
    guided: bool = False,
    minutes: float | None = None,
    json: Json = False,
    threads: Threads = None,
    device: Device = None,
    changes: Changes = None,
) -> None:
    """Teach a small fast model from a large one, and compare the two.

    The teacher translates the recipe's training text with beam search. The student, a model with a
    deep encoder and a shallow decoder unless --layers or model.size says otherwise, is trained on
    these translations. A table compares BLEU on the recipe's test text (or its validation text),
    parameters, bytes and speed. The student is in DIR/student/bundle. The same command again
    resumes.
    """
    # Checked before PyTorch is imported, which takes seconds.
    if n_best > beam:
        raise ConfigurationError(
            f"--n-best must be at most --beam ({beam}), but is {n_best}. Change one of them."
        )
    if Path("-") in (extra or ()):
        raise ConfigurationError(
            "--extra must be a file, which is read again on resuming, but is '-'. Write it into a "
            "file first."
        )
    from pellucid.config import apply_overrides
    from pellucid.training.distill.run import Distillation, distill, judge_student
    from pellucid.training.distill.student import StudentSize
    from pellucid.training.distill.teacher import TeacherSettings
    from pellucid.training.start.found_recipe import find_recipe, recipe_values

    path, folder = find_recipe(recipe)
    if device is not None:
        changes = [*(changes or ()), f"training.device={device}"]
    # A size in the recipe is the teacher's.
    size = apply_overrides({}, changes or ()).get("model", {}).get("size")
    task = Distillation(
        teacher=(model, *(ensemble or ())),
        recipe=recipe_values(path, changes or ()),
        recipe_folder=folder,
        out=out or Path("runs") / f"{path.stem}-student",
        teaching=TeacherSettings(beam, n_best, guided),
        size=StudentSize(size, layers, half),
        extra=extra or (),
        with_original=with_original,
        minutes=minutes,
    )
    rows = distill(task, say=note)
    if json:
        from pellucid.cli.lines.streams import to_json_line

        sys.stdout.write(to_json_line({"rows": [row.to_json() for row in rows]}))
    else:
        _show(rows)
    problem = judge_student(rows)
    if problem is not None:
        warn(problem)
    note(f"The student is in {task.out / 'student' / 'bundle'}.")


def _show(rows: Sequence[MeasuredModel]) -> None:
    """Write the table."""
    measured = "search precision BLEU interval parameters MB tokens/CPU·s bulk/CPU·s"
    heads = ("", *measured.split())
    lines = [heads] + [
        (
            row.name,
            row.search,
            row.precision,
            f"{row.bleu:.1f}",
            f"{row.low:.1f}–{row.high:.1f}",
            f"{row.parameters:,}",
            f"{row.num_bytes / 1e6:.1f}",
            str(row.single),
            str(row.bulk),
        )
        for row in rows
    ]
    # Name, search and precision are words; what follows are numbers.
    for line in lay_out(lines, [index >= 3 for index in range(len(heads))]):
        sys.stdout.write(f"{line}\n")
