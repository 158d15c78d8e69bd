"""Measures beyond weights, each with its formula and its paper.

Reading order: `maps` (the result of a measure), `contributions` (the exact sum that most start
from), `registry` (every measure by name). `docs/guides/measures.md` says what each can and cannot
tell.
"""
