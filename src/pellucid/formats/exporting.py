"""Checks before every export, and the export of a bundle in another precision."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pellucid.bundle import RECIPE, Bundle, save_bundle
from pellucid.config import Precision
from pellucid.config.model import AS_FIRST_BUILT, find_unlisted
from pellucid.errors import InputError
from pellucid.files import read_bytes

LONGEST = 65_536
"""Maximum number of positions, because other systems store a table of them."""

ACCEPTED: dict[str, Collection[Any]] = {
    **AS_FIRST_BUILT,
    "projections": ("qkv",),
    "residual": (True,),
    "scale_scores": (True,),
    "look_ahead_mask": (True,),
}
"""The values of a model's options that other systems compute, unless one allows fewer."""


def check_model(bundle: Bundle, target: str, allowed: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse a model that another system cannot represent.

    Args:
        bundle: the model.
        target: the other system, for messages.
        allowed: the values that fields of ``model`` may have there, in place of those of
            `ACCEPTED`.

    Raises:
        InputError: a field has another value.
    """
    config = bundle.config.model
    where = f"{bundle.folder / 'config.json'}"
    accepted = {**ACCEPTED, **allowed}
    if (name := find_unlisted(config, accepted)) is not None:
        values = " or ".join(map(repr, accepted.get(name, ()))) or "left out"
        raise InputError(
            f"model.{name} must be {values} for {target}, but is {getattr(config, name)!r} "
            f"({where}). Use --format pellucid to keep the model as it is."
        )
    if (kind := bundle.config.tokenizer.first_token) != "none":
        raise InputError(
            f"tokenizer.first_token must be 'none' for {target}, but is {kind!r} ({where}). Take "
            "the folder that the model was converted from, or use --format pellucid."
        )
    for name in ("d_key", "d_value"):
        # Other systems do not store the width of a head: they divide d_model by the heads.
        width = getattr(config, name) * config.num_heads
        if width != config.d_model:
            raise InputError(
                f"model.{name} times num_heads must be d_model ({config.d_model}) for {target}, "
                f"but is {width} ({where}). Use --format pellucid to keep the model as it is."
            )
    for name in ("max_source_length", "max_target_length"):
        if getattr(config, name) > LONGEST:
            raise InputError(
                f"model.{name} must be at most {LONGEST:,} for {target}, which stores a table of "
                f"positions, but is {getattr(config, name):,} ({where})."
            )


def sentencepiece_models(bundle: Bundle) -> tuple[bytes, bytes]:
    """Return the SentencePiece models of the source and the target side.

    Raises:
        InputError: the model has whole words instead.
    """
    if bundle.config.tokenizer.kind != "sentencepiece":
        raise InputError(
            "tokenizer.kind must be 'sentencepiece' for Marian, but is "
            f"{bundle.config.tokenizer.kind!r} ({bundle.folder / 'config.json'}). Use --format "
            "ctranslate2, which takes any tokens."
        )
    # Marian's tokenizer takes such a symbol off first, and cuts the rest in another way.
    codes = [one for one in bundle.config.tokenizer.symbols if re.fullmatch(">>.+<<", one)]
    if codes:
        raise InputError(
            f"tokenizer.symbols must have another form than {codes[0]} for Marian, which takes it "
            f"for a code ({bundle.folder / 'config.json'}). Use --format ctranslate2."
        )
    files = bundle.tokenizer.files()
    # Separate sides have a file each; a joint vocabulary has one file for both.
    source, target = (
        files.get(f"{side}.model", files.get("tokenizer.model", b""))
        for side in ("source", "target")
    )
    return source, target


def never_written(bundle: Bundle) -> list[int]:
    """Return the ids that pellucid never writes: padding and the start token."""
    tokenizer = bundle.config.tokenizer
    # A decoder may start from `</s>`, which must stay possible: it ends every translation.
    return sorted({tokenizer.pad_id, tokenizer.target_start_id} - {tokenizer.eos_id})


def export_bundle(
    bundle: Bundle,
    out: Path,
    precision: Precision,
    *,
    computes: Precision | None = None,
    measured: Mapping[str, Any] | None = None,
) -> Precision:
    """Write a bundle with its weights in another precision.

    Only the weights and the two entries of ``config.json`` about precision change. The
    manifest keeps its entries on data and training, and names under ``exported`` the bundle that
    this one was made from.

    Args:
        bundle: the model.
        out: the new folder.
        precision: precision of the stored weights.
        computes: the precision that every command translates in. Unless given, float32, or that of
            the model if its weights are stored as before.
        measured: BLEU before and after, for the manifest.

    Returns:
        The precision that the bundle computes in.

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
    if computes is None:
        is_same = precision == bundle.config.precision
        computes = decoding.precision if is_same else "float32"
    if not decoding.strict:  # a strict translation is always float32
        decoding = decoding.model_copy(update={"precision": computes})
    kept = {
        name: value
        for name, value in bundle.manifest.items()
        # These describe the files, and the new bundle has its own.
        if name not in ("format", "files", "created")
    }
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
    return decoding.precision
