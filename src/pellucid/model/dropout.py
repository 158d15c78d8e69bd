"""Dropout as a value: a rate, a seed and a step determine every mask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from pellucid.machine.randomness import derive_key, generator_state, random_bytes
from pellucid.native.kernels.calls import DropoutBytes
from pellucid.native.kernels.kernels import Kernels

_LEVELS = 256

_ACTIVATED = ".activated"

_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Dropout:
    """Makes dropout masks by place: the same (seed, step, part, place) gives the same mask.

    One random byte decides one element, so the rate is rounded to the nearest 1/256. Kept elements
    are scaled by the rate in effect, so the only bias is the rounding of that factor.

    Attributes:
        rate: the share of elements set to zero, in [0, 1).
        seed: the run's seed.
        step: the training step.
        part: the number, from 0, of one of the batches whose gradients the step sums.
        attention_rate: the share for attention weights.
        feed_forward_rate: the share for the output of the feed-forward network's activation.
        token_rate: the share of tokens whose whole embedding is set to zero.
        cut_rate: the same for the second half of a batch that holds every pair twice; what is left
            is not scaled, as both readings are compared.

    Source:
        Vaswani et al. 2017, section 5.4: applied to the output of each sub-layer before it is
        added to its input, and to the sums of embeddings and positions. The other two: the
        authors' own implementation, tensor2tensor. Whole tokens: Gal and Ghahramani 2016, "A
        Theoretically Grounded Application of Dropout in Recurrent Neural Networks"; Sennrich and
        Zhang 2019, "Revisiting Low-Resource Neural Machine Translation". Of one reading only: Gao
        et al. 2022, "Bi-SimCut: A Simple Strategy for Boosting Neural Machine Translation".
    """

    rate: float
    seed: int
    step: int
    part: int = 0
    attention_rate: float = 0.0
    feed_forward_rate: float = 0.0
    token_rate: float = 0.0
    cut_rate: float = 0.0

    @property
    def drops_weights(self) -> bool:
        """True if `on_weights` drops anything."""
        return self.attention_rate > 0

    def __call__(self, tensor: Tensor, place: str) -> Tensor:
        """Set some elements to zero and scale the others, so that the mean stays."""
        return self._drop(tensor, place, self.rate)

    def on_weights(self, weights_BHLM: Tensor, place: str) -> Tensor:
        """Do the same to attention weights, at their own rate."""
        return self._drop(weights_BHLM, f"{place}.weights", self.attention_rate)

    def on_activated(self, activated_BLF: Tensor, place: str) -> Tensor:
        """Do the same inside the feed-forward network, at its own rate."""
        return self._drop(activated_BLF, f"{place}{_ACTIVATED}", self.feed_forward_rate)

    def on_tokens(self, embedding_BLD: Tensor, place: str) -> Tensor:
        """Set whole embeddings to zero, at their own rates; their positions remain."""
        factors_BL = self._factors_of_tokens(torch.ones_like(embedding_BLD[..., 0]), place)
        return embedding_BLD if factors_BL is None else embedding_BLD * factors_BL.unsqueeze(-1)

    def draw(self, counts: Mapping[str, int], kernels: Kernels) -> dict[str, DropoutBytes]:
        """Draw the random bytes of a call, and leave the dropping to kernels.

        Args:
            counts: the number of elements at each place; the place of `on_activated` is
                ``"{place}.activated"``.
            kernels: make the random bytes.

        Returns:
            The bytes of each place with dropout.
        """
        levels = {place: _dropped_levels(self._rate_at(place)) for place in counts}
        places = [place for place, dropped_levels in levels.items() if dropped_levels]
        # Only states: the kernels draw from them the same bytes as `_multiplier` does.
        states = [
            generator_state(self.seed, "dropout", self.step, self._name(place)) for place in places
        ]
        drawn = kernels.random_bytes(states, [counts[place] for place in places])
        return {
            place: DropoutBytes(own, levels[place], _factor(levels[place]))
            for place, own in zip(places, drawn, strict=True)
        }

    def token_factors(self, count: int, place: str) -> Tensor | None:
        """Compute the factor by which `on_tokens` multiplies each of ``count`` embeddings."""
        return self._factors_of_tokens(torch.ones(count), place)

    def _factors_of_tokens(self, ones: Tensor, place: str) -> Tensor | None:
        if not self.token_rate and not self.cut_rate:
            return None
        factors = self._drop(ones, f"{place}.tokens", self.token_rate)
        if not self.cut_rate:
            return factors
        first, second = factors.chunk(2)
        kept = self._drop(torch.ones_like(second), f"{place}.cut", self.cut_rate).sign()
        return torch.cat((first, second * kept))

    def _rate_at(self, place: str) -> float:
        return self.feed_forward_rate if place.endswith(_ACTIVATED) else self.rate

    def _name(self, place: str) -> str:
        # Part 0 has no suffix, so that a step in one part has the masks that it always had.
        return f"{place}.{self.part}" if self.part else place

    def _drop(self, tensor: Tensor, place: str, rate: float) -> Tensor:
        dropped_levels = _dropped_levels(rate)
        if dropped_levels == 0:
            return tensor
        place = self._name(place)
        factor = _factor(dropped_levels)
        if tensor.device.type == "cpu":
            return tensor * self._multiplier(tensor, place, dropped_levels, factor)
        keep = self._random_bytes(tensor, place) >= dropped_levels
        # One operation for tensor * keep * factor, with its own derivative.
        dropped: Tensor = torch.ops.aten.native_dropout_backward(tensor, keep, factor)
        return dropped

    def _multiplier(self, tensor: Tensor, place: str, dropped_levels: int, factor: float) -> Tensor:
        """Make a tensor of zeros and factors, on the processor.

        NumPy makes them as integers with the factor's bits: PyTorch's operations on truth values
        take about ten times as long there.
        """
        drawn = random_bytes(tensor.numel(), self.seed, "dropout", self.step, place)
        bits = torch.tensor(factor, dtype=tensor.dtype).view(_INTEGERS[tensor.itemsize]).numpy()
        multiplier = (drawn >= dropped_levels).view(np.int8) * bits
        return torch.from_numpy(multiplier).view(tensor.dtype).view(tensor.shape)

    def _random_bytes(self, tensor: Tensor, place: str) -> Tensor:
        device_generator = torch.Generator(device=tensor.device)
        # 63 of the key's 128 bits, which every seed of PyTorch can hold.
        device_generator.manual_seed(derive_key(self.seed, "dropout", self.step, place) >> 65)
        return torch.randint(
            _LEVELS,
            tensor.shape,
            dtype=torch.uint8,
            device=tensor.device,
            generator=device_generator,
        )


def _dropped_levels(rate: float) -> int:
    # Never all levels, since the factor would be infinite.
    return min(round(rate * _LEVELS), _LEVELS - 1)


def _factor(dropped_levels: int) -> float:
    return _LEVELS / (_LEVELS - dropped_levels)


@dataclass(frozen=True)
class DropoutOnDevice(Dropout):
    """Dropout whose seed and rates are data of a device, so that work with it can be recorded.

    Masks follow from the generator's seed, which `key` makes of seed, step and part, and from the
    order of the places, which is that of the model. The rates are those after the warm-up.

    Attributes:
        generator: of the device, seeded before the pass.
        warmup: the share of its rates that dropout has now, a scalar on the device.
    """

    generator: torch.Generator = field(default_factory=torch.Generator)
    warmup: Tensor = field(default_factory=lambda: torch.ones(()))

    @property
    def key(self) -> int:
        """The seed of the generator for this step and part."""
        # 63 of the key's 128 bits, which every seed of PyTorch can hold.
        return derive_key(self.seed, "dropout", self.step, self.part) >> 65

    def _drop(self, tensor: Tensor, place: str, rate: float) -> Tensor:
        if not rate:
            return tensor
        levels = (self.warmup * (rate * _LEVELS)).round().clamp(max=_LEVELS - 1)
        drawn = torch.randint(
            _LEVELS,
            tensor.shape,
            dtype=torch.uint8,
            device=tensor.device,
            generator=self.generator,
        )
        factor = (_LEVELS / (_LEVELS - levels)).to(tensor.dtype)
        return tensor * ((drawn >= levels) * factor)
