"""Token ids in, token ids out: search and scoring.

Names are loaded when they are first used, since the engine in C needs no PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.decode.constraints.build_request import RequestBuilder
    from pellucid.decode.constraints.request import Constraints, Request, SpecialIds
    from pellucid.decode.decoder import Decoder
    from pellucid.decode.fast.engine import Engine
    from pellucid.decode.fast.ensemble import Ensemble
    from pellucid.decode.greedy import choose_likeliest, decode_greedily
    from pellucid.decode.hypothesis import Hypothesis
    from pellucid.decode.scoring import score_tokens
    from pellucid.decode.search.loop import Found, Search

__all__ = [
    "Constraints",
    "Decoder",
    "Engine",
    "Ensemble",
    "Found",
    "Hypothesis",
    "Request",
    "RequestBuilder",
    "Search",
    "SpecialIds",
    "choose_likeliest",
    "decode_greedily",
    "score_tokens",
]

_HOMES = {
    "Constraints": "constraints.request",
    "Decoder": "decoder",
    "Engine": "fast.engine",
    "Ensemble": "fast.ensemble",
    "Found": "search.loop",
    "Hypothesis": "hypothesis",
    "Request": "constraints.request",
    "RequestBuilder": "constraints.build_request",
    "Search": "search.loop",
    "SpecialIds": "constraints.request",
    "choose_likeliest": "greedy",
    "decode_greedily": "greedy",
    "score_tokens": "scoring",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
