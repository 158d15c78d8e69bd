"""What if: decode again while something is changed, and say what differs.

A change is judged by two things: what the model now writes, and what it now says of the words it
wrote before. A claim about a head needs a third: what the same change does to other heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

import torch

from pellucid.attention.probe import Probe
from pellucid.decode.constraints.build_request import prefix_ids
from pellucid.errors import InputError
from pellucid.inside.changes.change import Change, Changes
from pellucid.inside.changes.place import Place, all_heads
from pellucid.inside.pair import Pair
from pellucid.randomness import generator

__all__ = ["Baseline", "Edit", "Output", "WhatIf", "decode_under", "random_heads", "what_if"]

UNCHANGED = Changes()
"""Takes the explicit stages too, so that nothing differs but the changes."""


@dataclass(frozen=True)
class Output:
    """Something written, and how likely the model found it.

    Attributes:
        text: as a reader sees it.
        ids: its tokens.
        tokens: the same as pieces.
        log_probabilities: natural logs, one a token.
    """

    text: str
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    log_probabilities: tuple[float, ...]

    @property
    def log_probability(self) -> float:
        """Their sum."""
        return sum(self.log_probabilities)


@dataclass(frozen=True)
class Edit:
    """Words that stand in one text and not in the other, at one place.

    Attributes:
        place: the word before which they stand in the first text, from 0.
        before: words of the first text.
        after: what the second has in their place.
    """

    place: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Baseline:
    """The same change of other heads, drawn at random: what it takes to call a head special.

    Attributes:
        changes: what was done, draw by draw.
        effects: on the log-probability of the original output.
    """

    changes: tuple[str, ...]
    effects: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean effect."""
        return sum(self.effects) / len(self.effects)

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest effect."""
        return min(self.effects), max(self.effects)


@dataclass(frozen=True)
class WhatIf:
    """What a change does to one sentence.

    Attributes:
        changes: as text.
        original: the pair's target, with what the model says of it unchanged.
        under_change: what the changed model says of the same tokens, teacher-forced.
        before: what the unchanged model writes, greedily, with the same forced prefix. It differs
            from the original where that came from a beam, a sample, or a person.
        after: what the changed model writes, and how likely it finds that.
        after_unchanged: how likely the unchanged model finds what the changed one wrote.
        baseline: for a change of single heads, where it was asked for.
    """

    changes: tuple[str, ...]
    original: Output
    under_change: tuple[float, ...]
    before: Output
    after: Output
    after_unchanged: tuple[float, ...]
    baseline: Baseline | None = None

    @property
    def effect(self) -> float:
        """The change in the original's log-probability: below 0 where the model now doubts it."""
        return sum(self.under_change) - self.original.log_probability

    @property
    def token_effects(self) -> tuple[float, ...]:
        """The same token by token."""
        pairs = zip(self.under_change, self.original.log_probabilities, strict=True)
        return tuple(changed - unchanged for changed, unchanged in pairs)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Where what is written now differs from what was written before, word by word."""
        before, after = self.before.text.split(), self.after.text.split()
        codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        return tuple(
            Edit(first, tuple(before[first:last]), tuple(after[start:end]))
            for kind, first, last, start, end in codes
            if kind != "equal"
        )


@torch.inference_mode()
def what_if(
    pair: Pair,
    changes: Sequence[Change],
    *,
    prefix: str = "",
    max_length: int | None = None,
    num_random: int = 0,
    seed: int = 1,
) -> WhatIf:
    """Decode again under changes, and score the original output under them.

    Args:
        pair: the source, and the original output.
        changes: what to do, in order; none is allowed where a prefix is forced.
        prefix: how the translation must begin.
        max_length: the most tokens to write; twice the original's and 20 more unless given.
        num_random: how many draws of other heads to compare with. A draw replaces each changed
            head by another one of the same kind in the same part of the model; where there are
            fewer, there are fewer draws.
        seed: decides the draws.

    Raises:
        InputError: a place does not exist, the prefix cannot be written, or a random baseline is
            asked for although the changes name no single heads.
    """
    probe = Changes(*changes)
    if changes or not prefix:
        probe.check(pair.model.config, len(pair.source_ids), len(pair.target_ids))
    draws = random_heads(pair, changes, num_random, seed=seed) if num_random else []
    forced = prefix_ids(pair.tokenizer, prefix) if prefix else ()
    limit = max_length or 2 * len(pair.target_ids) + 20
    before = decode_under(pair, UNCHANGED, prefix_ids=forced, max_length=limit)
    after = decode_under(pair, probe, prefix_ids=forced, max_length=limit)
    original = _output(pair, pair.target_ids, _score(pair, UNCHANGED))
    effects = [sum(_score(pair, Changes(*draw))) - original.log_probability for draw in draws]
    rescored = Pair(pair.model, pair.tokenizer, pair.source_ids, after.ids)
    return WhatIf(
        changes=tuple(map(str, changes)),
        original=original,
        under_change=_score(pair, probe),
        before=before,
        after=after,
        after_unchanged=_score(rescored, UNCHANGED),
        baseline=Baseline(tuple(str(Changes(*draw)) for draw in draws), tuple(effects))
        if draws
        else None,
    )


@torch.inference_mode()
def decode_under(
    pair: Pair, probe: Probe | None, *, prefix_ids: Sequence[int] = (), max_length: int
) -> Output:
    """Decode the pair's source greedily, with a probe at every step.

    The slow path: each step runs the whole decoder once more without a cache, so that a change
    reaches every row as it would in one pass.

    Args:
        pair: whose source is decoded; its target counts for nothing.
        probe: sees every step, and may change it.
        prefix_ids: what the translation begins with.
        max_length: the most tokens to write, the prefix included.
    """
    special = pair.tokenizer.config
    silent = {special.pad_id, special.bos_id, special.target_start_id} - {special.eos_id, None}
    never = torch.tensor(sorted(silent))
    limit = min(max_length, pair.model.config.max_target_length)
    memory_1SD = pair.model.encode(torch.tensor([pair.source_ids]), probe=probe)
    ids: list[int] = []
    logs: list[float] = []
    while len(ids) < limit and (not ids or ids[-1] != special.eos_id):
        read_1T = torch.tensor([[special.target_start_id, *ids]])
        states_1TD = pair.model.decode(read_1T, memory_1SD, probe=probe)
        logs_V = pair.model.logits(states_1TD, probe=probe)[0, -1].log_softmax(dim=-1)
        if len(ids) < len(prefix_ids):
            chosen = prefix_ids[len(ids)]
        else:
            chosen = int(logs_V.index_fill(0, never, -torch.inf).argmax())
        ids.append(chosen)
        logs.append(float(logs_V[chosen]))
    return _output(pair, ids, logs)


def random_heads(
    pair: Pair, changes: Sequence[Change], count: int, *, seed: int = 1
) -> list[list[Change]]:
    """Draw the same changes of other heads.

    Args:
        pair: whose model it is.
        changes: what was done; each to one head, or to edges of one head.
        count: how many draws; at most as many as there are.
        seed: decides them, with the changes.

    Returns:
        Different draws. In each, every changed head is replaced by another of the same kind in
        the same part (encoder, decoder's self-attention, or cross-attention), no two by the same.

    Raises:
        InputError: a change names several heads at once, or no other heads are left.
    """
    for change in changes:
        if not change.place.is_one_head:
            raise InputError(
                "A random baseline must compare a head with other heads, but the change is "
                f"{str(change)!r}. Name one head, or leave the baseline out."
            )
    heads = {change.place.whole_head for change in changes}
    changed = sorted(heads, key=lambda head: (_kind(head), str(head)))
    rng = generator(seed, "random heads", *map(str, changes))
    draws: dict[str, list[Change]] = {}
    for _ in range(20 * count):  # Draws may repeat, above all where there are few heads.
        if len(draws) == count:
            break
        moves: dict[Place, Place] = {}
        for kind, group in groupby(changed, key=_kind):
            ours = list(group)
            others = [
                head
                for head in all_heads(pair.model.config)
                if _kind(head) == kind and head not in changed
            ]
            if len(others) < len(ours):
                raise InputError(
                    "A random baseline must have other heads of the same kind, but of "
                    f"{'.'.join(kind)} attention there are {len(others)} beside the "
                    f"{len(ours)} changed. Leave the baseline out."
                )
            order = rng.permutation(len(others))
            moves |= {head: others[place] for head, place in zip(ours, order, strict=False)}
        moved = [change.moved_to(moves[change.place.whole_head]) for change in changes]
        draws.setdefault(str(Changes(*moved)), moved)
    return list(draws.values())


def _kind(head: Place) -> tuple[str, str]:
    return head.part, head.kind


def _score(pair: Pair, probe: Probe) -> tuple[float, ...]:
    return tuple(pair.log_probabilities(probe=probe).tolist())


def _output(pair: Pair, ids: Sequence[int], logs: Sequence[float]) -> Output:
    tokens = tuple(pair.tokenizer.target_tokens(ids))
    return Output(pair.tokenizer.decode_target(ids), tuple(ids), tokens, tuple(logs))
