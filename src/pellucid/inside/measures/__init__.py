"""Measures beyond weights, each with its formula and its paper.

Reading order: `maps` (the result of a measure), `contributions` (the exact sum that most start
from), `registry` (every measure by name). `docs/guides/measures.md` says what each can and cannot
tell.
"""

from pellucid.inside.measures.agreement import agreement
from pellucid.inside.measures.alti import alti
from pellucid.inside.measures.contrast import contrast_measure, find_contrast
from pellucid.inside.measures.contributions import contributions
from pellucid.inside.measures.faithfulness import faithfulness, find_raises
from pellucid.inside.measures.lens import decoder_lens, logit_lens
from pellucid.inside.measures.maps import Map
from pellucid.inside.measures.norms import mixing_ratio
from pellucid.inside.measures.occlusion import occlusion
from pellucid.inside.measures.registry import MEASURES, Measure, measure

__all__ = [
    "MEASURES",
    "Map",
    "Measure",
    "agreement",
    "alti",
    "contrast_measure",
    "contributions",
    "decoder_lens",
    "faithfulness",
    "find_contrast",
    "find_raises",
    "logit_lens",
    "measure",
    "mixing_ratio",
    "occlusion",
]
