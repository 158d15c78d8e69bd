r"""Lenses: the predictions of a model that ends at an earlier layer.

The logit lens applies the model's last step, the last norm if it has one and the output matrix, to
a decoder row after each layer. DecoderLens lets the whole decoder attend to an earlier layer of the
encoder. The model was not trained for either: a lens shows how much of the answer a layer holds in
the form of the last layer. A layer may hold more in another form.

Source:
    nostalgebraist 2020, "interpreting GPT: the logit lens"; Langedijk et al. 2024, "DecoderLens:
    Layerwise Interpretation of Encoder-Decoder Transformers".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.arguments import checked
from pellucid.config.head_address import Part
from pellucid.inside.ask import require_transformer
from pellucid.inside.changes.what_if import WhatIfOutput, decode_under
from pellucid.inside.pair import PairData, states_of
from pellucid.model import Transformer
from pellucid.model.site import Site


@dataclass(frozen=True)
class Guess:
    """A token that would be predicted.

    Attributes:
        token: its piece.
        probability: of the token.
    """

    token: str
    probability: float


@dataclass(frozen=True)
class Depth:
    """The predictions after some of the layers.

    Attributes:
        depth: the number of layers that have run; 0 is the input of the first.
        log_probabilities: of each target token.
        ranks: of each target token, 0 for the likeliest.
        guesses: the likeliest tokens of each row.
    """

    depth: int
    log_probabilities: tuple[float, ...]
    ranks: tuple[int, ...]
    guesses: tuple[tuple[Guess, ...], ...]


@dataclass(frozen=True)
class DecoderDepth(Depth):
    """The decoder's predictions, and its output, from an earlier layer of the encoder.

    Attributes:
        written: the greedy output; None if it was not asked for.
    """

    written: WhatIfOutput | None


@checked
@torch.inference_mode()
def logit_lens(pair: PairData, *, most: int = 5) -> list[Depth]:
    """Read every decoder row after each layer, with teacher forcing.

    Args:
        pair: the sentence.
        most: the number of tokens to name for each row.

    Returns:
        One entry for each depth, from 0 to the whole decoder, whose log-probabilities are the
        model's.
    """
    model = pair.model
    require_transformer(
        model.config, "The lens", "Look at its states instead: --head decoder.0.recurrent."
    )
    assert isinstance(model, Transformer)
    found = []
    for depth, states_LD in enumerate(_states(pair, "decoder")):
        # With the last norm, as after the last layer: without it logits have another scale.
        logits_1TV = model.logits(model.decoder.leave(states_LD[None], Site("decoder")))
        found.append(_read(pair, depth, logits_1TV[0], most))
    return found


@checked
@torch.inference_mode()
def decoder_lens(
    pair: PairData, *, most: int = 5, max_length: int | None = 64
) -> list[DecoderDepth]:
    """Let the decoder attend to each depth of the encoder, through the encoder's last norm.

    Args:
        pair: the sentence.
        most: the number of tokens to name for each row.
        max_length: the most tokens to write greedily; None writes nothing.

    Returns:
        One entry for each depth, from 0, where the decoder attends to embeddings and positions, to
        the whole encoder.
    """
    found = []
    for depth, states_LD in enumerate(_states(pair, "encoder")):
        # Replaced before the last norm, which then applies to the earlier states too.
        probe = _Instead(states_of(pair.model, "encoder")[-1], states_LD)
        read = _read(pair, depth, pair.logits(probe=probe), most)
        written = None
        if max_length is not None:
            written = decode_under(pair, pair.read(probe), max_length=max_length)
        found.append(
            DecoderDepth(depth, read.log_probabilities, read.ranks, read.guesses, written=written)
        )
    return found


class _Instead:
    """A probe that replaces the result of the encoder's last layer."""

    def __init__(self, name: str, states_LD: Tensor) -> None:
        self._name = name
        self._states_LD = states_LD

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Replace the result at the given name."""
        return self._states_LD[None] if f"{site}.{stage}" == self._name else None


def _states(pair: PairData, part: Part) -> list[Tensor]:
    """Return the input of a part's first layer, and the result of each layer."""
    names = states_of(pair.model, part)
    seen = pair.see({name.rpartition(".")[2] for name in names})
    return [seen[name] for name in names]


def _read(pair: PairData, depth: int, logits_TV: Tensor, most: int) -> Depth:
    """Read log-probabilities and ranks of the target, and the likeliest tokens."""
    logs_TV = logits_TV.log_softmax(dim=-1)
    logs_T1 = logs_TV.gather(1, pair.to_tensor(pair.target_ids)[:, None])
    # The number of likelier tokens, so that ties rank first.
    ranks_T = (logs_TV > logs_T1).sum(dim=1)
    best = logs_TV.topk(min(most, logs_TV.shape[1]), dim=1)
    guesses = tuple(
        tuple(map(Guess, pair.tokenizer.target_tokens(ids), logs))
        for ids, logs in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
    )
    return Depth(depth, tuple(logs_T1[:, 0].tolist()), tuple(ranks_T.tolist()), guesses)
