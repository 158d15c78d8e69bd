"""Drawings of the architecture as SVG (`pellucid inspect --draw`)."""

__all__: list[str] = []
