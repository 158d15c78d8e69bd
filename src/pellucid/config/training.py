"""How to train: everything that is neither data nor model."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    field_validator,
)

from pellucid.config.base import Count, Rate, Steps, Strict

__all__ = ["TrainingConfig"]


class TrainingConfig(Strict):
    """How to train: the paper's settings unless a recipe says otherwise.

    **Rate.** It rises linearly to ``learning_rate`` over ``warmup_steps``. Then it falls with the
    inverse square root of the step, the paper's ``schedule``; or on a line or half a cosine to
    ``min_learning_rate`` at ``max_steps``; or stays. ``learning_rate = 0`` asks for the paper's
    peak, ``d_model^-0.5 * warmup_steps^-0.5``. ``muon`` moves every matrix that is no embedding
    at ``muon_learning_rate``, on the same schedule, and everything else as ``adamw`` does.

    **Batch.** A batch has at most ``max_tokens_per_batch`` positions on either side, padding
    included. An update sums the gradients of ``accumulate`` batches, and a gradient longer than
    ``max_gradient_norm`` is shortened to that (0: never). On a processor
    ``processes`` share each batch and the threads; with ``auto`` one on the package's own kernels,
    on PyTorch's about one a thread, in bfloat16 one for two, as long as 1,000 of
    ``max_tokens_per_batch`` fall to each and memory allows. A run keeps its number.

    **Kernels.** What the passes run on, on a processor: with ``auto`` the package's own kernels
    where they are built for it and for such a model, else PyTorch's; ``own`` refuses to do
    without, ``pytorch`` leaves them. The last digits of all numbers depend on it.

    **Regularization.** ``dropout`` as in the paper; ``attention_dropout`` on the weights of
    attention, ``feed_forward_dropout`` on what its activation gives, ``token_dropout`` on whole
    embeddings, of source and target; all four rise from 0 over ``dropout_warmup_steps``, for what
    is hardly learned need not be guarded against overfitting, and without noise the decoder finds
    the source sooner; ``subword_samples`` above 0 draws every sentence anew in every epoch from
    that many of its segmentations: of a unigram vocabulary the likeliest, p^``subword_alpha``; of
    byte-pair encoding such as leave out each merge with probability ``subword_dropout``.

    **Two readings.** With ``r_drop`` above 0 every pair is read twice in an update, under two
    dropout masks, and what both readings say of each target token is pulled together by so much
    (α of R-Drop). An update takes about twice as long; a small text teaches more so.

    **Directions.** In the first ``both_directions_steps`` each pair is read from source to target
    or from target to source, as drawn anew every time: a small text teaches a little more so. Then
    only what is wanted is learned. It needs one vocabulary for both languages.

    **Averaging.** What is validated and kept as the model: the weights as they are (``none``),
    their running average (each update keeps ``average_decay`` of it), or the mean of the
    ``average_count`` last or best validated weights.

    **Log.** A line every ``log_every`` updates. Every ``validate_every`` the validation text is
    translated, and ``validation_samples`` sentences of it are shown.

    **End.** The first of ``max_steps``, ``max_minutes`` (0: no limit) and ``patience`` validations
    without a better BLEU (0: never).

    **Checkpoints.** One at every validation, and one whenever ``save_minutes`` have passed since
    the last (0: never). The newest ``keep_checkpoints`` stay.

    **Guided head.** ``guided_head``, a layer and a head of cross-attention (``[]``: none), is
    taught the links of ``data.train_alignments`` by a loss of ``guided_weight``; a link counts for
    the decoder row that ``predicts`` its target token or for the one that ``reads`` it
    (``guided_convention``).

    ``freeze`` names weights that stay as they are, by how their names begin (``encoder``,
    ``decoder.layers.0``). ``precision`` is that of the products; weights, sums and the optimizer
    are float32. With ``compile`` PyTorch compiles the passes, for which it needs a C++ compiler.

    Source:
        Vaswani et al. 2017, section 5; Kudo 2018, "Subword Regularization"; Provilkov et al.
        2020, "BPE-Dropout"; Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks";
        Ding et al. 2021, "Improving Neural Machine Translation by Bidirectional Training"; Jordan
        et al. 2024, "Muon"; Garg et al. 2019, "Jointly Learning to Align and Translate with
        Transformer Models".
    """

    seed: NonNegativeInt = 1
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    kernels: Literal["auto", "own", "pytorch"] = "auto"
    compile: bool = False
    processes: Literal["auto"] | int = "auto"
    max_tokens_per_batch: Count = 4096
    accumulate: int = Field(default=1, gt=0, le=10_000)
    optimizer: Literal["adam", "adamw", "muon"] = "adam"
    learning_rate: Rate = 0.0
    muon_learning_rate: float = Field(default=0.005, gt=0, le=100)
    min_learning_rate: Rate = 0.0
    warmup_steps: Steps = 4000
    schedule: Literal["inverse_square_root", "linear", "cosine", "constant"] = "inverse_square_root"
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.98, ge=0, lt=1)
    epsilon: PositiveFloat = 1e-9
    weight_decay: Rate = 0.0
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    feed_forward_dropout: float = Field(default=0.0, ge=0, lt=1)
    token_dropout: float = Field(default=0.0, ge=0, lt=1)
    dropout_warmup_steps: int = Field(default=0, ge=0, le=10**12)
    subword_samples: int = Field(default=0, ge=0, le=1000)
    subword_alpha: float = Field(default=0.2, ge=0)
    subword_dropout: float = Field(default=0.1, ge=0, le=1)
    r_drop: float = Field(default=0.0, ge=0, le=100)
    both_directions_steps: int = Field(default=0, ge=0, le=10**12)
    guided_head: tuple[NonNegativeInt, ...] = ()
    guided_weight: float = Field(default=0.05, gt=0, le=1e6)
    guided_convention: Literal["predicts", "reads"] = "predicts"
    max_gradient_norm: NonNegativeFloat = 0.0
    freeze: tuple[str, ...] = ()
    averaging: Literal["none", "running", "last", "best"] = "none"
    average_decay: float = Field(default=0.999, ge=0, lt=1)
    average_count: int = Field(default=10, gt=0, le=1000)
    max_steps: Steps = 100_000
    max_minutes: NonNegativeFloat = 0.0
    patience: NonNegativeInt = 0
    validate_every: Steps = 1000
    save_minutes: NonNegativeFloat = 5.0
    validation_samples: NonNegativeInt = 3
    log_every: Steps = 50
    tensorboard: bool = False
    keep_checkpoints: int = Field(default=2, ge=2)

    @field_validator("processes", mode="before")
    @classmethod
    def _auto_or_number(cls, value: Any) -> Any:
        if value != "auto" and (type(value) is not int or not 1 <= value <= 256):
            raise ValueError(
                f"training.processes must be 'auto' or between 1 and 256, but is {value!r}"
            )
        return value

    @field_validator("freeze", "guided_head", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        if isinstance(value, str):
            return (value,)
        return tuple(value) if isinstance(value, list) else value

    @field_validator("guided_head")
    @classmethod
    def _layer_and_head(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(value) not in (0, 2):
            raise ValueError(
                f"training.guided_head must be [layer, head], or [] for none, but is {list(value)}"
            )
        return value
