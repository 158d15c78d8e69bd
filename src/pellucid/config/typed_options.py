"""The decoding options as keywords, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict


class DecodingOptions(TypedDict, total=False):
    """The fields of `DecodingConfig` as keywords of a call; that class says what each means.

    A test compares the two, because a type checker reads only what is written out.
    """

    # Search
    beam: int
    n_best: int
    length_penalty: Literal["gnmt", "average", "none"]
    alpha: float
    stopping: Literal["safe", "heuristic", "never"]
    diverse_groups: int
    diversity: float

    # Sampling
    sample: bool
    temperature: float
    top_k: int | None
    top_p: float
    epsilon: float
    seed: int

    # Length
    max_length_ratio: float
    max_length_offset: int
    max_length: int | None
    min_length: int
    min_length_ratio: float

    # Repetition
    no_repeat_ngram: int | None
    repetition_penalty: float

    # Tokens
    forbidden_tokens: Sequence[Sequence[int]]

    # What to return, and how exactly
    alternatives: bool
    strict: bool
    precision: Literal["float32", "bfloat16", "int8"]
