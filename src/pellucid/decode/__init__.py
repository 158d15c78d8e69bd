"""Token ids in, token ids out: search and scoring."""

from pellucid.decode.constraints.build_request import RequestBuilder
from pellucid.decode.constraints.request import Constraints, Request
from pellucid.decode.decoder import Decoder
from pellucid.decode.fast.engine import Engine
from pellucid.decode.fast.ensemble import Ensemble
from pellucid.decode.greedy import choose_likeliest, decode_greedily
from pellucid.decode.hypothesis import Hypothesis
from pellucid.decode.scoring import score_tokens
from pellucid.decode.search.loop import Found, Search, SpecialIds

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
