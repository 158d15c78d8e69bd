"""Export as a bundle of another precision."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pellucid.bundle import RECIPE, Bundle, save_bundle
from pellucid.config import Precision
from pellucid.errors import InputError
from pellucid.files import read_bytes
from pellucid.machine.precision import METRIC


def export_bundle(
    bundle: Bundle, out: Path, precision: Precision, *, measured: Mapping[str, Any] | None = None
) -> None:
    """Write a bundle with its weights in another precision, which is also used for decoding.

    Only the weights and the two entries of ``config.json`` about precision change. The manifest
    keeps its entries on data and training, but not BLEU by precision if the precision changes,
    and names under ``exported`` the bundle that this one was made from.

    Args:
        bundle: the model.
        out: the new folder.
        precision: precision of the stored weights.
        measured: BLEU before and after, for the manifest.

    Raises:
        InputError: the model is recurrent, and the precision is not float32.
        OutputError: the disk cannot take it.
    """
    if bundle.config.model.is_recurrent and precision != "float32":
        raise InputError(
            "The precision of a recurrent model must be float32, but is "
            f"{precision}: its states would add up the rounding of every step. Keep the bundle."
        )
    decoding = bundle.config.decoding
    if not decoding.strict:  # a strict translation is always float32
        decoding = decoding.model_copy(update={"precision": precision})
    kept = {
        name: value
        for name, value in bundle.manifest.items()
        if name not in ("format", "files", "created")
    }
    if precision != bundle.config.precision and isinstance(kept.get("metrics"), dict):
        # What other precisions cost was measured with the weights as they were.
        kept["metrics"] = {name: one for name, one in kept["metrics"].items() if name != METRIC}
    recipe = bundle.folder / RECIPE
    save_bundle(
        out,
        config=bundle.config.model_copy(update={"precision": precision, "decoding": decoding}),
        weights=bundle.model.state_dict(),
        tokenizer=bundle.tokenizer,
        recipe_toml=read_bytes(recipe).decode() if RECIPE in bundle.manifest["files"] else "",
        provenance={
            **kept,
            "exported": {
                "from": bundle.model_hash,
                "precision": {"before": bundle.config.precision, "after": precision},
                **({"bleu": dict(measured)} if measured is not None else {}),
            },
        },
    )
