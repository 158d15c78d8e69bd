"""Token ids in, token ids out: search and scoring."""

from pellucid.decode.greedy import choose_likeliest, decode_greedily
from pellucid.decode.hypothesis import Hypothesis
from pellucid.decode.scoring import score_tokens

__all__ = ["Hypothesis", "choose_likeliest", "decode_greedily", "score_tokens"]
