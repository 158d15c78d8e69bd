"""``pellucid study``: every head of a model over a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pellucid.cli.ending import LINES_FAILED, note, say_error
from pellucid.cli.lines.pair_files import GOLD, OWN_TARGET, SOURCE, Pairs, pair_files
from pellucid.cli.lines.streams import is_special, read_columns, to_json_line
from pellucid.cli.look.head_history import lay_out_figures, read_gold_columns, to_csv
from pellucid.cli.option_rules import Needs, check_rules
from pellucid.cli.options import (
    HEADS,
    Device,
    From,
    Json,
    Model,
    ModelChanges,
    Threads,
    To,
    described,
)
from pellucid.cli.outputs import Csv, Files, OverwriteFiles, choose_outputs, write_outputs
from pellucid.errors import InputError, suggestion
from pellucid.terminal.progress import ProgressLine

if TYPE_CHECKING:
    from pellucid.bundle import Bundle
    from pellucid.evaluation.word_links import GoldLinks
    from pellucid.inside.studies.head_study import Study

_SORT = "cut_log_probability"
STUDY_RULES = (
    Needs("measured_lines", "gold", "to compare with"),
    Needs("gold", "target", "whose words it links"),
)
MEASURED = 10
"""Lines that are measured by default if there are gold links."""


@described(
    source=SOURCE,
    target=OWN_TARGET,
    gold=GOLD,
    head=(HEADS[1], HEADS[2]),
    sort=("FIGURE", "The figure to sort heads by, the smallest first."),
    measured_lines=(
        "N",
        f"With --gold: compare all measures on N lines; 0 for none. [default: {MEASURED}]",
    ),
)
def study(
    model: Model,
    pairs: Pairs = None,
    source: str | None = None,
    target: str | None = None,
    gold: str | None = None,
    head: list[str] | None = None,
    sort: str | None = None,
    measured_lines: int | None = None,
    source_language: From = None,
    to: To = None,
    change: ModelChanges = None,
    json: Json = False,
    csv_table: Csv = False,
    output: Files = None,
    overwrite: OverwriteFiles = False,
    threads: Threads = None,
    device: Device = None,
) -> int:
    """Study every head of a model over a corpus: weights, links, and the loss without it.

    A table has the weight of each head on the previous, same, next, first and last position;
    entropy, confidence, distance; with --gold the alignment error; and what changes when the head
    is cut. Then the share of target tokens that are the likeliest after each decoder layer, and
    with --gold all measures compared with gold links and with occlusion.

    A file that ends in .html is a page with the heads as a map, .json has everything, .csv the
    table of heads, .txt what the terminal shows. With -o FILE an interrupted command continues
    when it is given again.
    """
    files = pair_files(pairs, source, target, model=model, command="study", needs_target=False)
    given = {"target": files.get("--target"), "gold": gold, "measured_lines": measured_lines}
    check_rules(STUDY_RULES, given)
    sort = _check_sort(sort, gold is not None)
    outputs = choose_outputs(
        output, ("html", "json", "csv", "txt"), overwrite=overwrite, json=json, csv=csv_table
    )
    columns = read_columns({**files, "--gold": gold})

    from pellucid.bundle import load_bundle, resolve_model
    from pellucid.languages.codes import direction
    from pellucid.machine.devices import device_in_use
    from pellucid.machine.hardware import set_threads
    from pellucid.text.language_tokens import with_codes

    set_threads(threads)
    bundle = load_bundle(resolve_model(model), device_in_use())
    language = direction(source_language, to)
    if language is not None:
        columns["--source"] = list(with_codes(bundle.tokenizer, language, columns["--source"]))
    golds = None if gold is None else read_gold_columns(columns, gold, bundle)
    # Measures are compared with gold links, so that without them there is nothing to measure.
    measured = (MEASURED if gold else 0) if measured_lines is None else measured_lines
    places = [path for path in outputs.files if not is_special(str(path))]
    # Next to the result, so that the same command finds it again.
    kept = Path(f"{places[0]}.study") if places else None
    found = _study_heads(bundle, columns, golds, head, measured, kept, change)
    for sentence in found.left_out:
        say_error(sentence)
    for sentence in found.notes:
        note(sentence)
    # Against its own translations every model has a BLEU of 100.
    about: dict[str, Any] = {"title": model, "has_targets": "--target" in columns}
    write_outputs(outputs, lambda form: _to_form(found, form, sort=sort, **about))
    if kept is not None:
        # Only now: an interruption before this line costs one step.
        kept.unlink(missing_ok=True)
    return LINES_FAILED if found.left_out else 0


def _study_heads(
    bundle: Bundle,
    columns: dict[str, list[str]],
    golds: list[GoldLinks] | None,
    heads: list[str] | None,
    num_measured: int,
    kept: Path | None,
    changes: list[str] | None,
) -> Study:
    from pellucid.inside.studies.head_study import study as study_heads

    with ProgressLine(bar="short") as line:
        return study_heads(
            bundle,
            columns["--source"],
            columns.get("--target"),
            golds=golds,
            heads=heads or None,
            num_measured=num_measured,
            kept=kept,
            changes=changes,
            on_step=lambda what, done, total: line.show(f"{done} of {total}: {what[:40]}"),
        )


def _check_sort(sort: str | None, has_gold: bool) -> str:
    """Return the figure to sort by: the given one if there is such a figure."""
    from pellucid.inside.studies.head_study import FIGURES

    known = [name for name in FIGURES if has_gold or not name.startswith("error")]
    if sort is not None and sort not in known:
        raise InputError(
            f"--sort must name a figure of heads, but is {sort!r}. {suggestion(sort, known)}"
        )
    return sort or _SORT


def _to_form(study: Study, form: str, *, sort: str, title: str, has_targets: bool) -> str:
    """Write a study as a page, as JSON, as CSV, or as tables to read."""
    if form == "html":
        from pellucid.inside.studies.study_page import study_page

        return study_page(study, title=title, sort=sort, has_targets=has_targets)
    if form == "json":
        return to_json_line(study.record())
    order = study.heads.order(sort)
    if form == "csv":
        records = study.heads.records()
        rows = [records[index] for index in order]
        for row in rows:
            row["lines"] = " ".join(map(str, study.changed[row["head"]]))
        return to_csv(rows)
    from pellucid.inside.studies.study_page import describe_lines

    text = f"{describe_lines(study, has_targets=has_targets)}\n"
    for cells in (study.heads.cells(order), study.lens.cells(), study.measures.cells()):
        if len(cells) > 1:
            text += "\n" + "".join(f"{row}\n" for row in lay_out_figures(cells))
    return text
