"""The options of decoding and of lines around it, as the configuration declares them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pellucid.cli.options import Option, flag, given_of, options_of
from pellucid.config import DecodingConfig, TreatmentConfig, apply_overrides
from pellucid.errors import InputError, suggestion

_ALL = options_of(DecodingConfig)
_SAMPLING = ("temperature", "top_k", "top_p", "epsilon", "seed")
NAMED = ("beam", "n_best", "sample", "precision")
"""The decoding options with their own flag; ``--set`` takes every one."""

_SET: Option = (
    list[str],
    "decoding.KEY=VALUE",
    "Change one setting, such as decoding.alpha=1; may be repeated. pellucid recipe --key decoding "
    "lists all of them.",
)
MATCH = "glossary.match"
"""The setting of a glossary, which ``--set`` takes where ``--glossary`` is an option."""

DECODING: Mapping[str, Option] = {**{name: _ALL[name] for name in NAMED}, "set": _SET}
"""The options of a command that translates."""


def some_decoding(*names: str) -> dict[str, Option]:
    """Return the options of a command to which few matter, and ``--set`` for the others."""
    return {**{name: _ALL[name] for name in names}, "set": _SET}


FEW_DECODING: Mapping[str, Option] = some_decoding("beam", "n_best", "precision")
"""Those of a command that looks at a translation."""

TREATMENT: Mapping[str, Option] = options_of(TreatmentConfig, keep=True)
"""What to do with lines before and after their translation."""


def given_treatment(options: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the options of `TREATMENT`, as `pellucid.translate.translator` takes them."""
    return {name: options[name] for name in TREATMENT}


def given_decoding(options: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the decoding options that were given, each as an option or by ``--set``.

    Args:
        options: those of `DECODING` or some of them, and maybe others.

    Raises:
        ConfigurationError: a change is not written ``decoding.KEY=VALUE``, or sets a key twice.
        InputError: a key is not one of decoding, or was given as an option as well.
    """
    given = given_of([name for name in NAMED if name in options], options)
    sets = options.get("set") or ()
    if "glossary" in options:
        # Read by `pellucid.cli.lines.constraint_options`.
        sets = [one for one in sets if not one.startswith(MATCH)]
    for section, values in apply_overrides({}, sets).items():
        for key, value in values.items():
            known = [f"decoding.{name}" for name in _ALL]
            if f"{section}.{key}" not in known:
                raise InputError(
                    f"--set must set an option of decoding, but sets {section}.{key}. "
                    + suggestion(f"decoding.{key}", known)
                )
            if key in given:
                raise InputError(
                    f"{flag(key)} must be given once, but is also set by --set decoding.{key}. "
                    "Leave one out."
                )
            given[key] = value
    return given


def option_for(name: str) -> str:
    """Write how a command takes an option of decoding: ``--beam``, ``--set decoding.strict``."""
    return flag(name) if name in NAMED else f"--set decoding.{name}"


def useless_options(
    given: Collection[str], decoding: DecodingConfig, *, is_score_shown: bool
) -> Iterator[str]:
    """Find the decoding options that cannot change anything.

    Args:
        given: names of the decoding options that were given.
        decoding: all decoding options, with the model's defaults filled in.
        is_score_shown: True if scores are part of the output.

    Yields:
        One sentence for each of them.
    """
    # Then nothing is ranked, so that scores only matter if they are written.
    is_single = decoding.beam == decoding.n_best == 1
    rules = (
        (_SAMPLING, not decoding.sample, f"without {option_for('sample')}"),
        (
            ("diversity",),
            decoding.diverse_groups == 1,
            f"without {option_for('diverse_groups')}",
        ),
        (("stopping",), decoding.beam == 1, "with a beam of 1"),
        (
            ("alpha",),
            decoding.length_penalty == "none",
            f"with {option_for('length_penalty')}=none",
        ),
        (
            ("length_penalty", "alpha"),
            is_single and not is_score_shown,
            "on a single hypothesis whose score is not written",
        ),
        (
            ("max_length_ratio", "max_length_offset"),
            decoding.max_length is not None,
            f"with {option_for('max_length')}",
        ),
    )
    reasons: dict[str, str] = {}
    for names, is_useless, why in rules:
        for name in names if is_useless else ():
            reasons.setdefault(name, why)  # one reason is enough
    for name, why in reasons.items():
        if name in given:
            yield f"{option_for(name)} has no effect {why}."


def describe_search(decoding: DecodingConfig) -> str:
    """Describe a search in a few words: beam, length penalty and precision."""
    if decoding.sample:
        return f"sampling (seed {decoding.seed}) in {decoding.precision}"
    if decoding.beam == 1:
        return f"a beam of 1 (greedy) in {decoding.precision}"
    penalty = decoding.length_penalty
    power = "" if penalty == "none" else f" (alpha {decoding.alpha:g})"
    return f"a beam of {decoding.beam}, length penalty {penalty}{power}, in {decoding.precision}"
