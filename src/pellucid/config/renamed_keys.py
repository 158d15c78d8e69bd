"""Keys and values that recipes had, refused with what to write now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

RENAMED: Mapping[str, Mapping[str, str]] = {
    "data": {
        "max_length": "max_pair_length",
        "max_length_ratio": "max_source_target_ratio",
    },
    "training": {
        "epsilon": "adam_epsilon",
        "subword_amount": "subword_dropout with byte-pair encoding, subword_alpha with a unigram "
        "vocabulary",
        "averaging_amount": "averaging_decay with averaging = 'running', otherwise averaging_count",
    },
}
"""By section, the keys that have another name, and that name."""

GONE: Mapping[str, Mapping[str, str]] = {
    "training": {"compile": "a GPU repeats its updates without a compiler"},
}
"""By section, the keys that nothing replaces, and why."""

LEFT_OUT: Mapping[str, Collection[str]] = {
    "data": ("split",),
    "training": ("max_minutes", "max_gradient_norm", "subword_samples"),
    "decoding": ("max_length", "top_k", "no_repeat_ngram"),
}
"""By section, the keys that are left out where nothing is to hold, in which 0 once meant that."""


def refuse_old(section: str, values: Any) -> None:
    """Make sure that a section has no old key, and no 0 in the place of a key that is left out.

    Args:
        section: its name.
        values: what stands there; what is no section is refused elsewhere.

    Raises:
        ValueError: it has one, with what to write now.
    """
    if not isinstance(values, Mapping):
        return
    for name, now in RENAMED.get(section, {}).items():
        if name in values:
            raise ValueError(f"{section}.{name} is now called {now}: write that")
    for name, why in GONE.get(section, {}).items():
        if name in values:
            raise ValueError(f"{section}.{name} must be left out: {why}")
    for name in LEFT_OUT.get(section, ()):
        if name in values and values[name] == 0 and not isinstance(values[name], bool):
            raise ValueError(
                f"{section}.{name} must be above 0, or left out for none, but is {values[name]}"
            )
