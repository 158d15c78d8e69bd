"""``pellucid history``: every head through a training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pellucid.cli.lines.pair_files import GOLD, OWN_TARGET, SOURCE, Pairs, pair_files
from pellucid.cli.lines.streams import read_columns
from pellucid.cli.option_rules import Needs, check_rules
from pellucid.cli.options import HEADS, Device, Json, Threads, described
from pellucid.cli.outputs import Csv, Files, OverwriteFiles, choose_outputs
from pellucid.errors import InputError, suggestion

HISTORY_RULES = (
    Needs("gold", "target", "whose words it links"),
    Needs("antecedents", "target"),
)


@described(
    source=SOURCE,
    target=OWN_TARGET,
    gold=GOLD,
    antecedents=("FILE", "The pronouns of each pair, as corpus writes them."),
    head=(HEADS[1], HEADS[2]),
    figure=(
        "FIGURE",
        "The figure to show. [default: pronoun with --antecedents, error_predicts with --gold, "
        "otherwise entropy]",
    ),
)
def history(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run folder, which keeps models.")],
    pairs: Pairs = None,
    source: str | None = None,
    target: str | None = None,
    gold: str | None = None,
    antecedents: str | None = None,
    head: list[str] | None = None,
    figure: str | None = None,
    json: Json = False,
    csv_table: Csv = False,
    output: Files = None,
    overwrite: OverwriteFiles = False,
    threads: Threads = None,
    device: Device = None,
) -> int:
    """Follow every head of a model through its training.

    The table has one figure of each head at each model that the run keeps; --json, --csv and files
    that end in .json and .csv have all figures. A file that ends in .svg is a moving picture.
    """
    sides = pair_files(pairs, source, target, model=run, command="history", needs_target=False)
    given = {"target": sides.get("--target"), "gold": gold, "antecedents": antecedents}
    check_rules(HISTORY_RULES, given)
    outputs = choose_outputs(
        output, ("svg", "json", "csv", "txt"), overwrite=overwrite, json=json, csv=csv_table
    )
    shown = _choose_figure(figure, gold is not None, antecedents is not None)
    columns = read_columns({**sides, "--gold": gold, "--antecedents": antecedents})

    from pellucid.cli.look.head_history import draw_history, follow_run, write_found
    from pellucid.machine.hardware import set_threads

    set_threads(threads)
    course = follow_run(run, columns, head)
    drawing, meaning = draw_history(course, shown, Path(run).name)
    return write_found(course, meaning, course.cells(shown), outputs, drawing)


def _choose_figure(figure: str | None, has_gold: bool, has_pronouns: bool) -> str:
    """Return the given figure if heads have it, or the one that the given files are about."""
    from pellucid.inside.studies.head_study import CUTS, FIGURES
    from pellucid.inside.studies.line_figures import PRONOUN_FIGURES

    known = [name for name in FIGURES if has_gold or not name.startswith("error")]
    known = [name for name in known if name not in CUTS]
    known += PRONOUN_FIGURES if has_pronouns else ()
    if figure is not None and figure not in known:
        raise InputError(
            f"--figure must name a figure of heads, but is {figure!r}. {suggestion(figure, known)}"
        )
    return figure or ("pronoun" if has_pronouns else "error_predicts" if has_gold else "entropy")
