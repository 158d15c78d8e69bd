"""Drawings of the architecture as SVG (`pellucid inspect --draw`)."""
