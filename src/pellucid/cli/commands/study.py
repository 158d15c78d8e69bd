"""``pellucid study``: every head of a model over a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pellucid.cli.ending import LINES_FAILED, note, say_error
from pellucid.cli.lines.streams import (
    STANDARD,
    check_target,
    is_special,
    open_output,
    read_parallel,
    to_json_line,
)
from pellucid.cli.look.head_history import (
    Form,
    draw_history,
    follow_run,
    lay_out_figures,
    read_gold_columns,
    write_csv,
    write_found,
)
from pellucid.cli.option_rules import Apart, Needs, check_rules
from pellucid.cli.options import Json, Model, OutputFile, Overwrite, Threads, described
from pellucid.errors import InputError, suggestion
from pellucid.terminal.progress import ProgressLine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from pellucid.bundle import Bundle
    from pellucid.evaluation.word_links import GoldLinks
    from pellucid.inside.studies.head_study import Study

_SORT = "cut_log_probability"
STUDY_RULES = (
    Apart("json", "csv"),
    Needs("at position", "patch"),
    Needs("antecedents svg", "history"),
    Apart("head gold measures sort html history", "patch", "pairs are patched, not heads"),
    Apart("html measures", "history", "it is of one model"),
    Needs("measures", "gold", "to compare with"),
    Needs("gold", "target", "whose words it links"),
    Needs("antecedents", "target"),
)
MEASURED = 10
"""Lines that are measured by default if there are gold links."""


@described(
    source=("FILE", "Source lines; '-' is standard input."),
    target=("FILE", "Their translations. [default: the model's own, greedy]"),
    gold=("FILE", "The gold links of each pair: i-j sure, ipj possible; needs --target."),
    head=("HEAD", "Study this head only: decoder.1.cross.0, or * for all; may be repeated."),
    sort=("FIGURE", "The figure to sort heads by, the smallest first."),
    measures=(
        "N",
        f"With --gold: compare all measures on N lines; 0 for none. [default: {MEASURED}]",
    ),
    patch=("", "Patch line 2i with vectors of line 2i - 1, instead of studying heads."),
    at=("SITE", "With --patch: as for look; may be repeated. [default: encoder]"),
    position=("WORD", "With --patch: a column for this word; may be repeated."),
    history=("", "Follow the heads through the models that the run folder MODEL keeps."),
    antecedents=(
        "FILE",
        "With --history and --target: the pronouns of each pair, as corpus writes them.",
    ),
    svg=("FILE", "With --history: draw the figure that --sort names, as a moving picture."),
    csv_table=("", "Write the table of heads as CSV.", {"name": "--csv"}),
    html=("FILE", "Write a page with the heads as a map."),
)
def study(
    model: Model,
    source: str,
    target: str | None = None,
    gold: str | None = None,
    head: list[str] | None = None,
    sort: str | None = None,
    measures: int | None = None,
    patch: bool = False,
    at: list[str] | None = None,
    position: list[str] | None = None,
    history: bool = False,
    antecedents: str | None = None,
    svg: str | None = None,
    json: Json = False,
    csv_table: bool = False,
    html: str | None = None,
    output_file: OutputFile = STANDARD,
    overwrite: Overwrite = False,
    threads: Threads = None,
) -> int:
    """Study every head of a model over a corpus: weights, links, and the loss without it.

    A table has the weight of each head on the previous, same, next, first and last position;
    entropy, confidence, distance; with --gold the alignment error; and what changes when the head
    is cut. Then the share of target tokens that are the likeliest after each decoder layer, and
    with --gold all measures compared with gold links and with occlusion.

    With -o FILE or --html FILE an interrupted command continues when it is given again.

    With --patch, lines are pairs: the first and the second, the third and the fourth. The table
    has the share of the difference between their answers that vectors of the first line restore in
    the second, over all pairs, with 95 % intervals.

    With --history, MODEL is a run folder. The table has one figure, named by --sort, of each head
    at each kept model; --json and --csv have all figures of weights.
    """
    given = {
        "target": target,
        "gold": gold,
        "head": head,
        "sort": sort,
        "measures": measures,
        "patch": patch,
        "at": at,
        "position": position,
        "history": history,
        "antecedents": antecedents,
        "svg": svg,
        "json": json,
        "csv": csv_table,
        "html": html,
    }
    check_rules(STUDY_RULES, given)
    form: Form = "json" if json else "csv" if csv_table else "text"
    sort = _check_sort(sort, gold is not None, history, antecedents is not None)
    places = _check_places((output_file, html, svg), overwrite=overwrite)
    files = {"--source": source, "--target": target, "--gold": gold, "--antecedents": antecedents}
    columns = _read_columns(files)

    from pellucid.bundle import load_bundle, resolve_model
    from pellucid.files import write_text
    from pellucid.inside.studies.study_page import study_page
    from pellucid.machine.hardware import set_threads

    set_threads(threads)
    if history:
        course = follow_run(model, columns, head)
        title = draw_history(course, sort, Path(model).name, svg)
        cells = course.cells(sort)
        return write_found(course, title, cells, form, output_file, overwrite=overwrite)
    bundle = load_bundle(resolve_model(model))
    if patch:
        return _patch(bundle, columns, at, position, form, output_file, overwrite=overwrite)
    golds = None if gold is None else read_gold_columns(columns, gold, bundle)
    # Measures are compared with gold links, so that without them there is nothing to measure.
    measured = (MEASURED if gold else 0) if measures is None else measures
    # Next to the result, so that the same command finds it again.
    kept = Path(f"{places[0]}.study") if places else None
    found = _study_heads(bundle, columns, golds, head, measured, kept)
    for sentence in found.left_out:
        say_error(sentence)
    for sentence in found.notes:
        note(sentence)
    if html is not None:
        write_text(Path(html), study_page(found, title=model, sort=sort))
    if html is None or output_file != STANDARD or form != "text":
        with open_output(output_file, may_overwrite=overwrite) as output:
            _write(found, sort, form, output)
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
) -> Study:
    from pellucid.inside.studies.head_study import study as study_heads

    with ProgressLine(bar="short") as line:
        return study_heads(
            bundle,
            columns["--source"],
            columns.get("--target"),
            golds=golds,
            heads=heads,
            num_measured=num_measured,
            kept=kept,
            on_step=lambda what, done, total: line.show(f"{done} of {total}: {what[:40]}"),
        )


def _check_sort(sort: str | None, has_gold: bool, is_history: bool, has_pronouns: bool) -> str:
    """Return the figure to sort by or to follow: the given one if there is such a figure."""
    from pellucid.inside.studies.head_study import CUTS, FIGURES
    from pellucid.inside.studies.line_figures import PRONOUN_FIGURES

    known = [name for name in FIGURES if has_gold or not name.startswith("error")]
    usual = _SORT
    if is_history:
        known = [name for name in known if name not in CUTS]
        known += PRONOUN_FIGURES if has_pronouns else ()
        # The figure that the given files are about.
        usual = "pronoun" if has_pronouns else "error_predicts" if has_gold else "entropy"
    if sort is not None and sort not in known:
        raise InputError(
            f"--sort must name a figure of heads, but is {sort!r}. {suggestion(sort, known)}"
        )
    return sort or usual


def _check_places(paths: Sequence[str | None], *, overwrite: bool) -> list[str]:
    """Make sure that files can be written, and return them, without streams."""
    places = [path for path in paths if path is not None and not is_special(path)]
    for path in places:
        check_target(path, may_overwrite=overwrite)
    return places


def _read_columns(named: Mapping[str, str | None]) -> dict[str, list[str]]:
    files = {name: path for name, path in named.items() if path is not None}
    return dict(zip(files, read_parallel(files, damaged_in=("--source", "--target")), strict=True))


def _patch(
    bundle: Bundle,
    columns: dict[str, list[str]],
    sites: list[str] | None,
    words: list[str] | None,
    form: Form,
    output_file: str,
    *,
    overwrite: bool,
) -> int:
    from pellucid.inside.studies.patched import patch_corpus

    with ProgressLine(bar="short") as line:
        found = patch_corpus(
            bundle,
            columns["--source"],
            columns.get("--target"),
            sites=sites,
            words=words or (),
            on_step=lambda done, total: line.show(f"{done} of {total} pairs"),
        )
    title = (
        f"{found.num_pairs:,} pairs of lines; the share of the difference between the answers to "
        "both that vectors of the first line restore in the second, with its 95 % interval. "
        "Shares need not add up."
    )
    return write_found(found, title, found.cells(), form, output_file, overwrite=overwrite)


def _write(study: Study, sort: str, form: Form, output: TextIO) -> None:
    if form == "json":
        output.write(to_json_line(study.record()))
        return
    order = study.heads.order(sort)
    if form == "csv":
        records = study.heads.records()
        rows = [records[index] for index in order]
        for row in rows:
            row["lines"] = " ".join(map(str, study.changed[row["head"]]))
        write_csv(rows, output)
        return
    output.write(f"{study.num_lines:,} lines, BLEU {study.bleu:.2f} against the targets\n")
    for cells in (study.heads.cells(order), study.lens.cells(), study.measures.cells()):
        if len(cells) > 1:
            output.write("\n" + "".join(f"{row}\n" for row in lay_out_figures(cells)))
