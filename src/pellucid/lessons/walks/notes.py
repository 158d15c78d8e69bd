"""Notes on the Transformer, from attention to the cost of length."""

from __future__ import annotations

from pellucid.lessons.walks.notes_decoder import DECODER
from pellucid.lessons.walks.notes_encoder import ENCODER
from pellucid.lessons.walks.statement import Walk

WALK = Walk(
    name="notes",
    title="Notes: Transformers",
    about=(
        "Notes that explain the whole architecture of the paper, with equations and two worked "
        "examples, “Show me the money” and its answer “Not on your life!”. Some printed numbers "
        "come from sines of degrees; here they are computed in radians. At the end you have "
        "followed a sentence from its words to the probabilities of the next word."
    ),
    statements=(*ENCODER, *DECODER),
)
