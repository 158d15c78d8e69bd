"""Patching: vectors of one run in the place of those of another, by runs or by gradients."""
