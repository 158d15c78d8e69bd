r"""Two runs to patch between: what one of them prefers with a vector of the other in its place.

A share of `pellucid.inside.patches.patching` can be had in three ways.

- The patched run is made. Everything after the vector follows from it.
- **A path** from a sender to readers. B runs with the sender's vector of A, while every attention
  adds what it added in B, so that the sender reaches the readers by residual connections, norms and
  feed-forward networks only. What the readers made of it (a query, a key, a value, the inner layer
  of a feed-forward network, the logits) then replaces theirs in another run of B.
- **By the gradient**, to first order: $d(\text{B patched}) - d(\text{B}) \approx
  (v_A - v_B) \cdot \nabla_v d(\text{B})$. One pass back serves every vector of an array.

Source:
    Paths: Wang et al. 2023, "Interpretability in the Wild: a Circuit for Indirect Object
    Identification in GPT-2 small", section 3.1 and appendix B, where feed-forward networks are
    computed again, too; Goldowsky-Dill et al. 2023, "Localizing Model Behavior with Path Patching".
    By the gradient: Nanda 2023, "Attribution Patching: Activation Patching At Industrial Scale";
    Syed et al. 2023, "Attribution Patching Outperforms Automated Circuit Discovery", section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from pellucid.errors import InputError
from pellucid.inside.ask import check_number
from pellucid.inside.pair import Keeper, PairData
from pellucid.inside.patches.patched_places import (
    OneArray,
)

MOST_TOKENS = 2048
"""Tokens of the copies that run as one batch: enough to be fast, few enough for any memory."""

FEWEST_NATS = 1e-6
"""Two sentences whose preferences differ by less have no difference to restore."""


Metric = Callable[[Tensor], Any]
"""A number of the logits of one row, ``logits_V``."""


@dataclass(frozen=True, eq=False)
class Patching:
    """Two sentences to patch between, each with its translation.

    Attributes:
        a: the sentence whose vectors are taken.
        b: the sentence that gets them.
        asked_row: the decoder row whose answers are compared; the first in which the translations
            differ unless given.
        metric: a number of the logits of that row, in the place of the difference of two of them.
        by_gradient: approximate every share by the gradient in B, instead of running B again.
    """

    a: PairData
    b: PairData
    asked_row: int | None = None
    metric: Metric | None = None
    by_gradient: bool = False

    @cached_property
    def row(self) -> int:
        """The decoder row that is asked about.

        Raises:
            InputError: it does not exist, or the translations do not differ there.
        """
        if self.asked_row is not None:
            # A metric needs no second answer.
            sides = [self.a] if self.metric is not None else [self.a, self.b]
            count = min(len(pair.target_ids) for pair in sides)
            advice = "Name one that exists, or a word."
            check_number("row", self.asked_row, count, "the translations", advice=advice)
            if self.metric is None and len({pair.target_ids[self.asked_row] for pair in sides}) < 2:
                raise InputError(
                    f"Row {self.asked_row} must predict different tokens in the two translations, "
                    f"but predicts {self.a.predicted_tokens[self.asked_row]} in both. Name another "
                    "row, or a word."
                )
            return self.asked_row
        pairs = zip(self.a.target_ids, self.b.target_ids, strict=False)
        for row, (first, second) in enumerate(pairs):
            if first != second:
                return row
        if self.metric is not None:
            return len(self.a.target_ids) - 1
        raise InputError(
            "The two sentences must have different translations, so that there is a difference to "
            "restore, but both are translated the same. Change a word that decides another one."
        )

    @property
    def asked(self) -> str:
        """Name what a number is about, for captions."""
        if self.metric is None:
            return " against ".join(self.answers)
        return getattr(self.metric, "__name__", "metric").strip("<>")

    @property
    def answers(self) -> tuple[str, str]:
        """The token that A has at that row, and the one that B has."""
        return self.a.predicted_tokens[self.row], self.b.predicted_tokens[self.row]

    @cached_property
    def sources(self) -> dict[int, int]:
        """The position of B's source for which each position of A's stands, as far as they align.

        Raises:
            InputError: none does, except the end of the sentence.
        """
        found = dict(_align(self.a.source_tokens, self.b.source_tokens))
        # The end of the sentence always aligns, so it does not count.
        if len(found) < min(2, len(self.b.source_ids)):
            raise InputError(
                "The two sentences must share words, so that their positions can be aligned, but "
                "share none. Change one word of the first."
            )
        return {second: first for first, second in found.items()}

    @cached_property
    def preferences(self) -> tuple[float, float]:
        """How much A and B each prefer A's answer to B's, in nats.

        Raises:
            InputError: they are equal.
        """
        first, second = (self._preference(pair, Keeper(())) for pair in (self.a, self.b))
        # Shares divide by this difference.
        if abs(first - second) < FEWEST_NATS:
            what = f"in their {self.asked}" if self.metric is not None else "in what they prefer"
            both = "have the same" if self.metric is not None else f"weigh {self.asked} equally"
            raise InputError(
                f"The two sentences must differ {what}, but both {both}. Take other sentences, or "
                "ask about other words."
            )
        return first, second

    def share(
        self,
        vectors: Mapping[str, Tensor],
        places: Mapping[str, _Index],
        readers: Sequence[OneArray] = (),
    ) -> float:
        """Return the share that putting arrays of A into B restores.

        Args:
            vectors: arrays of A by name.
            places: for each name, where in A's and in B's array.
            readers: the only arrays that read what was put there; everything does unless given.
        """
        first, second = self.preferences
        if self.by_gradient:
            return self._slope(vectors, places) / (first - second)
        put = _Put(vectors, [places])
        if readers:
            senders = {name.rpartition(".")[0] for name in places}
            frozen = {name: one for name, one in self._outputs.items() if name[0] not in senders}
            on_the_way = _OnTheWay(put, frozen, {reader.name for reader in readers})
            self._preference(self.b, on_the_way)
            # Now the whole model runs, but only the readers know of the sender.
            wholes = {reader.name: _whole(reader.head) for reader in readers}
            put = _Put(on_the_way.found, [wholes])
        changed = self._preference(self.b, put)
        return (changed - second) / (first - second)

    def shares(
        self, vectors: Mapping[str, Tensor], places: Sequence[Mapping[str, _Index]]
    ) -> list[float]:
        """Return the share that each of several patches restores, as `share` does one by one.

        Without readers or gradients, copies of B run as batches, each with another patch.

        Args:
            vectors: arrays of A by name.
            places: for each patch and name, where in A's and in B's array.
        """
        if self.by_gradient or self.b.changes is not None:
            # A change may carry something from one run to the next.
            return [self.share(vectors, one) for one in places]
        first, second = self.preferences
        read = self._read(self.b)
        size = max(1, MOST_TOKENS // (len(read.source_ids) + len(read.target_ids)))
        found: list[float] = []
        for start in range(0, len(places), size):
            # The first copy stays as it is: a batch rounds otherwise than a single run, and a patch
            # without effect restores 0.
            some = [{}, *places[start : start + size]]
            logits_NTV = read.logits_of_copies(_Put(vectors, some), len(some))
            whole, *changed = (_number_of(self._judge(logits_TV[-1])) for logits_TV in logits_NTV)
            found += [(one - whole) / (first - second) for one in changed]
        return found

    @cached_property
    def _outputs(self) -> dict[tuple[str, str], Tensor]:
        """Outputs of every attention and recurrent unit of B, by site and stage."""
        keeper = Keeper(("output",))
        self._preference(self.b, keeper)
        names = [name.rpartition(".") for name in keeper.found if "feed_forward" not in name]
        return {(site, stage): keeper.found[f"{site}.{stage}"] for site, _, stage in names}

    @cached_property
    def _slopes(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Arrays of B with the gradients of its preference, as far as they were asked for."""
        return {}

    def _slope(self, vectors: Mapping[str, Tensor], places: Mapping[str, _Index]) -> float:
        """Multiply the difference between arrays of A and B with the gradient of B's preference."""
        total = 0.0
        for name, (source, target) in places.items():
            if name not in self._slopes:
                leaf = _Leaf(name)
                # The caller may be in inference mode, whose tensors have no gradients.
                with torch.inference_mode(False), torch.enable_grad():
                    answer = self._answer(self.b, leaf)
                    if not isinstance(answer, Tensor) or not answer.requires_grad:
                        raise InputError(
                            "A metric to differentiate must be computed of the logits by PyTorch, "
                            f"but made {answer!r}. Return a tensor, such as logits[7] - logits[9]."
                        )
                    (slope,) = torch.autograd.grad(answer, leaf.zero, materialize_grads=True)
                self._slopes[name] = (leaf.value[0], slope[0])
            value, slope = self._slopes[name]
            step = vectors[name][source] - value[target]  # type: ignore[index]
            # What the mask forbids is minus infinity in both.
            step = torch.where(step.isfinite(), step, 0.0)
            total += float((step * slope[target]).sum())  # type: ignore[index]
        return total

    def positions(self, length: str) -> list[tuple[int, int]]:
        """Pair the positions of A with those of B: of the source (S), or of decoder rows (T)."""
        if length == "S":
            return sorted((first, second) for second, first in self.sources.items())
        return [(row, row) for row in range(self.row + 1)]

    def _preference(self, pair: PairData, probe: object) -> float:
        answer = self._answer(pair, probe)
        return float(answer) if self.metric is None else _number_of(answer)

    def _answer(self, pair: PairData, probe: object) -> Any:
        """Run a source with the beginning that both translations share."""
        return self._judge(self._read(pair).logits(probe=probe)[-1])  # type: ignore[arg-type]

    def _read(self, pair: PairData) -> PairData:
        # Both sentences read A's beginning, which is that of B up to this row.
        return replace(pair, target_ids=self.a.target_ids[: self.row + 1])

    def _judge(self, logits_V: Tensor) -> Any:
        if self.metric is not None:
            return self.metric(logits_V)
        # Logits suffice: the logarithm of their sum cancels in the difference.
        ids = self.a.target_ids[self.row], self.b.target_ids[self.row]
        return logits_V[ids[0]] - logits_V[ids[1]]


def _number_of(found: Any) -> float:
    """Read what a metric of the user's made.

    Raises:
        InputError: it is not a finite number.
    """
    try:
        number = float(found)
    except (TypeError, ValueError, RuntimeError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(
            f"A metric must make one finite number of the logits of a row, but made {found!r}. "
            "Return a number, such as logits[7] - logits[9]."
        )
    return number


_Index = tuple[tuple[object, ...], tuple[object, ...]]


class _Put:
    """A probe that replaces parts of arrays, in each sentence of a batch others."""

    def __init__(
        self, vectors: Mapping[str, Tensor], places: Sequence[Mapping[str, _Index]]
    ) -> None:
        self._vectors = vectors
        self._places = places

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        name = f"{site}.{stage}"
        if not any(name in one for one in self._places):
            return None
        changed = tensor.clone()
        for copy, one in zip(changed, self._places, strict=True):
            if name in one:
                source, target = one[name]
                copy[target] = self._vectors[name][source]  # type: ignore[index]
        return changed


def _whole(head: int | None) -> _Index:
    """Name a whole array, or one head of it, in both runs."""
    index = (slice(None) if head is None else head,)
    return index, index


class _OnTheWay:
    """A probe that patches a sender, holds all else in place, and keeps what readers make of it.

    Attention adds what it added before, so that the sender reaches the readers by residual
    connections, norms and feed-forward networks, which look at one position only.
    """

    def __init__(
        self, put: _Put, frozen: Mapping[tuple[str, str], Tensor], readers: Collection[str]
    ) -> None:
        self._put = put
        self._frozen = frozen
        self._readers = readers
        self.found: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        if f"{site}.{stage}" in self._readers:
            self.found[f"{site}.{stage}"] = tensor[0]
        changed = self._put.see(site, stage, tensor)
        return self._frozen.get((site, stage)) if changed is None else changed


class _Leaf:
    """A probe that keeps an array, and adds a zero to it that can be differentiated by."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.value = torch.zeros(())
        self.zero = torch.zeros(())

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        if f"{site}.{stage}" != self._name:
            return None
        self.value = tensor.detach()
        self.zero = torch.zeros_like(tensor, requires_grad=True)
        return tensor + self.zero


def _align(first: Sequence[str], second: Sequence[str]) -> Iterable[tuple[int, int]]:
    """Pair equal tokens in order, and tokens that stand in the place of each other.

    Where one stretch of tokens replaces another, tokens are paired from its end: the last pieces
    of two words, or of two phrases, stand at the same place.
    """
    # Without the heuristic for long texts, which ignores frequent tokens.
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        if kind in ("equal", "replace"):
            count = min(end - start, other_end - other_start)
            ours = range(end - count, end)
            others = range(other_end - count, other_end)
            yield from zip(ours, others, strict=True)
