"""Training on a model's own predictions, next to training on the correct words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.decode.greedy import decode_greedily
from pellucid.lessons.why.clock import thread_seconds
from pellucid.lessons.why.tiny.learn import Tiny, Updates
from pellucid.lessons.why.tiny.words import END, PAD, START, Pair, make_pair_batch
from pellucid.machine.hardware import some_threads
from pellucid.machine.randomness import generator


@dataclass(frozen=True)
class Paced:
    """The cost of a training.

    Attributes:
        updates: made.
        seconds: processor time of one thread.
    """

    updates: int
    seconds: float


def train_on(
    tiny: Tiny,
    pairs: Sequence[Pair],
    *,
    is_own: bool,
    updates: int,
    seed: int,
    rows: int = 64,
) -> Paced:
    """Train a model in place on the correct words before each word, or on its own.

    Args:
        tiny: the model.
        pairs: the text.
        is_own: True lets the model write each translation first, and reads that; False reads the
            correct one (teacher forcing). Either is corrected by the correct words.
        updates: to make.
        seed: decides the order of the text.
        rows: pairs in each batch.
    """
    sources = tiny.source.encode_all([source for source, _ in pairs])
    targets = tiny.target.encode_all([target for _, target in pairs])
    training = TrainingConfig(
        seed=seed, learning_rate=3e-3, warmup_steps=max(1, updates // 10), max_steps=updates,
        schedule="linear", label_smoothing=0.0, dropout=0.0,
    )  # fmt: skip
    updating, numbers = Updates(tiny, training), generator(seed, "tiny own")
    seconds = 0.0
    with some_threads(1):
        for _ in range(updates):
            chosen = numbers.permutation(len(pairs))[:rows]
            started = thread_seconds()
            batch = make_pair_batch([sources[i] for i in chosen], [targets[i] for i in chosen])
            updating.make(put_own_words(tiny, batch) if is_own else batch)
            seconds += thread_seconds() - started
    return Paced(updates, seconds)


@torch.no_grad()
def put_own_words(tiny: Tiny, batch: Batch) -> Batch:
    """Let a model write, word by word, and give its decoder those words to read.

    A translation that ends early continues with its end token, so that each correct word is
    still asked for.
    """
    length = batch.target_in_BT.shape[1]
    found = decode_greedily(
        tiny.model,
        batch.source_BS,
        batch.source_mask_BS,
        start_id=START,
        eos_id=END,
        max_lengths=[length] * len(batch.source_BS),
    )
    rows = [[START, *one.ids, *[END] * length][:length] for one in found]
    own_BT = torch.tensor(rows).masked_fill(~batch.target_mask_BT, PAD)
    return replace(batch, target_in_BT=own_BT)
