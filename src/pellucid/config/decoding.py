"""How to ask for a translation: every option of a search, and what contradicts what."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from pellucid.config.base import Strict

__all__ = ["DecodingConfig", "Precision"]

Precision = Literal["float32", "bfloat16", "int8"]
Share = Annotated[float, Field(gt=0, le=1)]


class DecodingConfig(Strict):
    """One class for a bundle's defaults, the command line's options and Python's keywords.

    Search: a ``beam`` of 1 is greedy; ``n_best`` are given back. Finished hypotheses are ranked
    by their log-probability over the ``length_penalty``, of length Y with ``</s>``:
    ``gnmt`` ((5 + Y) / 6)^alpha, ``average`` Y^alpha, ``none`` 1. ``stopping`` is ``safe`` (as soon
    as nothing that is still growing could win), ``heuristic`` (as soon as nothing that is still
    growing leads now), or ``never`` (at the maximum length). With ``diverse_groups`` the beam is
    divided, and a token costs ``diversity`` for each time an earlier group has just chosen it.

    Sampling: from the softmax at a ``temperature``, among the ``top_k`` likeliest (0: all), the
    fewest that hold ``top_p`` of the mass, and those with at least ``epsilon``.

    Length: at most ``max_length`` tokens, or where it is 0 ``max_length_ratio`` times the source's
    plus ``max_length_offset``, and never more than the model's ``max_target_length``; at least
    ``min_length`` and ``min_length_ratio`` times the source's. ``</s>`` counts.

    Repetition: no ``no_repeat_ngram`` tokens twice in the same order (0: allowed); a token that
    was written before has its log-probability multiplied by ``repetition_penalty``.

    ``alternatives`` asks for the ``n_best`` likeliest tokens after the prefix, each continued to
    the end. ``strict`` gives the same text whatever else is translated beside it. ``precision`` is
    that of the weights in the products.

    Source:
        Wu et al. 2016, "Google's Neural Machine Translation System", equation 14; Vijayakumar et
        al. 2018, "Diverse Beam Search"; Fan et al. 2018 (top-k), Holtzman et al. 2020 (top-p),
        Hewitt et al. 2022 (epsilon), Keskar et al. 2019 (repetition).
    """

    beam: int = Field(default=1, ge=1, le=1000)
    n_best: int = Field(default=1, ge=1, le=1000)
    length_penalty: Literal["gnmt", "average", "none"] = "gnmt"
    alpha: NonNegativeFloat = 0.6
    stopping: Literal["safe", "heuristic", "never"] = "safe"
    diverse_groups: PositiveInt = 1
    diversity: NonNegativeFloat = 0.5
    sample: bool = False
    temperature: PositiveFloat = 1.0
    top_k: NonNegativeInt = 0
    top_p: Share = 1.0
    epsilon: float = Field(default=0.0, ge=0, lt=1)
    seed: NonNegativeInt = 1
    max_length_ratio: PositiveFloat = 2.0
    max_length_offset: PositiveInt = 20
    max_length: NonNegativeInt = 0
    min_length: NonNegativeInt = 0
    min_length_ratio: NonNegativeFloat = 0.0
    no_repeat_ngram: NonNegativeInt = 0
    repetition_penalty: float = Field(default=1.0, ge=1)
    alternatives: bool = False
    strict: bool = False
    precision: Precision = "float32"

    @model_validator(mode="after")
    def _check_together(self) -> DecodingConfig:
        for is_wrong, sentence in (
            (
                self.sample and self.beam > 1,
                "beam must be 1 when sampling, which follows one continuation at a time, "
                f"but is {self.beam}",
            ),
            (
                self.sample and self.diverse_groups > 1,
                "diverse_groups must be 1 when sampling: samples differ anyway",
            ),
            (
                not (self.sample or self.alternatives) and self.n_best > self.beam,
                f"n_best must be at most beam ({self.beam}), but is {self.n_best}: "
                "a beam keeps no more hypotheses than its width",
            ),
            (
                self.beam % self.diverse_groups != 0,
                "beam must be a multiple of diverse_groups, "
                f"but {self.beam} is not a multiple of {self.diverse_groups}",
            ),
            (
                self.alternatives and self.sample,
                "alternatives must be asked for without sample: they are the likeliest tokens, "
                "not drawn ones",
            ),
            (
                0 < self.max_length < self.min_length,
                f"min_length must be at most max_length ({self.max_length}), "
                f"but is {self.min_length}",
            ),
            (
                self.strict and self.precision != "float32",
                f"precision must be float32 for a strict translation, but is {self.precision}",
            ),
            (
                self.strict and self.sample,
                "strict must be off when sampling: it is about searches that choose the best",
            ),
        ):
            if is_wrong:
                raise ValueError(sentence)
        return self
