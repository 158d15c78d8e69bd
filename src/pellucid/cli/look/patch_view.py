"""One sentence with vectors of another: which of them carry the answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pellucid.bundle import load_bundle, resolve_model
from pellucid.cli.look.head_history import write_found
from pellucid.cli.look.reasons import times
from pellucid.cli.look.replaying import LookedLine, remarks_on, replay_line, report_problems
from pellucid.cli.look.writer import LookWriter
from pellucid.cli.outputs import Outputs
from pellucid.files import write_text
from pellucid.inside.ask import arrays_of
from pellucid.inside.changes.written_changes import find_word, positions_of_word
from pellucid.inside.line_traces import Replaying
from pellucid.inside.measures.contrast import find_contrast
from pellucid.inside.measures.maps import Map
from pellucid.inside.pair import PairData
from pellucid.inside.patches.causal_tracing import PATCHINGS, causal_trace
from pellucid.inside.patches.patched_places import expand_sites, length_of, list_sites
from pellucid.inside.patches.patching import patch
from pellucid.inside.patches.two_runs import Patching
from pellucid.inside.show.colors import scale_end
from pellucid.inside.studies.patched import patch_corpus
from pellucid.inside.traces import Trace
from pellucid.machine.devices import device_in_use
from pellucid.machine.hardware import set_threads
from pellucid.terminal.progress import ProgressLine
from pellucid.terminal.text import count_of
from pellucid.text.language_tokens import with_codes
from pellucid.translate.translator import Translator, load

_OF_POSITION = "--position must be a word of the source"
_OF_ROW = "--position must be a token that a decoder row reads"


def look_patched(
    model: str,
    giver: str,
    getter: str,
    outputs: Outputs,
    options: Mapping[str, Any],
    threads: int | None,
) -> int:
    """Show or draw what vectors of one sentence do in another one.

    Args:
        model: the name of a model.
        giver: the sentence whose vectors are taken.
        getter: the sentence that gets them.
        outputs: the files, and what standard output gets.
        options: those of ``pellucid patch``.
        threads: number of processor threads.

    Returns:
        The exit code: 1 if a check of a replay failed.
    """
    translator = load(model, threads=threads)
    asked = options["word"]
    given = options["translation"]
    line, second = _replay(
        translator, LookedLine(getter, given, None, options["language"]), options
    )
    # With a word, a translation that is given is that of both sentences up to the word.
    other = LookedLine(giver, given if asked is not None else None, None, options["language"])
    other, first = _replay(translator, other, options, "The first sentence: ")
    exit_code = report_problems([second, first])
    tokenizer = translator.tokenizer
    # In double precision: shares divide by a difference that may be small.
    exact = translator.bundle.exact_model
    a, b = (
        PairData(exact, tokenizer, one.source_ids, one.predicted_ids) for one in (first, second)
    )
    if asked is not None:
        text = tokenizer.decode_target(a.target_ids)
        # The other answer takes the place of the line's own translation.
        contrast = find_contrast(a, text, asked, options["not"])
        b = replace(b, target_ids=contrast.other.target_ids)
    positions = _positions(replace(b, source_text=line.text), options)
    task = Patching(a, b, options["row"])
    by_gradient = options["by_gradient"]
    # Who asks about a word needs no warning of others.
    row = options["row"] if asked is None else task.row
    found = patch(a, b, options["at"], positions, row=row, by_gradient=by_gradient)
    record = {"title": found.title, "answers": task.answers, "preferences": task.preferences}
    numbers = {"shares": found.matrix.tolist()}
    _write(found, list(_describe(found, task, line.text, other.text)), record, numbers, outputs)
    return exit_code


def look_spoiled(
    model: str, text: str, outputs: Outputs, options: Mapping[str, Any], threads: int | None
) -> int:
    """Show or draw which vectors restore an answer when words are spoiled; as `look_patched`."""
    translator = load(model, threads=threads)
    asked = LookedLine(text, options["translation"], None, options["language"])
    line, trace = _replay(translator, asked, options)
    pair = PairData(
        translator.bundle.exact_model,
        translator.tokenizer,
        trace.source_ids,
        trace.predicted_ids,
        line.text,
    )
    positions = _positions(pair, options)
    words = {"why": options["word"], "other": options["not"], "row": options["row"]}
    found = causal_trace(pair, options["noise"], options["at"], positions, **words)
    meaning = PATCHINGS[found.name].meaning
    about = [f"{found.title}. {found.source}.", f"Sentence    {line.text}"]
    about += [f"Translation {' '.join(trace.predicted_tokens)}", f"A number is {meaning}."]
    record = {"title": found.title, "translation": trace.predicted_tokens}
    _write(found, about, record, {"effects": found.matrix.tolist()}, outputs)
    return report_problems([trace])


def _positions(pair: PairData, options: Mapping[str, Any]) -> list[int] | None:
    """Find the tokens of words of the source, or the rows that read tokens; None for all."""
    words: Sequence[str] | None = options["position"]
    if not words:
        return None
    axes = {wanted.name: wanted.axes for wanted in arrays_of(pair.model.config)}
    if length_of(axes, expand_sites(pair, list_sites(options["at"]))) == "T":
        read = [token.removeprefix("\u2581") for token in pair.read_tokens]
        return sorted({find_word(word, read, _OF_ROW) for word in words})
    found = [
        positions_of_word(pair.tokenizer, pair.source_text, pair.source_ids, word, _OF_POSITION)
        for word in words
    ]
    # A word may have several tokens, and two names may mean one word.
    return sorted({place for word in found for place in word})


def _write(
    found: Map,
    about: Sequence[str],
    record: Mapping[str, Any],
    numbers: Mapping[str, Any],
    outputs: Outputs,
) -> None:
    """Write a map to the files and to standard output."""
    labels = {"rows": found.row_labels, "columns": found.column_labels}
    whole = {"format": 1, **record, **labels, **numbers}
    text = json.dumps(whole, ensure_ascii=False) + "\n"
    for path, form in outputs.files.items():
        if form == "json":
            write_text(path, text, follows_link=True)
        else:
            _draw(found, path, about)
    if outputs.standard == "json":
        sys.stdout.write(text)
    elif outputs.standard == "text":
        writer = LookWriter()
        writer.lines([*about, ""])
        writer.matrix(found.matrix, found.row_labels, found.column_labels, is_share=False)


def patch_lines(
    model: str,
    columns: Mapping[str, list[str]],
    places: Sequence[str] | None,
    words: Sequence[str] | None,
    outputs: Outputs,
    threads: int | None,
    language: str | None,
    by_gradient: bool,
) -> int:
    """Write what vectors of the first line of each pair restore in the second.

    Args:
        model: the name of a model.
        columns: the lines of each file, by its option.
        places: the vectors.
        words: those that get a column each.
        outputs: the files, and what standard output gets.
        threads: number of processor threads.
        language: that to write, for a model with language codes.
        by_gradient: approximate each share.

    Returns:
        The exit code: 3 if a pair was left out.
    """
    set_threads(threads)
    bundle = load_bundle(resolve_model(model), device_in_use())
    sources: Sequence[str] = columns["--source"]
    if language is not None:
        sources = with_codes(bundle.tokenizer, language, sources)
    with ProgressLine(bar="short") as line:
        found = patch_corpus(
            bundle,
            sources,
            columns.get("--target"),
            sites=places,
            words=words or (),
            by_gradient=by_gradient,
            on_step=lambda done, total: line.show(f"{done} of {total} pairs"),
        )
    pairs = count_of(found.num_pairs, "pair of lines", "pairs of lines")
    title = (
        f"{pairs}; {found.name}: the share of the difference between the answers to "
        "both that vectors of the first line restore in the second, with its 95 % interval. Shares "
        "need not add up."
    )
    return write_found(found, title, found.cells(), outputs)


def _replay(
    translator: Translator, line: LookedLine, options: Mapping[str, Any], about: str = ""
) -> tuple[LookedLine, Trace]:
    """Return a line as the model reads it, and its trace; note what a reader should know."""
    line = line.coded(translator.tokenizer)
    for say, sentence in remarks_on(translator, line.text):
        say(f"{about}{sentence}")
    line = line.as_read(translator.tokenizer)
    trace, *_ = replay_line(translator, line, Replaying(), options)
    return line, trace


def _describe(found: Map, task: Patching, text: str, other: str) -> Iterator[str]:
    """Say what is patched, what the two sentences prefer, and what a number means."""
    first, second = task.answers
    way = f"{found.note}, ".partition(", ")[2].removesuffix(", ")
    yield (
        f"{found.name.capitalize()}: vectors of A in the place of those of B"
        f"{', ' if way else ''}{way}. {found.source}."
    )
    yield f"A (from)    {other}"
    yield f"B (into)    {text}"
    yield f"Beginning   {' '.join(task.a.predicted_tokens[: task.row]) or '(nothing)'}"
    yield f"Answers     {first} (A) or {second} (B); --word and --not ask about other words"
    for name, difference in zip("AB", task.preferences, strict=True):
        liked, left = (first, second) if difference > 0 else (second, first)
        yield f"            {name}: {liked} is {times(abs(difference))} likelier than {left}"
    missing = set(range(len(task.b.source_ids))) - task.sources.keys()
    if missing:
        names = ", ".join(task.b.source_tokens[place] for place in sorted(missing))
        yield f"Left out, since nothing in A stands for it: {names}"
    yield (
        "A number is the share of the difference between A and B that one vector of A restores in "
        "B: 1 all of it, 0 nothing. Shares need not add up."
    )


def _draw(found: Map, path: Path, about: Sequence[str]) -> None:
    from pellucid.inside.show.figures.draw import draw_map_figure
    from pellucid.inside.show.figures.panels import MapPanel

    # One scale for all patches: 1 is all of the difference.
    limit = max(1.0, scale_end(found.matrix)) if found.name == "causal-tracing" else 1.0
    panel = MapPanel(found.matrix, found.row_labels, found.column_labels, limit=limit)
    label = "effect" if found.name == "causal-tracing" else "share restored"
    draw_map_figure(panel, path, caption=about, label=label)
