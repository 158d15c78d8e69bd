"""Measures beyond weights, each with its formula and its paper.

Reading order: `maps` (the result of a measure), `contributions` (the exact sum that most start
from), `registry` (every measure by name). `docs/guides/measures.md` says what each can and cannot
tell.
"""

from pellucid.inside.measures.agreement import Agreement, agreement, kendall, spearman
from pellucid.inside.measures.alti import alti
from pellucid.inside.measures.contrast import Contrast, contrast_measure, find_contrast
from pellucid.inside.measures.contributions import Contributions, contributions
from pellucid.inside.measures.faithfulness import (
    Faithfulness,
    Raise,
    Score,
    faithfulness,
    find_raises,
)
from pellucid.inside.measures.gradients import gradients
from pellucid.inside.measures.integrated import integrated_gradients
from pellucid.inside.measures.lens import DecoderDepth, Depth, Guess, decoder_lens, logit_lens
from pellucid.inside.measures.maps import Map, merge_source_words, source_words
from pellucid.inside.measures.norms import mixing_ratio, norms, residual_norms
from pellucid.inside.measures.occlusion import log_probabilities_of, occlusion
from pellucid.inside.measures.registry import MEASURES, Measure, measure, weights
from pellucid.inside.measures.rollout import rollout
from pellucid.inside.measures.zeroing import value_zeroing

__all__ = [
    "MEASURES",
    "Agreement",
    "Contrast",
    "Contributions",
    "DecoderDepth",
    "Depth",
    "Faithfulness",
    "Guess",
    "Map",
    "Measure",
    "Raise",
    "Score",
    "agreement",
    "alti",
    "contrast_measure",
    "contributions",
    "decoder_lens",
    "faithfulness",
    "find_contrast",
    "find_raises",
    "gradients",
    "integrated_gradients",
    "kendall",
    "log_probabilities_of",
    "logit_lens",
    "measure",
    "merge_source_words",
    "mixing_ratio",
    "norms",
    "occlusion",
    "residual_norms",
    "rollout",
    "source_words",
    "spearman",
    "value_zeroing",
    "weights",
]
