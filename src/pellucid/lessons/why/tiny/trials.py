"""Trials: tiny models that differ in one setting learn the same text in the same updates.

Two texts ask for different things of attention. *Lists* of animals need order: the model must look
at the next phrase, and an adjective changes places. *Pronouns* need meaning: the predicate at the
end tells which of two nouns *it* stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import Pair, Tiny, count_exact, loss_on, make_tiny, train_tiny
from pellucid.lessons.why.tiny.tiny_language import draw_lists
from pellucid.lessons.why.tiny.two_nouns import draw_others, draw_unseen

LEARNED = 0.05
"""A text counts as learned when the training loss is below this, in nats per word."""
_WINDOW = 10
"""Updates over which the training loss is averaged."""

TaskName = Literal["lists", "pronouns"]


@dataclass(frozen=True)
class TextToLearn:
    """A text to learn.

    Attributes:
        name: the text.
        train: its pairs.
        tests: new pairs.
        steps: the updates that every model gets.
        num_encoder_layers: of the model; the decoder has one layer.
    """

    name: TaskName
    train: tuple[Pair, ...]
    tests: tuple[Pair, ...]
    steps: int
    num_encoder_layers: int


@dataclass(frozen=True)
class Trial:
    """The result of one training.

    Attributes:
        exact: the share of new sentences that are translated exactly.
        loss: on new sentences, in nats per word.
        updates: made until the training loss was below `LEARNED`; all of them if it never was.
        parameters: of the model.
    """

    exact: float
    loss: float
    updates: int
    parameters: int


def make_task(name: TaskName, setting: MeasurementSetting, *, seed: int) -> TextToLearn:
    """Draw a text for the size of a measurement."""
    if name == "lists":
        count, num_tests = setting.choose((4000, 150), (40, 5))
        train = draw_lists(count, phrases=(2, 3, 4), seed=seed, part="train")
        tests = draw_lists(num_tests, phrases=(4,), seed=seed, part="test")
        return TextToLearn(name, tuple(train), tuple(tests), setting.choose(500, 3), 1)
    count, num_tests = setting.choose((3000, 150), (40, 5))
    train = draw_others(count, seed=seed)
    tests = draw_unseen(train, num_tests, seed=seed)
    return TextToLearn(name, tuple(train), tuple(tests), setting.choose(600, 3), 2)


def run_trial(
    task: TextToLearn, *, seed: int, frozen: Sequence[str] = (), **changes: Any
) -> tuple[Trial, Tiny]:
    """Train a model on a text and test it.

    Args:
        task: the text.
        seed: of the first weights and the order of the text.
        frozen: the projections that keep their random first weights: ``query``, ``key``, ``value``.
        changes: fields of `pellucid.config.ModelConfig` that differ from width 32 with 2 heads.
    """
    sizes = {"d_model": 32, "d_ff": 64, "num_heads": 2}
    layers = {"num_encoder_layers": task.num_encoder_layers}
    tiny = make_tiny([*task.train, *task.tests], seed=seed, **(sizes | layers | changes))
    for name, parameter in tiny.model.named_parameters():
        # Set before `train_tiny` makes the optimizer.
        if any(name.endswith(f"_attention.{one}.weight") for one in frozen):
            parameter.requires_grad_(False)
    tiny = train_tiny(tiny, task.train, steps=task.steps, seed=seed, rate=5e-3, rows=32)
    trial = Trial(
        count_exact(tiny, task.tests),
        loss_on(tiny, task.tests),
        updates_to(tiny.losses, LEARNED),
        sum(parameter.numel() for parameter in tiny.model.parameters()),
    )
    return trial, tiny


def make_untrained(task: TextToLearn, tiny: Tiny, *, seed: int) -> Tiny:
    """Make a model of a trial again, as it was before its training."""
    config = tiny.model.config
    return make_tiny(
        [*task.train, *task.tests],
        seed=seed,
        num_heads=config.num_heads,
        d_model=config.d_model,
        d_ff=config.d_ff,
        num_encoder_layers=config.num_encoder_layers,
    )


def updates_to(losses: Sequence[float], limit: float) -> int:
    """Count the updates until the mean loss of the last few is below a limit."""
    for end in range(_WINDOW, len(losses) + 1):
        # A single batch may be easy by chance.
        if sum(losses[end - _WINDOW : end]) / _WINDOW < limit:
            return end
    return len(losses)
