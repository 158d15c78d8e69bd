"""The service: translation over HTTP, for several models and many clients, in one process.

`make_app` is all that is promised. It is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pellucid.wording.other_names import explain_call as _explain_call

if TYPE_CHECKING:
    from pellucid.serve.asgi_app import make_app

__all__ = ["make_app"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return getattr(import_module("pellucid.serve.asgi_app"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_explain_call(__name__)
