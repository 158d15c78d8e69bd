"""The keywords of a translation: their types for editors, and the check of their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pellucid.config import DecodingConfig, Recipe, Splitting
from pellucid.config.base import keys_of_sections
from pellucid.config.head_address import parse_address
from pellucid.config.typed_options import DecodingOptions
from pellucid.errors import ConfigurationError, InputError, not_together
from pellucid.wording.other_names import hint_of
from pellucid.wording.value_rules import show_value

if TYPE_CHECKING:
    from pellucid.decode.constraints.request import Constraints, LineConstraints
    from pellucid.inside.changes.given_changes import GivenChanges
    from pellucid.text.word_forms import Match
    from pellucid.translate.constraints import GivenGlossary
    from pellucid.translate.links.aligning import Aligner
    from pellucid.translate.written_lines import Unknown


class TranslationOptions(DecodingOptions, total=False):
    """The keywords of `Translator.translate`, which says what each means."""

    prefix: str
    forbid: str | Sequence[str]
    require: str | Sequence[str]
    glossary: GivenGlossary | None
    glossary_match: Match
    constraints: Constraints | Sequence[LineConstraints]
    clean: bool
    split: Splitting
    unknown: Unknown
    retry: bool
    align: bool | Aligner
    source_language: str | None
    to: str | None
    changes: GivenChanges | None
    batch_tokens: int


def cross_head(address: str | None) -> tuple[int | None, int | None]:
    """Read the address of a head of cross-attention, or of its whole layer.

    Returns:
        The layer, and the head or None; both are None without an address.

    Raises:
        InputError: the address is of something else.
    """
    if address is None:
        return None, None
    found = parse_address(address)
    # What is left out at the end means all, so that decoder.1 is the mean of its heads.
    if found.part != "decoder" or found.layer is None or found.kind not in (None, "cross"):
        raise InputError(
            "The head to link by must be one of cross-attention or all of its layer, but is "
            f"{show_value(address)}. Write decoder.LAYER.cross.HEAD or decoder.LAYER.cross."
        )
    return found.layer, found.head


_ADVICE = {
    "head": "look(text, ask='decoder.1') takes an address.",
    "heads": "look(text, ask='decoder.1') takes an address.",
    "head_mask": "changes='cut decoder.1.cross.0' cuts a head.",
    "output_attentions": "look(text) records the attention of the model.",
    "stream": "stream(text) yields the translation piece by piece.",
    "max_time": "No option limits the time. max_length limits the length.",
    "target": "look(text, translation=…) looks at a given translation.",
}


def check_names(options: Iterable[str], call: Callable[..., Any]) -> None:
    """Refuse decoding options that do not exist.

    Args:
        options: their names.
        call: the function that they were given to, whose own keywords are known too.

    Raises:
        ConfigurationError: one does not exist.
    """
    fields = DecodingConfig.model_fields
    unknown = next((name for name in options if name not in fields), None)
    if unknown is None:
        return
    own = [
        one.name
        for one in inspect.signature(call).parameters.values()
        if one.kind is not one.VAR_KEYWORD
    ]
    known = [*(one for one in fields if one not in DecodingConfig.written_by_programs), *own]
    hint = hint_of(unknown, known, {**_names_elsewhere(), **_ADVICE})
    raise ConfigurationError(f"The option {unknown!r} is unknown. {hint}")


def refuse_several(options: Mapping[str, Any], call: str) -> None:
    """Refuse options that ask for several hypotheses of a call that gives one.

    Raises:
        InputError: there is one.
    """
    for name, one in (("n_best", 1), ("alternatives", False)):
        if options.get(name, one) != one:
            raise not_together(name, call, "it takes only the best hypothesis")


def _names_elsewhere() -> dict[str, str]:
    """Say where the names belong that other calls and recipes know."""
    keys = keys_of_sections(Recipe).items()
    found = {one: f"It is a setting of training: {where}.{one}." for one, where in keys}
    for name in TranslationOptions.__annotations__:
        found[name] = f"It is an argument of translate: translate(text, {name}=…)."
    for name in ("threads", "device", "ensemble"):
        found[name] = f"It is an argument of pellucid.load: load(model, {name}=…)."
    return found
