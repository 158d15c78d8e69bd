"""Tiny models of equal size: their vocabulary and batches, their training and their use."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch, make_source_batch
from pellucid.decode.greedy import decode_greedily
from pellucid.machine.hardware import some_threads
from pellucid.machine.randomness import generator
from pellucid.model import EncoderDecoder, Transformer, initialize, make_model
from pellucid.training.plain import compute_loss, make_update
from pellucid.training.update.batch_parts import make_pieces
from pellucid.training.weights.optimizer import Optimizer
from pellucid.training.weights.schedule import learning_rate

_SIZES: dict[str, Any] = {
    "d_model": 64,
    "d_ff": 128,
    "num_heads": 4,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "tied_embeddings": "decoder",
    "max_source_length": 512,
    "max_target_length": 512,
}
_OF_RECURRENT = ("d_model", "tied_embeddings", "max_source_length", "max_target_length")
"""The sizes that a recurrent model has too."""


@dataclass(frozen=True, eq=False)
class Tiny:
    """A tiny model with its vocabularies and the course of its training.

    Attributes:
        model: the model.
        source: the words that it reads.
        target: the words that it writes.
        losses: of each update, on the batch that it was made from: −log p of a word, in nats.
    """

    model: EncoderDecoder
    source: TinyVocabulary
    target: TinyVocabulary
    losses: tuple[float, ...] = ()

    def batch(self, pairs: Sequence[Pair]) -> Batch:
        """Make one batch of pairs."""
        return make_pair_batch(
            self.source.encode_all([pair[0] for pair in pairs]),
            self.target.encode_all([pair[1] for pair in pairs]),
        )


def make_tiny(pairs: Sequence[Pair], *, seed: int, **changes: Any) -> Tiny:
    """Make an untrained model for the words of some pairs.

    Args:
        pairs: everything that it will read and write.
        seed: of the first weights.
        changes: fields of `pellucid.config.ModelConfig` that differ from the usual tiny model.
    """
    source = TinyVocabulary.of(pair[0] for pair in pairs)
    target = TinyVocabulary.of(pair[1] for pair in pairs)
    sizes = {"source_vocabulary_size": len(source), "target_vocabulary_size": len(target)}
    usual = _SIZES
    if changes.get("architecture") == "recurrent":
        # A recurrent model refuses settings of attention layers.
        usual = {name: _SIZES[name] for name in _OF_RECURRENT}
    model = make_model(ModelConfig.model_validate(usual | sizes | changes))
    initialize(model, seed)
    return Tiny(model, source, target)


def train_tiny(
    tiny: Tiny, pairs: Sequence[Pair], *, steps: int, seed: int, rate: float = 3e-3, rows: int = 64
) -> Tiny:
    """Train a model in place.

    Args:
        tiny: the model.
        pairs: the text.
        steps: the number of updates.
        seed: decides the order of the text.
        rate: the peak of the learning rate, which rises over a tenth of the updates, then falls to
            0 along a line.
        rows: pairs in each batch.

    Returns:
        The model with its losses. An update whose loss is not finite has the loss infinity.
    """
    sources = tiny.source.encode_all([pair[0] for pair in pairs])
    targets = tiny.target.encode_all([pair[1] for pair in pairs])
    training = TrainingConfig(
        seed=seed,
        learning_rate=rate,
        warmup_steps=max(1, steps // 10),
        max_steps=steps,
        schedule="linear",
        label_smoothing=0.0,
        dropout=0.0,
    )
    updates = Updates(tiny, training)
    losses = []
    # So small a model is as fast on one thread, and its numbers do not depend on their number.
    with some_threads(1):
        for chosen in _batches(len(pairs), rows, steps, seed):
            batch = make_pair_batch([sources[i] for i in chosen], [targets[i] for i in chosen])
            losses.append(updates.make(batch))
    return Tiny(tiny.model, tiny.source, tiny.target, tuple(losses))


class Updates:
    """Updates of a tiny model, one batch after another.

    Args:
        tiny: the model, trained in place.
        training: the settings, among them the schedule of the learning rate.
    """

    def __init__(self, tiny: Tiny, training: TrainingConfig) -> None:
        self._model = tiny.model
        self._training = training
        self._optimizer = Optimizer(tiny.model, training)
        self._step = 0

    def make(self, batch: Batch) -> float:
        """Make an update, and return the loss before it; infinity if that is not finite."""
        self._step += 1
        pace = learning_rate(self._step, self._training, self._model.config.d_model)
        result = make_update(
            self._model,
            self._optimizer,
            make_pieces([batch]),
            self._training,
            step=self._step,
            rate=pace,
            muon_rate=pace,
        )
        # Comparisons with "not a number" are all false; infinity is simply large.
        return result.loss if np.isfinite(result.loss) else float("inf")


def _batches(count: int, rows: int, steps: int, seed: int) -> list[np.ndarray]:
    """Cut the text into batches, in another order each time that it was read."""
    order = np.concatenate(
        [
            # Each reading has another order, whatever the number of updates.
            generator(seed, "tiny order", epoch).permutation(count)
            for epoch in range(rows * steps // count + 1)
        ]
    )
    return [order[rows * step : rows * (step + 1)] for step in range(steps)]


@torch.inference_mode()
def translate_tiny(tiny: Tiny, sentences: Sequence[str]) -> list[str]:
    """Translate sentences, each time taking the likeliest word."""
    source_BS, mask_BS = make_source_batch(tiny.source.encode_all(sentences), pad_id=PAD)
    # An untrained model may never write the end.
    limit = min(2 * source_BS.shape[1] + 5, tiny.model.config.max_target_length)
    found = decode_greedily(
        tiny.model,
        source_BS,
        mask_BS,
        start_id=START,
        eos_id=END,
        max_lengths=[limit] * len(sentences),
    )
    return [tiny.target.decode(one.ids) for one in found]


def count_exact(tiny: Tiny, pairs: Sequence[Pair]) -> float:
    """Compute the share of sentences that are translated exactly."""
    written = translate_tiny(tiny, [pair[0] for pair in pairs])
    return sum(a == b for a, (_, b) in zip(written, pairs, strict=True)) / len(pairs)


@torch.inference_mode()
def loss_on(tiny: Tiny, pairs: Sequence[Pair]) -> float:
    """Compute the mean −log p of the words of true translations, with teacher forcing, in nats."""
    return float(compute_loss(tiny.model, tiny.batch(pairs), 0.0, None)[1])


def derive_loss(tiny: Tiny, pairs: Sequence[Pair]) -> Batch:
    """Compute the gradients of the loss of translations in all weights; return their batch."""
    batch = tiny.batch(pairs)
    loss, _ = compute_loss(tiny.model, batch, 0.0, None)
    loss.backward()  # type: ignore[no-untyped-call]
    return batch


def thin(losses: Sequence[float], every: int) -> list[float]:
    """Average a course of losses over each few updates, to keep and to draw it."""
    parts = [losses[start : start + every] for start in range(0, len(losses), every)]
    return [sum(part) / len(part) for part in parts]


def updates_until(losses: Sequence[float], limit: float) -> int | None:
    """Count the updates until the loss stayed below a limit; None if it never did."""
    # "not <" also finds a loss that is not a number.
    above = [index for index, loss in enumerate(losses) if not loss < limit]
    # The last time above counts: a loss may fall below the limit and rise again.
    last = above[-1] + 1 if above else 0
    return None if last == len(losses) else last + 1


Words = tuple[tuple[str, ...], ...]
"""Rows of a word, its translation, and its gender or feminine form."""

PAD = 0
UNKNOWN = 1
START = 2
END = 3
_SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")

Pair = tuple[str, str]
"""A sentence and its translation, words between spaces."""


@cache
def read_tiny_words(name: str) -> Words:
    """Read a list of ``tiny-words.toml``."""
    source = files("pellucid.lessons.why.tiny").joinpath("tiny-words.toml")
    rows = tomllib.loads(source.read_text(encoding="utf-8"))[name]
    return tuple(map(tuple, rows))


@dataclass(frozen=True)
class TinyVocabulary:
    """The words of one language; a word's number is its place."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, sentences: Iterable[str]) -> TinyVocabulary:
        """Collect the words of some sentences, in alphabetical order behind the special tokens."""
        found = {word for sentence in sentences for word in sentence.split()}
        # In one order, so that numbers do not depend on that of the sentences.
        return cls((*_SPECIAL, *sorted(found)))

    def __len__(self) -> int:
        """Count the words, special tokens included."""
        return len(self.words)

    def encode(self, sentence: str) -> list[int]:
        """Turn a sentence into numbers that end in the end token."""
        places = {word: place for place, word in enumerate(self.words)}
        return [*(places.get(word, UNKNOWN) for word in sentence.split()), END]

    def encode_all(self, sentences: Sequence[str]) -> list[list[int]]:
        """Turn sentences into numbers."""
        places = {word: place for place, word in enumerate(self.words)}
        return [[*(places.get(w, UNKNOWN) for w in s.split()), END] for s in sentences]

    def decode(self, ids: Iterable[int]) -> str:
        """Turn numbers back into a sentence, up to the end token."""
        found = []
        for id_ in ids:
            if id_ == END:
                break
            found.append(self.words[id_])
        return " ".join(found)


def make_pair_batch(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """Pad pairs for teacher forcing: the decoder reads the target, shifted by one."""
    source_BS, source_mask_BS = make_source_batch(sources, pad_id=PAD)
    target_out_BT, target_mask_BT = make_source_batch(targets, pad_id=PAD)
    start_B1: Tensor = torch.full_like(target_out_BT[:, :1], START)
    target_in_BT = torch.cat((start_B1, target_out_BT[:, :-1]), dim=1)
    # The shift moved each end token into the padding of shorter targets.
    target_in_BT = target_in_BT.masked_fill(~target_mask_BT, PAD)
    return Batch(
        source_BS=source_BS,
        source_mask_BS=source_mask_BS,
        target_in_BT=target_in_BT,
        target_out_BT=target_out_BT,
        target_mask_BT=target_mask_BT,
        num_source_tokens=int(source_mask_BS.sum()),
        num_target_tokens=int(target_mask_BT.sum()),
    )


Form = Literal["fixed vector", "additive", "dot product", "Transformer"]

FORMS: Mapping[Form, Mapping[str, Any]] = {
    "fixed vector": {"architecture": "recurrent", "recurrent_attention": "none"},
    "additive": {"architecture": "recurrent", "recurrent_attention": "additive"},
    "dot product": {"architecture": "recurrent", "recurrent_attention": "dot"},
    "Transformer": {},
}
"""The fields of `pellucid.config.ModelConfig` of each form: what the encoder hands over decides."""

_NARROWEST = 8
_WIDEST = 256


def make_form(form: Form, pairs: Sequence[Pair], *, seed: int, **sizes: Any) -> Tiny:
    """Make an untrained model of a form, with as many weights as the tiny Transformer.

    A recurrent form gets the even width whose number of weights is nearest. With widths of about
    64 that is within 3 %.

    Args:
        form: one of `FORMS`.
        pairs: everything that the model will read and write.
        seed: of the first weights.
        sizes: fields of the Transformer's configuration that differ from the usual tiny one.
    """
    transformer = make_tiny(pairs, seed=seed, **sizes)
    if form == "Transformer":
        return transformer
    wanted = count_trained_numbers(transformer)
    vocabularies = {
        "source_vocabulary_size": len(transformer.source),
        "target_vocabulary_size": len(transformer.target),
        "tied_embeddings": transformer.model.config.tied_embeddings,
    }

    def distance(width: int) -> int:
        config = ModelConfig.model_validate({**FORMS[form], **vocabularies, "d_model": width})
        # Only counted: weights without memory are made in no time.
        with torch.device("meta"):
            model = make_model(config)
        return abs(sum(weight.numel() for weight in model.parameters()) - wanted)

    # The number grows with the width: walk from the Transformer's to where it is nearest.
    width = transformer.model.config.d_model
    for step in (2, -2):
        while _NARROWEST <= width + step <= _WIDEST and distance(width + step) < distance(width):
            width += step
    return make_tiny(pairs, seed=seed, d_model=width, **FORMS[form])


def make_transformer(seed: int, **sizes: Any) -> Transformer:
    """Make an untrained Transformer of some sizes, for measurements that train nothing."""
    model = Transformer(ModelConfig.model_validate(sizes))
    initialize(model, seed)
    return model


def count_trained_numbers(tiny: Tiny) -> int:
    """Count the numbers that training can change."""
    return sum(weight.numel() for weight in tiny.model.parameters())
