"""The gradient that each layer of an untrained encoder gets."""

from pellucid.lessons.why.claims.residual import gradient_by_layer as gradient_by_layer
