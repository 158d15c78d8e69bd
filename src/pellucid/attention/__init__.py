"""The mathematics of attention: stages, masks, positions, variants, similarity, the probe."""

from pellucid.attention.fast import attend_fast
from pellucid.attention.forms import (
    attend_across,
    attend_causally,
    attend_to_others,
    attend_with_embeddings,
    attend_with_keys,
    attend_with_values,
    query_network,
)
from pellucid.attention.masks import (
    additive_mask,
    apply_mask,
    causal_mask,
    mask_then_scale,
    padding_mask,
    scale_then_mask,
)
from pellucid.attention.positions import offset_matrix, sinusoidal_positions
from pellucid.attention.probe import Probe, is_watched, show
from pellucid.attention.similarity import (
    additive,
    attention_pooling,
    dot,
    edit_distance,
    edit_similarity,
    exact_match,
    gaussian_kernel,
    pool,
    scaled_dot,
)
from pellucid.attention.stages import AttentionSteps, attend, mix, scale, score, weigh

__all__ = [
    "AttentionSteps",
    "Probe",
    "additive",
    "additive_mask",
    "apply_mask",
    "attend",
    "attend_across",
    "attend_causally",
    "attend_fast",
    "attend_to_others",
    "attend_with_embeddings",
    "attend_with_keys",
    "attend_with_values",
    "attention_pooling",
    "causal_mask",
    "dot",
    "edit_distance",
    "edit_similarity",
    "exact_match",
    "gaussian_kernel",
    "is_watched",
    "mask_then_scale",
    "mix",
    "offset_matrix",
    "padding_mask",
    "pool",
    "query_network",
    "scale",
    "scale_then_mask",
    "scaled_dot",
    "score",
    "show",
    "sinusoidal_positions",
    "weigh",
]
