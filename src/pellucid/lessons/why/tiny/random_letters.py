"""Sequences of random letters, to be copied or to be answered with their first letter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.lessons.why.clock import thread_seconds
from pellucid.lessons.why.tiny.learn import END, Pair, Tiny, Updates, make_pair_batch
from pellucid.machine.hardware import some_threads
from pellucid.machine.randomness import generator

Task = Literal["recall", "copy"]

_ALPHABET = "abcdefgh"
LETTERS: tuple[Pair, ...] = ((" ".join(_ALPHABET), " ".join(_ALPHABET)),)
"""A pair with every letter, to make the vocabularies of a model from."""
CHANCE = 1 / len(_ALPHABET)
_FIRST_ID = 4
_EVERY = 25


def draw_letters(task: Task, length: int, *, rows: int, numbers: np.random.Generator) -> Batch:
    """Draw letters as a batch.

    Args:
        task: ``recall`` wants the first letter, ``copy`` all of them in their order.
        length: letters of each source.
        rows: sequences.
        numbers: the source of chance.
    """
    letters_BS = numbers.integers(_FIRST_ID, _FIRST_ID + len(_ALPHABET), (rows, length))
    wanted_BT = letters_BS[:, :1] if task == "recall" else letters_BS
    return make_pair_batch(
        [[*row, END] for row in letters_BS.tolist()], [[*row, END] for row in wanted_BT.tolist()]
    )


@dataclass(frozen=True)
class Check:
    """A look at a model along the way.

    Attributes:
        updates: made so far.
        seconds: processor time of one thread that the updates took.
        share: of the letters of new sequences that are right.
    """

    updates: int
    seconds: float
    share: float


@dataclass(frozen=True)
class Course:
    """The course of a training. After the last check nothing more was trained."""

    checks: tuple[Check, ...]

    def after_updates(self, updates: int) -> float:
        """The share at the last check that came after no more updates."""
        return [check.share for check in self.checks if check.updates <= updates][-1]

    def after_seconds(self, seconds: float) -> float:
        """The share at the last check that came after no more time."""
        return [check.share for check in self.checks if check.seconds <= seconds][-1]

    @property
    def pace(self) -> float:
        """Seconds an update."""
        return self.checks[-1].seconds / self.checks[-1].updates


def study_training(
    tiny: Tiny,
    task: Task,
    length: int,
    *,
    updates: int,
    seconds: float,
    seed: int,
    rows: int = 16,
    enough: float = 0.99,
) -> Course:
    """Train on new letters in every update, and look at the model at regular intervals.

    The learning rate rises over the first updates and stays, so that each check is also the end of
    a shorter training.

    Args:
        tiny: the model, trained in place.
        task: to learn.
        length: letters of each source.
        updates: to make at least.
        seconds: processor time of one thread to train at least.
        seed: of the letters.
        rows: sequences in each batch.
        enough: the share of right letters after which training ends early.
    """
    numbers = generator(seed, "tiny letters", task, length)
    test = draw_letters(task, length, rows=64, numbers=generator(seed, "tiny letters test", length))
    # At least one look before the end.
    every = max(1, min(_EVERY, updates // 2))
    checks = [Check(0, 0.0, share_right(tiny, test))]
    spent = 0.0
    updating = Updates(
        tiny,
        TrainingConfig(
            seed=seed,
            learning_rate=3e-3,
            warmup_steps=30,
            max_steps=updates,
            schedule="constant",
            label_smoothing=0.0,
            dropout=0.0,
        ),
    )
    with some_threads(1):
        while checks[-1].updates < updates or spent < seconds:
            started = thread_seconds()
            for _ in range(every):
                updating.make(draw_letters(task, length, rows=rows, numbers=numbers))
            # Looking at the model is not part of its training.
            spent += thread_seconds() - started
            made = checks[-1].updates + every
            checks.append(Check(made, spent, share_right(tiny, test)))
            if checks[-1].share >= enough:
                break
    return Course(tuple(checks))


@torch.inference_mode()
def share_right(tiny: Tiny, batch: Batch) -> float:
    """Compute the share of letters that are the likeliest, each after the correct ones before."""
    memory_BSD = tiny.model.encode(batch.source_BS)
    logits_BTV = tiny.model.logits(tiny.model.decode(batch.target_in_BT, memory_BSD))
    is_right_BT = logits_BTV.argmax(dim=-1) == batch.target_out_BT
    return float(is_right_BT[:, :-1].float().mean())  # The end token is not a letter.
