"""The cell that a live picture shows: what becomes of the translation when it is cut.

A line of attention is a weight, not a proof that the model needs it. So each lesson says what the
model writes without the line that its picture shows, and without the whole head.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pellucid.errors import InputError
from pellucid.inside.changes.what_if import what_if
from pellucid.inside.measures.hiding import aligned_place
from pellucid.lessons.walks.walk import SENTENCE, Statement
from pellucid.translate.translator import Translator

_PLACE = re.compile(r"([^:]+):(.+?)(?:>(.+))?")


def find_cells(translator: Translator) -> dict[str, str]:
    """Find the cells that the lessons call by a name, each as ``HEAD:ROW>COLUMN``.

    Which head does what is an accident of training. ``@pronoun`` is the line of the encoder
    without which *elle* becomes *il*: from *it*, or from the predicate, to *pizza*. ``@copying`` is
    the head of the decoder's self-attention that reads the word just read.

    Args:
        translator: the packaged model.

    Raises:
        InputError: no single line turns the pronoun.
    """
    pair = translator.pair(SENTENCE)
    config = translator.bundle.config.model
    column = pair.source_tokens.index("pizza")
    turning: dict[str, float] = {}
    copying: dict[str, float] = {}
    for layer in range(config.num_encoder_layers):
        site = f"encoder.{layer}.self"
        weights_HLM = pair.see(("weights",), sites=[site])[f"{site}.weights"]
        for head, weights_LM in enumerate(weights_HLM):
            for word in ("it", "tasted"):
                row = pair.source_tokens.index(word)
                after = what_if(pair, f"cut {site}.{head}:{row}>{column}").after.tokens
                said = _say_changes(pair.predicted_tokens, after)
                if said == "“elle” becomes “il”" and weights_LM[row].argmax() == column:
                    turning[f"{site}.{head}:{word}>pizza"] = float(weights_LM[row, column])
    if not turning:
        raise InputError(
            "A line of the encoder must turn elle into il, but none does in this model: the "
            f"lessons cannot show one ({translator.bundle.folder})."
        )
    for layer in range(config.num_decoder_layers):
        site = f"decoder.{layer}.self"
        weights_HLM = pair.see(("weights",), sites=[site])[f"{site}.weights"]
        for head, weights_LM in enumerate(weights_HLM):
            copying[f"{site}.{head}:elle>et"] = float(weights_LM.diagonal().mean())
    return {
        "pronoun": max(turning, key=turning.__getitem__),
        "copying": max(copying, key=copying.__getitem__),
    }


def say_cut(translator: Translator, statement: Statement) -> str:
    """Cut the line of a statement's live picture, and its head; say what the model then writes.

    Args:
        translator: the packaged model.
        statement: the statement; one without a live picture gives an empty text.
    """
    if not statement.live:
        return ""
    found = _PLACE.fullmatch(statement.live.split()[1])
    assert found, statement.live
    head, row_word, column_word = found.groups()
    part, layer, kind, number = head.split(".")
    pair = translator.pair(statement.sentence)
    if pair.tokenizer.config.unk_id in pair.source_ids:
        return ""  # The page shows no picture of a sentence with unknown words.
    rows = pair.source_tokens if part == "encoder" else pair.predicted_tokens
    columns = pair.read_tokens if (part, kind) == ("decoder", "self") else pair.source_tokens
    row = rows.index(row_word)
    site = f"{part}.{layer}.{kind}"
    weights_LM = pair.see(("weights",), sites=[site])[f"{site}.weights"][int(number)]
    # Until a cell is chosen, the page shows the largest weight of the row.
    column = columns.index(column_word) if column_word else int(weights_LM[row].argmax())
    if (part, kind) == ("decoder", "self") and column > row:
        said = f"the line from “{rows[row]}” to “{columns[column]}”, so its weight is 0"
        return f"The mask forbids {said}, and there is nothing to cut."
    line, whole, even = (
        _say_changes(pair.predicted_tokens, what_if(pair, change).after.tokens)
        for change in (f"cut {head}:{row}>{column}", f"cut {head}", f"average {head}")
    )
    begin = f"Cut the line from “{rows[row]}” to “{columns[column]}”"
    if line:
        return f"{begin}, and {line}."
    if not whole and not even:
        return f"{begin}, cut the whole head, or make it even: the French stays the same."
    said = f"{begin}: the French stays the same. Cut the whole head, and {whole or 'it stays too'}"
    return f"{said}." if even else f"{said}; even weights change nothing."


def _say_changes(before: Sequence[str], after: Sequence[str]) -> str:
    """Name the first word that changes; empty if none does."""
    for place, word in enumerate(before):
        new = aligned_place(before, after, place)
        if after[new] != word:
            return f"“{word}” becomes “{after[new]}”"
    return "" if len(before) == len(after) else "words are added"
