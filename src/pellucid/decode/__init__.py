"""Token ids in, token ids out: search and scoring."""

from pellucid.decode.asking import Asker
from pellucid.decode.decoder import Decoder
from pellucid.decode.engine import Engine
from pellucid.decode.ensemble import Ensemble
from pellucid.decode.greedy import choose_likeliest, decode_greedily
from pellucid.decode.hypothesis import Hypothesis
from pellucid.decode.request import Constraints, Request
from pellucid.decode.scoring import score_tokens
from pellucid.decode.search import Found, Search, SpecialIds

__all__ = [
    "Asker",
    "Constraints",
    "Decoder",
    "Engine",
    "Ensemble",
    "Found",
    "Hypothesis",
    "Request",
    "Search",
    "SpecialIds",
    "choose_likeliest",
    "decode_greedily",
    "score_tokens",
]
