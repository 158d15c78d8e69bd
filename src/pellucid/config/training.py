"""Training: every setting that belongs neither to the data nor to the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    field_validator,
    model_validator,
)

from pellucid.config.base import Count, Rate, Several, Steps, Strict
from pellucid.config.head_address import parse_head
from pellucid.config.renamed_keys import refuse_old
from pellucid.errors import InputError
from pellucid.wording.value_rules import is_device_name


class LogConfig(Strict):
    """What a training writes besides its model; options of the command."""

    log_every: Steps = 50
    """Updates between lines of the log; slow updates have a line every ten seconds."""
    validation_samples: NonNegativeInt = 3
    """Translations that a validation shows."""
    tensorboard: bool = False
    """Write the figures for TensorBoard too."""
    save_minutes: NonNegativeFloat = 5.0
    """Minutes after a checkpoint until the next one; 0 saves only at validations."""
    keep_every: NonNegativeInt = 0
    """Updates between models that stay in ``RUN/history``; 0 keeps none."""


class TrainingConfig(Strict):
    """The course of training; the defaults are the paper's settings.

    Source:
        Vaswani et al. 2017, section 5; Kudo 2018, "Subword Regularization"; Provilkov et al.
        2020, "BPE-Dropout"; Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks";
        Gao et al. 2022, "Bi-SimCut: A Simple Strategy for Boosting Neural Machine Translation";
        Ding et al. 2021, "Improving Neural Machine Translation by Bidirectional Training"; Jordan
        et al. 2024, "Muon"; Garg et al. 2019, "Jointly Learning to Align and Translate with
        Transformer Models".
    """

    written_by_programs: ClassVar = frozenset({"log"})

    # Machine
    seed: NonNegativeInt = 1
    """Seed of everything random: first weights, order of the text, dropout, draws."""
    device: str = "auto"
    """Device to compute on: ``cpu``, ``cuda``, or ``cuda:N`` for one of several; ``auto`` takes a
    CUDA device if one works."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of matrix products; ``auto`` takes bfloat16 if the device is fast at it. Weights,
    sums and the optimizer are always float32."""
    kernels: Literal["auto", "own", "pytorch"] = "auto"
    """Kernels of the forward and backward pass on a processor. ``auto`` takes the package's own if
    they are built and fit the model, otherwise PyTorch's; ``own`` refuses to train without them.
    The choice changes the last digits of all numbers."""
    processes: Literal["auto"] | int = "auto"
    """Parts of each batch, a power of two from 1 to 256. A processor computes each in a process of
    its own, unless torchrun or srun starts those that share them. ``auto`` takes one on own
    kernels; on PyTorch's up to one per thread (in bfloat16 one per two threads), as long as each
    gets 1,000 of ``max_tokens_per_batch`` and memory allows. A run keeps its number."""

    # Batch
    max_tokens_per_batch: Count = 4096
    """Maximum number of positions of a batch on either side, padding included."""
    shapes: Literal["auto", "few", "any"] = "auto"
    """Shapes of batches: ``few`` fills them up to one of at most 16, chosen for the text, as a GPU
    needs some time for each new one; ``any`` has the least padding. ``auto`` takes few on a GPU
    that one process uses. A run keeps them."""
    accumulate: int = Field(default=1, gt=0, le=10_000)
    """Number of batches whose gradients an update sums."""

    # Optimizer and learning rate
    optimizer: Literal["adam", "adamw", "muon"] = "adam"
    """``muon`` moves every matrix except embeddings by Muon, and all other weights by AdamW."""
    learning_rate: Literal["auto"] | Annotated[float, Field(gt=0, le=100)] = "auto"
    """Peak of the learning rate; ``auto`` takes the paper's, d_model^-0.5 · warmup_steps^-0.5."""
    muon_learning_rate: float = Field(default=0.005, gt=0, le=100)
    """Peak of the learning rate of the matrices that Muon moves, on the same schedule."""
    min_learning_rate: Rate = 0.0
    """Learning rate at ``max_steps`` with the schedules ``linear`` and ``cosine``."""
    warmup_steps: Steps = 4000
    """Updates over which the learning rate rises linearly to its peak."""
    schedule: Literal["inverse_square_root", "linear", "cosine", "constant"] = "inverse_square_root"
    """Course of the learning rate after the warm-up: the paper's fall with the inverse square root
    of the step, a line, half a cosine, or none."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """Adam's decay of the mean gradient."""
    beta2: float = Field(default=0.98, ge=0, lt=1)
    """Adam's decay of the mean squared gradient."""
    adam_epsilon: PositiveFloat = 1e-9
    """Adam's number added to the divisor."""
    weight_decay: Rate = 0.0
    """Share, times the learning rate, by which an update shrinks every matrix except embeddings;
    not with ``adam``."""

    # Regularization
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Share of the target probability that is spread over the whole vocabulary."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout where the paper has it: after each sub-layer and on the embedded input."""
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of attention weights."""
    feed_forward_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout after the activation of the feed-forward layers."""
    token_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of the whole embedding of a token, source or target."""
    dropout_warmup_steps: int = Field(default=0, ge=0, le=10**12)
    """Updates over which all four rates of dropout rise from 0. What is hardly learned cannot be
    overfitted yet, and without noise the decoder finds the source sooner."""
    subword_samples: int | None = Field(default=None, gt=0, le=1000)
    """Segmentations of a sentence from which every epoch draws one; left out, it is always the
    best."""
    subword_dropout: float = Field(default=0.1, ge=0, le=1)
    """With byte-pair encoding, the probability with which a segmentation leaves out each merge."""
    subword_alpha: float = Field(default=0.2, ge=0, le=1000)
    """With a unigram vocabulary, the power of the probabilities by which segmentations are
    drawn."""
    r_drop: float = Field(default=0.0, ge=0, le=100)
    """R-Drop's weight α: above 0, an update reads every pair twice, under two dropout masks, and
    pulls both predictions of each target token together. It takes about twice as long; a small
    text teaches more."""
    token_cut: float = Field(default=0.0, ge=0, lt=1)
    """SimCut: the probability with which the second of R-Drop's readings sees nothing in place of a
    token, source or target, so that the rest of the sentence must tell it."""

    score_penalty: float = Field(default=0.0, ge=0, le=100)
    """Weight of the variance of each row's scaled scores in the encoder's self-attention. A little,
    such as 0.001, keeps scores in range: a head that a sentence does not need then spreads evenly
    instead of resting on ``</s>``. It is not for recurrent models."""
    score_penalty_decoder: float = Field(default=0.0, ge=0, le=100)
    """The same for the decoder's masked self-attention."""
    score_penalty_cross: float = Field(default=0.0, ge=0, le=100)
    """The same for the decoder's cross-attention."""
    score_penalty_margin: float = Field(default=0.0, ge=0, le=1000)
    """Variance of a row's scaled scores that costs nothing in the encoder. With a margin the
    penalty bounds scores and does not spread idle heads evenly."""
    score_penalty_margin_decoder: float = Field(default=0.0, ge=0, le=1000)
    """The same for both attentions of the decoder. With 3 few of their weights are above 0.99."""

    # Both directions
    both_directions_steps: int = Field(default=0, ge=0, le=10**12)
    """First updates in which each pair is read from source to target or from target to source, as
    drawn each time; a small text teaches a little more. Needs one joint vocabulary."""

    # Guided head
    guided_head: str | None = None
    """Head of cross-attention that learns the links of ``data.train_alignments``, such as
    ``decoder.1.cross.0``."""
    guided_weight: float = Field(default=0.05, gt=0, le=1e6)
    """Weight of the guided head's loss."""
    guided_convention: Literal["predicts", "reads"] = "predicts"
    """Decoder row that a link belongs to: the one that predicts its target token, or the one that
    reads it."""

    # Gradient and frozen weights
    max_gradient_norm: float | None = Field(default=None, gt=0)
    """A longer gradient is scaled down to this norm."""
    freeze: Several[str] = ()
    """Weights to leave as they are, by the beginnings of their names: ``encoder``,
    ``decoder.layers.0``."""

    # Averaging
    averaging: Literal["none", "running", "last", "best"] = "none"
    """Model to validate and keep: the weights as they are (``none``), their running average, or the
    mean of the last or best validated weights."""
    averaging_decay: float = Field(default=0.999, ge=0, lt=1)
    """Share of the ``running`` average that each update keeps."""
    averaging_count: int = Field(default=10, gt=0, le=1000)
    """Number of validated weights in the mean of the ``last`` or the ``best``."""

    # End, by whichever comes first
    max_steps: Steps = 100_000
    """Maximum number of updates."""
    max_minutes: float | None = Field(default=None, gt=0)
    """Maximum number of minutes."""
    patience: Literal["none"] | Annotated[int, Field(gt=0)] = "none"
    """Maximum number of validations without a better model, by ``best_by``; or ``none``."""

    # Validation, checkpoints and log
    validate_every: Steps = 1000
    """Updates between validations, each of which translates the validation text and saves a
    checkpoint."""
    best_by: Literal["auto", "bleu", "chrf", "loss"] = "auto"
    """Measure that chooses the model to keep. ``auto`` takes BLEU. If it is equal, if not one
    sequence of four tokens is right yet, or if most targets are shorter, chrF decides, then the
    loss. ``bleu`` looks at BLEU only. In scripts without spaces, BLEU counts characters."""
    keep_checkpoints: int = Field(default=2, ge=2)
    """Newest checkpoints to keep."""
    log: LogConfig = Field(default_factory=LogConfig, exclude=True)
    """What a run writes, by the options of the command."""

    @property
    def score_penalties(self) -> dict[str, tuple[float, float]]:
        """Weight and margin of the penalty on scores, by the kind of attention."""
        margin = self.score_penalty_margin_decoder
        return {
            "encoder": (self.score_penalty, self.score_penalty_margin),
            "decoder": (self.score_penalty_decoder, margin),
            "cross": (self.score_penalty_cross, margin),
        }

    @property
    def guided_place(self) -> tuple[int, int] | None:
        """Layer and number of the guided head."""
        return None if self.guided_head is None else guided_place(self.guided_head)

    @model_validator(mode="before")
    @classmethod
    def _gather_log(cls, values: Any) -> Any:
        refuse_old("training", values)
        if not isinstance(values, Mapping):
            return values
        log = {name: value for name, value in values.items() if name in LogConfig.model_fields}
        rest = {name: value for name, value in values.items() if name not in log}
        return {**rest, "log": log} if log else values

    @field_validator("device", mode="before")
    @classmethod
    def _check_device(cls, value: Any) -> Any:
        if not is_device_name(value):
            raise ValueError(
                f"training.device must be 'auto', 'cpu', 'cuda' or 'cuda:N', but is {value!r}"
            )
        return value

    @field_validator("processes", mode="before")
    @classmethod
    def _auto_or_number(cls, value: Any) -> Any:
        # Not `isinstance`, for which True is a number.
        if value != "auto" and (type(value) is not int or not 1 <= value <= 256):
            raise ValueError(
                f"training.processes must be 'auto' or between 1 and 256, but is {value!r}"
            )
        return value

    @field_validator("learning_rate", mode="before")
    @classmethod
    def _auto_or_rate(cls, value: Any) -> Any:
        if value != "auto" and (type(value) not in (int, float) or not 0 < value <= 100):
            raise ValueError(
                "training.learning_rate must be 'auto', or above 0 and at most 100, but is "
                f"{value!r}"
            )
        return value

    @field_validator("patience", mode="before")
    @classmethod
    def _none_or_count(cls, value: Any) -> Any:
        if value != "none" and (type(value) is not int or value < 1):
            raise ValueError(f"training.patience must be 'none' or at least 1, but is {value!r}")
        return value

    @field_validator("guided_head", mode="before")
    @classmethod
    def _check_guided_head(cls, value: Any) -> Any:
        if value is not None:
            guided_place(value)
        return value


def guided_place(address: Any) -> tuple[int, int]:
    """Read the address of a single head of cross-attention.

    Returns:
        Its layer and its number.

    Raises:
        ValueError: it is something else.
    """
    try:
        head = parse_head(address)
    except InputError:
        head = None
    if head is None or (head.part, head.kind) != ("decoder", "cross"):
        raise ValueError(
            "training.guided_head must be a head of cross-attention, such as 'decoder.1.cross.0', "
            f"but is {address!r}"
        )
    assert head.layer is not None
    assert head.head is not None
    return head.layer, head.head
