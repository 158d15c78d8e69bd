"""The walks with the output of each command, for the page of a model that knows their words."""

from __future__ import annotations

from typing import Any

from pellucid.bundle import Bundle
from pellucid.inside.show.model_page import cannot_carry
from pellucid.lessons.walks.walk import NAMES, SENTENCE, Statement, load_walk, read_outputs


def lessons_for(bundle: Bundle) -> tuple[list[dict[str, Any]], str]:
    """Return the walks for the page of a model, or an empty list and the reason in one sentence.

    A statement whose sentence has words that the model does not know has no live view.
    """
    if cannot_carry(bundle):
        return [], (
            "This page has no lessons: they show the model at work, which needs a model "
            "that the page runs itself, such as demo: pellucid look demo TEXT -o page.html"
        )
    unknown = _unknown_words(bundle, SENTENCE)
    if bundle.config.languages.source not in ("", "en") or unknown:
        such = f", such as “{unknown[0]}”" if unknown else ""
        return [], (
            f"This page has no lessons: they are about English sentences with words that "
            f"this model does not know{such}. See them with: pellucid look demo TEXT -o page.html"
        )
    recorded = read_outputs()
    walks = []
    for name in NAMES:
        walk = load_walk(name)
        record = walk.to_record()
        record["statements"] = [
            _for_page(bundle, statement, shown, recorded["machine"])
            for statement, shown in zip(walk.statements, recorded["walks"][name], strict=True)
        ]
        walks.append(record)
    return walks, ""


def _for_page(
    bundle: Bundle, statement: Statement, shown: dict[str, Any], machine: str
) -> dict[str, Any]:
    unknown = _unknown_words(bundle, statement.sentence) if statement.live else []
    keys = ("place", "says", "expect", "command", "errs")
    return {
        **{key: getattr(statement, key) for key in keys},
        "vary": statement.write_next(),
        "sentence": statement.sentence,
        "live": "" if unknown else statement.live,
        "without": f"This model does not know “{unknown[0]}”." if unknown else "",
        "output": shown["lines"],
        "number": shown["answer"],
        "cut": "" if unknown else shown["cut"],
        "measured_on": machine if statement.is_measured else "",
    }


def _unknown_words(bundle: Bundle, text: str) -> list[str]:
    """List the tokens of a text that the model reads as unknown, as typed."""
    tokenizer = bundle.tokenizer
    unknown_id = tokenizer.config.unk_id
    return [
        word.strip(".,!?") for word in text.split() if unknown_id in tokenizer.encode_source(word)
    ]
