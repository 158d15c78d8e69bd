"""The languages on the way through several models: what each one reads and writes."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.errors import InputError
from pellucid.languages.codes import are_same_language, pick_codes, short_code
from pellucid.text.language_tokens import find_code, near_names
from pellucid.translate.text_translator import TextTranslator


def find_middles(models: Sequence[TextTranslator], names: Sequence[str]) -> tuple[str, ...]:
    """Find the language that each model writes and the next one reads.

    Args:
        models: two or more.
        names: of the models, for messages.

    Returns:
        One language fewer than models, each as one of its two models names it; empty if unknown.

    Raises:
        InputError: a model writes another language than the next one reads.
    """
    return tuple(
        _find_middle(models[place : place + 2], names[place : place + 2])
        for place in range(len(models) - 1)
    )


def _find_middle(models: Sequence[TextTranslator], names: Sequence[str]) -> str:
    first, second = models
    written = first.languages
    # A model such as NLLB reads every language that it writes.
    read = second.languages.targets if second.tokenizer.needs_code else ()
    wanted = second.languages.source
    if read and written.targets:
        return _common_language(written.targets, read, names)
    if read:
        is_met = bool(near_names(read, written.target)) if written.target else False
        middle = written.target
    elif written.targets:
        near = pick_codes(wanted, written.targets) if wanted else []
        is_met = bool(near)
        middle = near[0] if near else ""
    else:
        is_known = bool(written.target and wanted)
        is_met = not is_known or are_same_language(written.target, wanted)
        middle = written.target or wanted
    if not is_met:
        targets = written.targets or ((written.target,) if written.target else ())
        raise InputError(
            f"Each model of a chain must write the language that the next one reads, but "
            f"{names[0]} writes {', '.join(targets) or 'an unknown language'} and {names[1]} reads "
            f"{wanted or ('other ones' if read else 'an unknown language')}. Choose models that "
            "meet in one language."
        )
    return middle


def _common_language(written: Sequence[str], read: Sequence[str], names: Sequence[str]) -> str:
    """Choose the language in which two models of many languages meet: English, or the first."""
    common = [one for one in written if len(near_names(read, one)) == 1]
    if not common:
        raise InputError(
            f"Each model of a chain must write a language that the next one reads, but {names[0]} "
            f"and {names[1]} have none in common. pellucid inspect MODEL lists those of each."
        )
    # Models of many languages have seen most of their pairs with English.
    return min(common, key=lambda one: short_code(one) != "en")


def find_legs(
    models: Sequence[TextTranslator],
    names: Sequence[str],
    middles: Sequence[str],
    to: str | None,
) -> tuple[str | None, ...]:
    """Find what each model is told about its languages, as ``to`` of its own `translate`.

    Args:
        models: those of the chain.
        names: of the models, for messages.
        middles: the languages between them.
        to: the languages of the whole way, such as ``fr:de``, or the last one; None names none.

    Raises:
        InputError: a model does not have a language, needs one that is not named, or would write
            the language that it reads.
    """
    source, _, target = (to or "").rpartition(":")
    known = models[0].languages.source
    if source and known and not are_same_language(source, known) and source != known:
        raise InputError(
            f"The source language must be {known}, which the first model reads, but is "
            f"{source!r}. Leave it out, or take another model."
        )
    legs: list[str | None] = []
    each = zip(models, (source, *middles), (*middles, target), strict=True)
    for model, read, written in each:
        tokenizer = model.tokenizer
        is_last = len(legs) == len(models) - 1
        leg = f"{read}:{written}" if tokenizer.reads_source_language else written or None
        # A model without codes writes one language, which only the last may be asked for.
        if not tokenizer.language_codes and not is_last:
            leg = None
        if leg is not None or tokenizer.needs_code:
            # Before the other models have worked for nothing.
            find_code(tokenizer, leg or "")
        if read and written and tokenizer.needs_code:
            _check_crossing(model, names[len(legs)], read, written)
        legs.append(leg)
    return tuple(legs)


def _check_crossing(model: TextTranslator, name: str, read: str, written: str) -> None:
    """Refuse a model of many languages that would write the language that it reads."""
    own = model.languages.targets
    found = near_names(own, written)
    if found == near_names(own, read):
        raise InputError(
            f"Each model of a chain must lead to another language, but {name} would read and write "
            f"{', '.join(found)} here. Leave {name} out of the chain."
        )
