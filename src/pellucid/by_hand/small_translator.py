"""A small translator that learns eight answers by heart in a second, with or without the mask.

One encoder and one decoder layer with one head of width 4, as in the notes but without
feed-forward network: masked self-attention, cross-attention, each with add and norm. Everything is
computed in float64, and is small enough for a reader to wait for it.

Source:
    Notes "Transformers", sections 3 and 4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid.attention.masks import causal_mask
from pellucid.attention.positions import sinusoidal_positions
from pellucid.by_hand.sheet import AttentionByHand, attend_by_hand
from pellucid.machine.randomness import generator

COMPUTES: Mapping[str, Collection[object]] = {
    "architecture": ("transformer",),
    "norm": ("post",),
    "activation": (),  # It has no feed-forward network.
    "positions": ("sinusoidal",),
    "embedding_scale": ("none",),
    "projection_bias": (False,),
    "tied_embeddings": ("none",),
    "residual": (True,),
    "scale_scores": (True,),
    "look_ahead_mask": (True, False),
    "projections": ("qkv",),
    "norm_kind": ("layer",),
    "stack_norm": (False,),
    "input_norm": (False,),
    "gated_feed_forward": (False,),
    "num_key_value_heads": (0,),
    "decoder": ("attention",),
}
"""The options of `pellucid.config.ModelConfig`, each with the values that this model computes. It
is built from no configuration; an option that is missing here has not been decided on."""

START = "<start>"
END = "<end>"
PAIRS = (
    ("show me the money", "not on your life"),
    ("show me your money", "it is not good"),
    ("show me the pizza", "the pizza is on"),
    ("show me your pizza", "it is your pizza"),
    ("give me the money", "not your money good"),
    ("give me the pizza", "it is not on"),
    ("give me your money", "your money is good"),
    ("give me your pizza", "the life is good"),
)
"""Questions and answers. The answers share their words, so no word tells which one follows."""

WIDTH = 4
NUM_STEPS = 500
RECORDED_EVERY = 50

_LEARNING_RATE = 0.02
_LONGEST = 5
_MATRICES = tuple(f"{part} {role}" for part in ("encoder", "itself", "across") for role in "qkv")

Watch = Callable[[int, float], None]


@dataclass(frozen=True, eq=False)
class Turn:
    """One turn of a decoding loop: the tokens read, and the next token with its probability."""

    read: tuple[str, ...]
    chosen: str
    probabilities_V: Tensor


@dataclass(frozen=True, eq=False)
class Learned:
    """Trained weights.

    Attributes:
        has_mask: False if each row of the decoder saw the rows after it in training.
        weights: by name.
        losses: the cross-entropy by step, averaged over all tokens.
        num_forced_right: the tokens of `PAIRS` predicted right when the right ones are read.
    """

    has_mask: bool
    weights: Mapping[str, Tensor]
    losses: Mapping[int, float]
    num_forced_right: int

    def encode(self, source: str) -> Tensor:
        """Compute the encoder's output of a sentence: one row a word."""
        return _encode(self.weights, _ids(source.split(), SOURCE_WORDS)[None])[0]

    def attend(self, source: str, read: tuple[str, ...]) -> tuple[AttentionByHand, AttentionByHand]:
        """Write down both attentions of the decoder: to itself and across."""
        w = self.weights
        memory_SD = self.encode(source)
        x_TD = self.decoder_input(read)
        mask_LM = causal_mask(len(read))[0, 0] if self.has_mask else None
        itself = attend_by_hand(
            *(x_TD @ w[f"itself {role}"] for role in "qkv"), query_names=read, mask_LM=mask_LM
        )
        assert itself.context_LE is not None
        after_TD = F.layer_norm(x_TD + itself.context_LE, (WIDTH,))
        across = attend_by_hand(
            after_TD @ w["across q"],
            *(memory_SD @ w[f"across {role}"] for role in "kv"),
            query_names=read,
            key_names=tuple(source.split()),
        )
        return itself, across

    def decoder_input(self, read: tuple[str, ...]) -> Tensor:
        """Look up the embeddings of tokens and add their positions."""
        return _embed(self.weights["target"], _ids(read, TARGET_WORDS)[None])[0]

    def predict(self, source: str, read: tuple[str, ...]) -> Tensor:
        """Compute the probabilities of the next token, for each row."""
        memory_BSD = self.encode(source)[None]
        ids_BT = _ids(read, TARGET_WORDS)[None]
        logits_BTV = _decode(self.weights, ids_BT, memory_BSD, has_mask=self.has_mask)
        return logits_BTV[0].softmax(dim=-1)

    def decode(self, source: str) -> tuple[Turn, ...]:
        """Decode greedily: each turn reads all tokens so far."""
        read: tuple[str, ...] = (START,)
        turns: list[Turn] = []
        # A model that never writes the end would write for ever.
        while len(turns) < _LONGEST:
            probabilities_V = self.predict(source, read)[-1]
            chosen = TARGET_WORDS[int(probabilities_V.argmax())]
            turns.append(Turn(read, chosen, probabilities_V))
            if chosen == END:
                break
            read = (*read, chosen)
        return tuple(turns)

    def answer(self, source: str) -> str:
        """Decode, and join the tokens; an answer without an end has ``…``."""
        # The end token is not part of the answer.
        tokens = [turn.chosen for turn in self.decode(source)]
        return " ".join(tokens[:-1] if tokens[-1] == END else [*tokens, "…"])


SOURCE_WORDS = tuple(dict.fromkeys(word for source, _ in PAIRS for word in source.split()))
TARGET_WORDS = tuple(
    dict.fromkeys([START, END, *(word for _, target in PAIRS for word in target.split())])
)


@functools.cache
def learn(has_mask: bool) -> Learned:
    """Train once, and keep the result: it is the same each time."""
    return train_answers(has_mask=has_mask)


def train_answers(*, has_mask: bool, watch: Watch | None = None) -> Learned:
    """Train all weights on `PAIRS`, from random numbers, by Adam.

    Args:
        has_mask: False lets each row of the decoder see the rows after it.
        watch: is called with the step and its loss each time that a loss is recorded.
    """
    weights = {name: _draw(name, WIDTH, WIDTH) for name in _MATRICES}
    weights["source"] = _draw("source", len(SOURCE_WORDS), WIDTH, scale=1.0)
    weights["target"] = _draw("target", len(TARGET_WORDS), WIDTH, scale=1.0)
    weights["output"] = _draw("output", WIDTH, len(TARGET_WORDS))
    # The paper's β₁ and β₂.
    optimizer = torch.optim.Adam(weights.values(), lr=_LEARNING_RATE, betas=(0.9, 0.98))
    source_BS = torch.stack([_ids(source.split(), SOURCE_WORDS) for source, _ in PAIRS])
    target_BT = torch.stack(
        [_ids([START, *target.split(), END], TARGET_WORDS) for _, target in PAIRS]
    )
    losses = {}
    for step in range(NUM_STEPS + 1):
        memory_BSD = _encode(weights, source_BS)
        # Teacher forcing: every row reads the right tokens, and is asked for the next one.
        logits_BTV = _decode(weights, target_BT[:, :-1], memory_BSD, has_mask=has_mask)
        loss = F.cross_entropy(logits_BTV.flatten(0, 1), target_BT[:, 1:].flatten())
        if step % RECORDED_EVERY == 0:
            # Before the update, so that step 0 is the loss of random weights.
            losses[step] = loss.item()
            if watch is not None:
                watch(step, losses[step])
        # The last pass only measures.
        if step < NUM_STEPS:
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    right = int((logits_BTV.argmax(dim=-1) == target_BT[:, 1:]).sum())
    frozen = {name: weight.detach() for name, weight in weights.items()}
    return Learned(has_mask, frozen, losses, right)


def _draw(name: str, rows: int, columns: int, scale: float | None = None) -> Tensor:
    normal = generator(1, "learning by hand", name).standard_normal((rows, columns))
    # Divided by the root of the inputs, a product keeps the variance of x.
    drawn = torch.from_numpy(normal) * (scale or 1 / math.sqrt(rows))
    return drawn.requires_grad_()


def _ids(words: list[str] | tuple[str, ...], known: tuple[str, ...]) -> Tensor:
    return torch.tensor([known.index(word) for word in words])


def _embed(table_VD: Tensor, ids_BL: Tensor) -> Tensor:
    return table_VD[ids_BL] + sinusoidal_positions(ids_BL.shape[1], WIDTH, dtype=table_VD.dtype)


def _attend(
    weights: Mapping[str, Tensor],
    part: str,
    x_BLD: Tensor,
    memory_BMD: Tensor,
    mask_LM: Tensor | None = None,
) -> Tensor:
    """Attend, add and norm."""
    query_BLK = x_BLD @ weights[f"{part} q"]
    key_BMK, value_BME = (memory_BMD @ weights[f"{part} {role}"] for role in "kv")
    scaled_BLM = query_BLK @ key_BMK.mT / math.sqrt(WIDTH)
    if mask_LM is not None:
        scaled_BLM = scaled_BLM.masked_fill(~mask_LM, -math.inf)
    # No gain and no bias: nothing but the matrices is to be learned.
    return F.layer_norm(x_BLD + scaled_BLM.softmax(dim=-1) @ value_BME, (WIDTH,))


def _encode(weights: Mapping[str, Tensor], source_BS: Tensor) -> Tensor:
    x_BSD = _embed(weights["source"], source_BS)
    return _attend(weights, "encoder", x_BSD, x_BSD)


def _decode(
    weights: Mapping[str, Tensor], read_BT: Tensor, memory_BSD: Tensor, *, has_mask: bool
) -> Tensor:
    mask_LM = causal_mask(read_BT.shape[1])[0, 0] if has_mask else None
    x_BTD = _embed(weights["target"], read_BT)
    x_BTD = _attend(weights, "itself", x_BTD, x_BTD, mask_LM)
    return _attend(weights, "across", x_BTD, memory_BSD) @ weights["output"]
