"""The options of a translation: the search, and the treatment of lines around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from pellucid.config.base import Several, Strict, validate
from pellucid.config.renamed_keys import refuse_old

Precision = Literal["float32", "bfloat16", "int8"]
Share = Annotated[float, Field(gt=0, le=1)]


OF_GREEDY = ("max_length_ratio", "max_length_offset", "max_length", "forbidden_tokens")
"""The options of the simplest search."""


class DecodingConfig(Strict):
    """The search for a translation: a bundle's defaults, the command line's and Python's options.

    Lengths are in tokens and count ``</s>``.

    Source:
        Wu et al. 2016, "Google's Neural Machine Translation System", equation 14; Vijayakumar et
        al. 2018, "Diverse Beam Search"; Fan et al. 2018 (top-k), Holtzman et al. 2020 (top-p),
        Hewitt et al. 2022 (epsilon), Keskar et al. 2019 (repetition).
    """

    written_by_programs: ClassVar = frozenset({"forbidden_tokens"})

    # Search
    beam: int = Field(default=1, ge=1, le=1000)
    """Number of hypotheses that grow together; 1 is greedy search."""
    n_best: int = Field(default=1, ge=1, le=1000)
    """Number of hypotheses to return for each sentence."""
    length_penalty: Literal["gnmt", "average", "none"] = "gnmt"
    """Divisor of the log-probability when finished hypotheses of length Y are ranked: ``gnmt``
    is ((5 + Y) / 6)^alpha, ``average`` is Y^alpha, ``none`` is 1."""
    alpha: NonNegativeFloat = 0.6
    """Exponent of the length penalty; larger favors long hypotheses."""
    stopping: Literal["safe", "heuristic", "never"] = "safe"
    """When to stop a sentence: ``safe`` as soon as no growing hypothesis can still win,
    ``heuristic`` as soon as no growing hypothesis leads now, ``never`` at the maximum length."""
    diverse_groups: PositiveInt = 1
    """Number of groups that the beam is divided into, so that hypotheses differ."""
    diversity: NonNegativeFloat = 0.5
    """Penalty of a token for each time an earlier group has just chosen it."""

    # Sampling
    sample: bool = False
    """Draw each token from the softmax instead of searching for the best hypothesis."""
    temperature: PositiveFloat = 1.0
    """Divisor of the logits before drawing: below 1 draws vary less, above 1 more."""
    top_k: int | None = Field(default=None, gt=0)
    """Draw among this many likeliest tokens only."""
    top_p: Share = 1.0
    """Draw among the fewest tokens that hold this share of the probability."""
    epsilon: float = Field(default=0.0, ge=0, lt=1)
    """Draw among tokens with at least this probability."""
    seed: NonNegativeInt = 1
    """Seed of the draws."""

    # Length
    max_length_ratio: float = Field(default=2.0, gt=0, le=1e6)
    """Maximum length, unless ``max_length`` is given: this times the source's length, plus
    ``max_length_offset``."""
    max_length_offset: PositiveInt = 20
    """Number of tokens added to that maximum; see ``max_length_ratio``."""
    max_length: int | None = Field(default=None, gt=0)
    """Maximum length, in place of one that grows with the source. The model's
    ``max_target_length`` and 65,536 are limits in any case."""
    min_length: NonNegativeInt = 0
    """Minimum length in tokens."""
    min_length_ratio: float = Field(default=0.0, ge=0, le=1e6)
    """Minimum length as a multiple of the source's; the larger of the two minimums holds."""

    # Repetition
    no_repeat_ngram: int | None = Field(default=None, gt=0)
    """Never write the same sequence of this many tokens twice."""
    repetition_penalty: float = Field(default=1.0, ge=1)
    """Factor of the log-probability of a token that was written before; 1 turns it off."""

    # Tokens
    forbidden_tokens: Several[Several[NonNegativeInt]] = ()
    """Sequences of ids of the target vocabulary that no translation holds, as imported models may
    have them. Forbid words of yours as text instead."""

    # What to return, and how exactly
    alternatives: bool = False
    """Return the ``n_best`` likeliest tokens after the prefix, each continued to the end."""
    strict: bool = False
    """Give the same text whatever is translated in the same batch; slower."""
    precision: Precision = "float32"
    """Precision of the weights in matrix products. All commands compute in that of the model, and
    so write the same words; another one may write others."""

    def greedy(self) -> DecodingConfig:
        """Keep only what a greedy search takes: lengths, forbidden tokens, and the precision."""
        return DecodingConfig(**self.model_dump(include={*OF_GREEDY, "precision"}))

    def with_options(self, options: Mapping[str, Any]) -> DecodingConfig:
        """Put options on top of these defaults.

        Sampling replaces a beam that only the defaults ask for, and a beam such sampling.

        Raises:
            ConfigurationError: an option is unknown, impossible, or contradicts another.
        """
        defaults = self.model_dump()
        if options.get("sample"):
            defaults |= {"beam": 1, "diverse_groups": 1, "strict": False}
        elif "beam" in options or options.get("strict") or options.get("alternatives"):
            defaults["sample"] = False
        return validate(DecodingConfig, {**defaults, **options}, "")

    @model_validator(mode="before")
    @classmethod
    def _refuse_old(cls, values: Any) -> Any:
        refuse_old("decoding", values)
        return values

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
                "diverse_groups cannot be combined with sample: samples differ anyway",
            ),
            (
                not (self.sample or self.alternatives) and self.n_best > self.beam,
                f"n_best must be at most beam ({self.beam}), but is {self.n_best}: "
                "a beam keeps no more hypotheses than its width. Raise beam, or lower n_best",
            ),
            (
                self.beam % self.diverse_groups != 0,
                f"beam must be a multiple of diverse_groups ({self.diverse_groups}), "
                f"but is {self.beam}",
            ),
            (
                self.alternatives and self.sample,
                "alternatives cannot be combined with sample: they are the likeliest tokens, "
                "not drawn ones",
            ),
            (
                self.alternatives and self.n_best == 1,
                "n_best must be at least 2 with alternatives, which are the n_best likeliest "
                "tokens, but is 1. Raise n_best",
            ),
            (
                self.max_length is not None and self.max_length < self.min_length,
                f"min_length must be at most max_length ({self.max_length}), "
                f"but is {self.min_length}",
            ),
            (
                self.strict and self.precision != "float32",
                f"precision must be float32 for a strict translation, but is {self.precision}",
            ),
            (
                self.strict and self.sample,
                "strict cannot be combined with sample: only searches have one best result",
            ),
        ):
            if is_wrong:
                raise ValueError(sentence)
        return self


Splitting = Literal["sentences", "long", "none"]
"""Which lines are split before they are translated."""


class TreatmentConfig(Strict):
    """The treatment of lines before they are translated, and of their translations."""

    clean: bool = True
    """Replace or drop spaces and invisible characters that the model has not learned."""
    split: Splitting = "sentences"
    """Split lines that have more sentences than the lines that the model learned from (sentences),
    or only lines that are too long for the model (long), and join their translations."""
    unknown: Literal["token", "source-word"] = "token"
    """What to write for a word outside the vocabulary: <unk>, or the source's word, found by
    attention."""
    retry: bool = False
    """Search again, against repetitions, if a translation loops, is far too long or is empty."""
