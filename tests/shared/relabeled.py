"""The packaged model under other languages, for chains of models."""

from __future__ import annotations

from pathlib import Path

from pellucid.bundle import load_bundle, resolve_model, save_bundle
from pellucid.config import LanguagesConfig


def relabel(folder: Path, source: str, target: str) -> Path:
    """Write the packaged model as one from another language to another."""
    bundle = load_bundle(resolve_model("demo"))
    languages = LanguagesConfig(source=source, target=target)
    save_bundle(
        folder,
        config=bundle.config.model_copy(update={"languages": languages}),
        weights=bundle.model.state_dict(),
        tokenizer=bundle.tokenizer,
        recipe_toml="",
        provenance={},
    )
    return folder
