"""One word of a translation, and another one: which words speak for either."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pellucid.cli.lines.streams import to_json_line
from pellucid.cli.look.line import usual_ask
from pellucid.cli.look.look_options import to_ask
from pellucid.cli.look.measures import contrast_to_record, show_contrast, to_place
from pellucid.cli.look.replaying import LookedLine, remarks_on, replay_line, report_problems
from pellucid.cli.look.writer import LookWriter
from pellucid.inside.line_traces import Replaying
from pellucid.inside.pair import PairData
from pellucid.translate.translator import load


def explain_word(
    model: str,
    line: LookedLine,
    words: tuple[str, str | None],
    names: Sequence[str],
    options: Mapping[str, Any],
    threads: int | None,
) -> int:
    """Show measures as the difference of a word and another one.

    Args:
        model: the name of a model.
        line: the line.
        words: the word of its translation, and the other one; None takes the likeliest.
        names: of the measures.
        options: those of ``pellucid why``.
        threads: number of processor threads.

    Returns:
        The exit code: 1 if a check of the replay failed.
    """
    ask = to_ask({**options, "stage": None, "everything": False})
    place = to_place(ask)
    translator = load(model, threads=threads)
    ask.check_places(translator.model.config)
    line = line.coded(translator.tokenizer)
    for say, sentence in remarks_on(translator, line.text):
        say(sentence)
    line = line.as_read(translator.tokenizer)
    trace, *_ = replay_line(translator, line, Replaying(usual_ask(translator)), options)
    exit_code = report_problems([trace])
    tokenizer = translator.tokenizer
    text = line.target or tokenizer.decode_target(trace.predicted_ids)
    pair = PairData(translator.model, tokenizer, trace.source_ids, trace.predicted_ids)
    if options["json"]:
        record = contrast_to_record(pair, (text, *words), names, place)
        sys.stdout.write(to_json_line({"source": line.text, "translation": text, **record}))
    else:
        show_contrast(pair, (text, *words), names, place, LookWriter())
    return exit_code
