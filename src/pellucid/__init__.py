"""Pellucid: train, run and look inside encoder-decoder Transformers.

Names are loaded when they are first used, so that ``import pellucid`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from pellucid.attention.stages import AttentionSteps, attend
    from pellucid.errors import (
        BundleError,
        ConfigurationError,
        DataError,
        InputError,
        OutputError,
        PellucidError,
        TrainingError,
    )
    from pellucid.functions.convert_model import convert, export
    from pellucid.functions.evaluate_model import evaluate
    from pellucid.functions.train_model import train
    from pellucid.translate.chain.chained import chain
    from pellucid.translate.results import Translation
    from pellucid.translate.translator import Translator, load

__all__ = [
    "AttentionSteps",
    "BundleError",
    "ConfigurationError",
    "DataError",
    "InputError",
    "OutputError",
    "PellucidError",
    "TrainingError",
    "Translation",
    "Translator",
    "__version__",
    "attend",
    "chain",
    "convert",
    "evaluate",
    "export",
    "load",
    "train",
]

__version__ = "0.1.0"

_ERRORS = "pellucid.errors"
_HOMES = {
    "AttentionSteps": "pellucid.attention.stages",
    "BundleError": _ERRORS,
    "ConfigurationError": _ERRORS,
    "DataError": _ERRORS,
    "InputError": _ERRORS,
    "OutputError": _ERRORS,
    "PellucidError": _ERRORS,
    "TrainingError": _ERRORS,
    "Translation": "pellucid.translate.results",
    "Translator": "pellucid.translate.translator",
    "attend": "pellucid.attention.stages",
    "chain": "pellucid.translate.chain.chained",
    "convert": "pellucid.functions.convert_model",
    "evaluate": "pellucid.functions.evaluate_model",
    "export": "pellucid.functions.convert_model",
    "load": "pellucid.translate.translator",
    "train": "pellucid.functions.train_model",
}


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        no_attribute = _import_module("pellucid.wording.other_names").no_attribute
        raise AttributeError(no_attribute(__name__, name), name=name)
    home = _HOMES[name]
    if home != _ERRORS:
        _import_module("pellucid.machine.waiting").bound_spinning()
    found = getattr(_import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return list(__all__)
