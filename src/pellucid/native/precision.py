"""The fastest precision that costs next to nothing: measured on validation text, kept in a bundle.

For imports without PyTorch: the command ``translate`` reads what training or export wrote.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pellucid.config import DecodingConfig, Precision, validate

AskedPrecision = Literal["auto", "float32", "bfloat16", "int8"]
"""What may be asked for; ``auto`` is what validation showed to be good and fast."""

LOSS_ALLOWED = 0.2
"""The BLEU that a precision may lose, compared with float32."""

FASTEST_FIRST: tuple[Precision, ...] = ("int8", "float32")
"""The precisions of the engine in C, in a fixed order, so that a choice can be repeated."""

METRIC = "bleu_by_precision"
"""The name of the measured BLEU among the metrics of a manifest."""


def fastest_precision(bleu: Mapping[Precision, float]) -> Precision:
    """Choose the fastest precision whose BLEU is at most `LOSS_ALLOWED` below that of float32.

    Args:
        bleu: BLEU of the validation text in each precision, with ``float32``.
    """
    least = bleu["float32"] - LOSS_ALLOWED
    return next(one for one in FASTEST_FIRST if one in bleu and bleu[one] >= least)


def put_on_top(decoding: DecodingConfig, options: Mapping[str, Any]) -> dict[str, Any]:
    """Put options on top of defaults; an option may still be impossible.

    Sampling replaces a beam that only the defaults ask for, and a beam such sampling.
    """
    defaults = decoding.model_dump()
    if options.get("sample"):
        defaults |= {"beam": 1, "diverse_groups": 1, "strict": False}
    elif "beam" in options or options.get("strict") or options.get("alternatives"):
        defaults["sample"] = False
    return {**defaults, **options}


def configure_fastest(
    decoding: DecodingConfig,
    options: Mapping[str, Any],
    bleu: Mapping[Precision, float],
    find_obstacle: Callable[[Precision], str | None],
) -> DecodingConfig:
    """Put options on top of defaults, with the fastest precision that was measured to be good.

    That is for models that the engine in C computes; others keep the default precision, as do
    models whose default is not float32, and models that nothing was measured with.

    Args:
        decoding: the model's defaults, see `put_on_top`.
        options: those that were given; the precision is ``auto`` unless given.
        bleu: what was measured, by precision.
        find_obstacle: says why the engine does not compute in a precision.

    Raises:
        ConfigurationError: an option is unknown, impossible, or contradicts another.
    """
    settings = put_on_top(decoding, options)
    if options.get("precision", "auto") == "auto":
        settings["precision"] = decoding.precision
        # `strict` is only for float32.
        if bleu and settings["precision"] == "float32" and settings["strict"] is False:
            fastest = fastest_precision(bleu)
            if find_obstacle(fastest) is None:
                settings["precision"] = fastest
    return validate(DecodingConfig, settings, "")


def read_precisions(manifest: Mapping[str, Any]) -> dict[Precision, float]:
    """Read what a manifest has of `METRIC`; empty if nothing was measured."""
    metrics = manifest.get("metrics")
    found = metrics.get(METRIC) if isinstance(metrics, dict) else None
    if not isinstance(found, dict):
        return {}
    bleu: dict[Precision, float] = {
        one: float(found[one])
        for one in FASTEST_FIRST
        # A manifest may come from anywhere, and hold anything.
        if isinstance(found.get(one), (int, float)) and math.isfinite(found[one])
    }
    return bleu if "float32" in bleu else {}
