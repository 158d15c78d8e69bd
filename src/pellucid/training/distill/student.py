"""The student's recipe: the teacher's translations as text, and a smaller model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid.config import NAMED_SIZES, DataConfig
from pellucid.config.data import SPLITS, as_texts
from pellucid.errors import ConfigurationError, suggestion
from pellucid.text.reading.sentence_pairs import resolve_folder

DEFAULT_LAYERS = "6+1"
_FILES = ("train", "train_alignments")
_HALVED = ("d_model", "d_ff", "num_heads", "d_key", "d_value")


@dataclass(frozen=True)
class StudentSize:
    """The size of the student.

    Attributes:
        name: a ready-made size; None takes the recipe's.
        layers: ``ENCODER+DECODER``; None takes those of the ready-made size, or `DEFAULT_LAYERS`.
        is_half: True to halve the widths; the width of a head stays.
    """

    name: str | None = None
    layers: str | None = None
    is_half: bool = False


@dataclass(frozen=True)
class StudentText:
    """The files of the student's training text; ``links`` is None unless it is guided."""

    source: Path
    target: Path
    links: Path | None


def student_recipe(
    recipe: Mapping[str, Any],
    base: Path,
    text: StudentText,
    size: StudentSize,
    *,
    with_original: bool,
) -> dict[str, Any]:
    """Change a recipe so that it trains a student.

    Args:
        recipe: the values of the recipe whose text the teacher translated.
        base: the folder that its names start from.
        text: the teacher's translations.
        size: of the student.
        with_original: True to keep the recipe's own training text next to them.

    Raises:
        ConfigurationError: a size is unknown or cannot be halved, or the text is of pieces.
    """
    data = _with_absolute_names(dict(recipe.get("data", {})), base)
    if data.get("cut_by") == "sentencepiece":
        raise ConfigurationError(
            "data.cut_by must not be 'sentencepiece' for distillation: the teacher writes whole "
            "words, which would be joined. Give the text as it was before it was cut."
        )
    original = {name: _listed(data.pop(name, ())) for name in (*_FILES, "train_weights")}
    data["train"] = [[str(text.source), str(text.target)]]
    if with_original:
        data["train"] += original["train"]
        if original["train_weights"]:
            data["train_weights"] = [1.0, *original["train_weights"]]
    training = dict(recipe.get("training", {}))
    training.pop("guided_head", None)
    model = _student_model(dict(recipe.get("model", {})), size)
    if text.links is not None:
        data["train_alignments"] = [str(text.links)]
        sizes = {**NAMED_SIZES[model.get("size", "tiny")], **model}
        training["guided_head"] = f"decoder.{sizes['num_decoder_layers'] - 1}.cross.0"
    return {**recipe, "data": data, "model": model, "training": training}


def _with_absolute_names(data: dict[str, Any], base: Path) -> dict[str, Any]:
    """Make every name of a file absolute, so that text of two folders can be named."""
    folder = resolve_folder(str(data.pop("folder", "")), base).resolve()
    for name in DataConfig.model_fields:
        is_file = name.startswith(("train", "validation", "test")) and name != "train_weights"
        if is_file and name in data:
            texts = as_texts(data[name]) if name in SPLITS else _listed(data[name])
            data[name] = [_absolute(folder, text) for text in texts]
    return data


def _absolute(folder: Path, text: str | tuple[str, str]) -> str | list[str]:
    """Make the name of a file absolute, or those of two parallel files."""
    return str(folder / text) if isinstance(text, str) else [str(folder / name) for name in text]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _student_model(model: dict[str, Any], size: StudentSize) -> dict[str, Any]:
    if size.name is not None:
        if size.name not in NAMED_SIZES:
            raise ConfigurationError(
                f"model.size must be a known size, but is {size.name!r}. "
                + suggestion(size.name, NAMED_SIZES)
            )
        # A ready-made size replaces the sizes of the recipe; everything else stays.
        replaced = {*NAMED_SIZES[size.name], "d_key", "d_value"}
        model = {name: value for name, value in model.items() if name not in replaced}
        model["size"] = size.name
    layers = size.layers or (None if size.name is not None else DEFAULT_LAYERS)
    if layers is not None:
        model |= dict(
            zip(("num_encoder_layers", "num_decoder_layers"), _parse_layers(layers), strict=True)
        )
    return _halved(model) if size.is_half else model


def _parse_layers(layers: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d{0,2})\+([1-9]\d{0,2})", layers)
    if found is None:
        raise ConfigurationError(
            "--layers must be the encoder's and the decoder's number of layers, such as 6+1, but "
            f"is {layers!r}. Change it."
        )
    return int(found[1]), int(found[2])


def _halved(model: dict[str, Any]) -> dict[str, Any]:
    widths = {**NAMED_SIZES[model.get("size", "tiny")], **model}
    for name in _HALVED:
        value = widths.get(name)
        if name in ("d_key", "d_value") or value is None:
            continue  # Half as many heads of the same width.
        if value % 2:
            raise ConfigurationError(
                f"--half needs an even model.{name}, but it is {value}. Give the student's sizes "
                "with --set."
            )
        model[name] = value // 2
    return model
