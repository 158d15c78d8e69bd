r"""Lenses: what would be predicted if the model ended here.

The logit lens reads a decoder row after each layer with the model's own last step: the last norm,
where there is one, and the output matrix. DecoderLens lets the whole decoder look at an earlier
layer of the encoder. Neither was trained for it: what a lens shows is how much of the answer stands
in a layer in the form in which the last layer has it; what it does not show may be there in
another.

Source:
    nostalgebraist 2020, "interpreting GPT: the logit lens"; Langedijk et al. 2024, "DecoderLens:
    Layerwise Interpretation of Encoder-Decoder Transformers".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.inside.ask import Part
from pellucid.inside.changes.what_if import Output, decode_under
from pellucid.inside.pair import Pair, states_of
from pellucid.model.site import Site

__all__ = ["DecoderDepth", "Depth", "Guess", "decoder_lens", "logit_lens"]


@dataclass(frozen=True)
class Guess:
    """A token that would be predicted.

    Attributes:
        token: its piece.
        probability: what it would have.
    """

    token: str
    probability: float


@dataclass(frozen=True)
class Depth:
    """What would be predicted after some layers.

    Attributes:
        depth: how many layers have run: 0 is what enters the first.
        log_probabilities: of each target token.
        ranks: of each target token, 0 for the likeliest.
        guesses: for each row the likeliest tokens.
    """

    depth: int
    log_probabilities: tuple[float, ...]
    ranks: tuple[int, ...]
    guesses: tuple[tuple[Guess, ...], ...]


@dataclass(frozen=True)
class DecoderDepth(Depth):
    """What the decoder would predict, and write, from an earlier layer of the encoder.

    Attributes:
        written: greedily; None where that was not asked for.
    """

    written: Output | None


@torch.inference_mode()
def logit_lens(pair: Pair, *, most: int = 5) -> list[Depth]:
    """Read every decoder row after each number of layers, with the target given.

    Args:
        pair: the sentence.
        most: how many tokens to name for each row.

    Returns:
        From depth 0 to the whole decoder, whose log-probabilities are the model's.
    """
    model = pair.model
    found = []
    for depth, states_LD in enumerate(_states(pair, "decoder")):
        logits_1TV = model.logits(model.decoder.leave(states_LD[None], Site("decoder")))
        found.append(Depth(depth, *_read(pair, logits_1TV[0], most)))
    return found


@torch.inference_mode()
def decoder_lens(pair: Pair, *, most: int = 5, max_length: int | None = 64) -> list[DecoderDepth]:
    """Let the decoder look at each depth of the encoder, through the encoder's last norm.

    Args:
        pair: the sentence.
        most: how many tokens to name for each row.
        max_length: the most tokens to write greedily; None writes nothing.

    Returns:
        From depth 0, where the decoder looks at embeddings and positions, to the whole encoder.
    """
    found = []
    for depth, states_LD in enumerate(_states(pair, "encoder")):
        probe = _Instead(states_of(pair.model, "encoder")[-1], states_LD)
        about = _read(pair, pair.logits(probe=probe), most)
        written = None if max_length is None else decode_under(pair, probe, max_length=max_length)
        found.append(DecoderDepth(depth, *about, written))
    return found


class _Instead:
    """A probe that puts another result in place of the encoder's last layer's."""

    def __init__(self, name: str, states_LD: Tensor) -> None:
        self._name = name
        self._states_LD = states_LD

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Replace it."""
        return self._states_LD[None] if f"{site}.{stage}" == self._name else None


def _states(pair: Pair, part: Part) -> list[Tensor]:
    """What enters the first layer of a part, and what leaves each."""
    names = states_of(pair.model, part)
    seen = pair.see({name.rpartition(".")[2] for name in names})
    return [seen[name] for name in names]


def _read(
    pair: Pair, logits_TV: Tensor, most: int
) -> tuple[tuple[float, ...], tuple[int, ...], tuple[tuple[Guess, ...], ...]]:
    """Log-probabilities and ranks of the target, and the likeliest tokens."""
    logs_TV = logits_TV.log_softmax(dim=-1)
    logs_T1 = logs_TV.gather(1, torch.tensor(pair.target_ids)[:, None])
    ranks_T = (logs_TV > logs_T1).sum(dim=1)
    best = logs_TV.topk(min(most, logs_TV.shape[1]), dim=1)
    guesses = tuple(
        tuple(map(Guess, pair.tokenizer.target_tokens(ids), logs))
        for ids, logs in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
    )
    return tuple(logs_T1[:, 0].tolist()), tuple(ranks_T.tolist()), guesses
