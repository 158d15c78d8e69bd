"""A small model of each family that `pellucid convert` reads, made by the program that has it.

Weights are random but for Marian's SSRU, which Marian trained; they come from the tests.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS / "shared"))

from small_course import write_course  # noqa: E402
from small_fairseq import random_sentences, write_model  # noqa: E402
from small_marian import write_theirs  # noqa: E402

from pellucid import convert  # noqa: E402

LINES = 8
COURSE = ("ein hund frisst .", "der apfel , der rot ist", "ein vogel frisst", "ein hund .")


@dataclass(frozen=True)
class FamilyModel:
    """A converted model with lines to look at.

    Attributes:
        folder: the bundle.
        lines: what it translates.
        languages: arguments of `Translator.look_at_each` that name the languages.
    """

    folder: Path
    lines: list[str]
    languages: dict[str, Any] = field(default_factory=dict)


def _of_fairseq(family: str, folder: Path) -> FamilyModel:
    write_model(folder / "theirs", family)
    convert(folder / "theirs", folder / "ours")
    languages = {"source_language": "en", "to": "fr"}
    if family == "small":
        del languages["source_language"]
    elif family == "bart":
        languages = {}
    return FamilyModel(folder / "ours", random_sentences(LINES), languages)


def _of_marian(_: str, folder: Path) -> FamilyModel:
    write_theirs(folder / "theirs")
    convert(folder / "theirs", folder / "ours")
    return FamilyModel(folder / "ours", random_sentences(LINES))


def _of_firefox(_: str, folder: Path) -> FamilyModel:
    stored = TESTS / "parity" / "marian_ssru"
    (folder / "theirs").mkdir(parents=True)
    for name in ("model.intgemm8.bin", "vocab.spm"):
        shutil.copy(stored / name, folder / "theirs")
    convert(folder / "theirs", folder / "ours")
    return FamilyModel(folder / "ours", random_sentences(LINES))


def _of_pytorch(family: str, folder: Path) -> FamilyModel:
    write_course(folder / "theirs", norm_first=family.endswith("pre"))
    convert(
        folder / "theirs" / "checkpoint.pt",
        folder / "ours",
        format="nn-transformer",
        config=folder / "theirs" / "description.toml",
    )
    return FamilyModel(folder / "ours", list(COURSE))


FAMILIES: dict[str, Callable[[str, Path], FamilyModel]] = {
    **dict.fromkeys(("m2m", "nllb", "small", "mbart", "bart"), _of_fairseq),
    "marian": _of_marian,
    "firefox": _of_firefox,
    **dict.fromkeys(("nn-transformer", "nn-transformer-pre"), _of_pytorch),
}


def make_family(name: str, folder: Path) -> FamilyModel:
    """Write a model of a family and convert it."""
    return FAMILIES[name](name, folder)
