"""The options of decoding and of lines around it, as the configuration declares them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from pellucid.cli.options import flag, options_of
from pellucid.config import DecodingConfig, TreatmentConfig

DECODING = options_of(
    DecodingConfig,
    more={
        "precision": (
            Literal["auto", "float32", "bfloat16", "int8"],
            "auto is the fastest that lost at most 0.2 BLEU on the validation text.",
        )
    },
)
TREATMENT = options_of(TreatmentConfig, keep=True)

_SAMPLING = ("temperature", "top_k", "top_p", "epsilon", "seed")


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
        (_SAMPLING, not decoding.sample, "without --sample"),
        (("diversity",), decoding.diverse_groups == 1, "without --diverse-groups"),
        (("stopping",), decoding.beam == 1, "with a beam of 1"),
        (("alpha",), decoding.length_penalty == "none", "with --length-penalty none"),
        (
            ("length_penalty", "alpha"),
            is_single and not is_score_shown,
            "on a single hypothesis whose score is not written",
        ),
        (
            ("max_length_ratio", "max_length_offset"),
            decoding.max_length is not None,
            "with --max-length",
        ),
    )
    reasons: dict[str, str] = {}
    for names, is_useless, why in rules:
        for name in names if is_useless else ():
            reasons.setdefault(name, why)  # one reason is enough
    for name, why in reasons.items():
        if name in given:
            yield f"{flag(name)} has no effect {why}."
