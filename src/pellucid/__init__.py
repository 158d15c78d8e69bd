"""Pellucid: train, run and look inside encoder-decoder Transformers.

Names are loaded when they are first used, so that ``import pellucid`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.attention.stages import AttentionSteps, attend
    from pellucid.errors import PellucidError
    from pellucid.translate.results import Translation
    from pellucid.translate.translator import Translator, load

__all__ = [
    "AttentionSteps",
    "PellucidError",
    "Translation",
    "Translator",
    "__version__",
    "attend",
    "load",
]

__version__ = "0.1.0"

_HOMES = {
    "AttentionSteps": "pellucid.attention.stages",
    "PellucidError": "pellucid.errors",
    "Translation": "pellucid.translate.results",
    "Translator": "pellucid.translate.translator",
    "attend": "pellucid.attention.stages",
    "load": "pellucid.translate.translator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    if name != "PellucidError":
        import_module("pellucid.machine.waiting").bound_spinning()
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
