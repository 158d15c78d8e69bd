"""One sentence with vectors of another: which of them carry the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pellucid.cli.look.measures import times
from pellucid.cli.look.replaying import LookedLine, remarks_on, replay_line
from pellucid.cli.look.writer import LookWriter
from pellucid.files import write_text
from pellucid.inside.changes.written_changes import positions_of_word
from pellucid.inside.line_traces import Replaying
from pellucid.inside.measures.contrast import find_contrast
from pellucid.inside.measures.maps import Map
from pellucid.inside.measures.patching import SOURCE, Patching, patch
from pellucid.inside.pair import PairData
from pellucid.translate.translator import Translator

_OF_POSITION = "--position must be a word of the source"


def look_patched(
    translator: Translator,
    line: LookedLine,
    target_ids: Sequence[int],
    files: Mapping[str, Path],
    options: Mapping[str, Any],
) -> None:
    """Show or draw what vectors of another sentence do in this one.

    Args:
        translator: holds the model, and translates the other sentence.
        line: the sentence that gets the vectors.
        target_ids: its translation.
        files: file to draw or write by kind; without files, the terminal shows the map.
        options: those of `pellucid.cli.look.look_options`.
    """
    # Under --why, a target that is given is the translation of both up to that word.
    target = line.target if options["why"] is not None else None
    other = LookedLine(options["patch_from"], target, None)
    for say, sentence in remarks_on(translator, other.text):
        say(f"The other sentence: {sentence}")
    other = other.as_read(translator.tokenizer)
    trace, *_ = replay_line(translator, other, Replaying(), options)
    tokenizer = translator.tokenizer
    model = translator.own_bundle.exact_model
    # In double precision: shares divide by a difference that may be small.
    a = PairData(model, tokenizer, trace.source_ids, trace.predicted_ids)
    b = PairData(model, tokenizer, tuple(tokenizer.encode_source(line.text)), tuple(target_ids))
    if options["why"] is not None:
        text = tokenizer.decode_target(a.target_ids)
        # The other answer takes the place of the line's own translation.
        contrast = find_contrast(a, text, options["why"], options["not"])
        b = replace(b, target_ids=contrast.other.target_ids)
    positions = None
    if options["position"]:
        words = [
            positions_of_word(tokenizer, line.text, b.source_ids, word, _OF_POSITION)
            for word in options["position"]
        ]
        # A word may have several tokens, and two names may mean one word.
        positions = sorted({place for word in words for place in word})
    found = patch(a, b, options["at"], positions, options["head"])
    about = list(_describe(Patching(a, b), line.text, other.text))
    for kind, path in files.items():
        if kind == "json":
            write_text(path, _to_json(found, Patching(a, b)), follows_link=True)
        else:
            _draw(found, path, about)
    if not files:
        writer = LookWriter(is_plain=bool(options["plain"]))
        writer.lines([*about, ""])
        writer.matrix(found.matrix, found.row_labels, found.column_labels, is_share=False)


def _describe(task: Patching, text: str, other: str) -> Iterator[str]:
    """Say what is patched, what the two sentences prefer, and what a number means."""
    first, second = task.answers
    yield f"Patching: vectors of A in the place of those of B. {SOURCE}."
    yield f"A (gives)   {other}"
    yield f"B (gets)    {text}"
    yield f"Beginning   {' '.join(task.a.predicted_tokens[: task.row]) or '(nothing)'}"
    yield f"Answers     {first} (A) or {second} (B); --why and --not ask about other words"
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
    panel = MapPanel(found.matrix, found.row_labels, found.column_labels, limit=1.0)
    draw_map_figure(panel, path, caption=about, label="share restored")


def _to_json(found: Map, task: Patching) -> str:
    record = {
        "format": 1,
        "answers": task.answers,
        "preferences": task.preferences,
        "rows": found.row_labels,
        "columns": found.column_labels,
        "shares": found.matrix.tolist(),
    }
    return json.dumps(record, ensure_ascii=False) + "\n"
