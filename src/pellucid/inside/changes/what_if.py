"""Decode again under a change, and report the difference.

Two things judge a change: what the model now writes, and how likely it now finds the words that it
wrote before. A claim about a head needs a third: what the same change does to other heads.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from html import escape
from itertools import groupby

import torch

from pellucid.arguments import checked
from pellucid.attention.probe import Probe, tell_probe
from pellucid.config import DecodingConfig
from pellucid.decode.constraints.build_request import RequestBuilder, prefix_ids
from pellucid.decode.constraints.request import Constraints
from pellucid.decode.decoder import make_decoder
from pellucid.decode.probing.under_probe import TOKENS_AT_ONCE, Reading, UnderProbe
from pellucid.errors import InputError
from pellucid.inside.changes.change import Change, Changes
from pellucid.inside.changes.given_changes import GivenChanges, describe_probe
from pellucid.inside.changes.place import Place, all_heads
from pellucid.inside.changes.written_changes import is_of_word
from pellucid.inside.pair import PairData
from pellucid.machine.randomness import generator
from pellucid.shapes import Brief

UNCHANGED = Changes()
"""A probe without changes: it too runs the explicit stages, so that only the changes differ."""


@dataclass(frozen=True, repr=False)
class WhatIfOutput(Brief):
    """A translation, and how likely the model found it.

    Attributes:
        text: as a reader sees it.
        ids: its tokens.
        tokens: the same as pieces.
        log_probabilities: natural logs, one for each token.
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
    """A difference between two texts at one place.

    Attributes:
        place: the number of the first text's word at which it begins, from 0.
        before: the words of the first text.
        after: the words that the second text has instead.
    """

    place: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Baseline(Brief):
    """The same change of other heads, drawn at random, to judge whether a head is special.

    Attributes:
        changes: the changes of each draw, as text.
        effects: of each draw on the log-probability of the original output.
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


@dataclass(frozen=True, repr=False)
class WhatIf:
    """The effect of a change on one sentence.

    Attributes:
        changes: as text.
        original: the pair's target, scored by the unchanged model.
        under_change: the same tokens scored by the changed model, with teacher forcing.
        before: the unchanged model's output, with the same forced prefix. It differs from the
            original if that came from another search, or a person.
        after: the changed model's output by the same search, scored by the changed model.
        after_unchanged: the same output scored by the unchanged model.
        baseline: for a change of single heads, if asked for.
    """

    changes: tuple[str, ...]
    original: WhatIfOutput
    under_change: tuple[float, ...]
    before: WhatIfOutput
    after: WhatIfOutput
    after_unchanged: tuple[float, ...]
    baseline: Baseline | None = None

    def __repr__(self) -> str:
        """Name the changes, the translation after them, and their effect, in one line."""
        after = textwrap.shorten(self.after.text, 60, placeholder=" …")
        return f"<WhatIf {', '.join(self.changes) or 'nothing'}: {after!r}, {self._said_effect}>"

    @property
    def _said_effect(self) -> str:
        return f"effect {self.effect:+.2f} nats".replace("-", "\u2212")

    def _repr_html_(self) -> str:
        rows = (
            ("change", ", ".join(self.changes) or "none"),
            ("before", self.before.text),
            ("after", self.after.text),
            ("original", f"{self.original.text} ({self._said_effect})"),
        )
        cells = (f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        return f"<table>{''.join(cells)}</table>"

    @property
    def effect(self) -> float:
        """The change in the original's log-probability: below 0 if it becomes less likely."""
        return sum(self.under_change) - self.original.log_probability

    @property
    def token_effects(self) -> tuple[float, ...]:
        """The same, token by token."""
        pairs = zip(self.under_change, self.original.log_probabilities, strict=True)
        return tuple(changed - unchanged for changed, unchanged in pairs)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The differences between the outputs before and after, word by word."""
        before = self.before.text.split()
        after = self.after.text.split()
        codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        return tuple(
            Edit(first, tuple(before[first:last]), tuple(after[start:end]))
            for kind, first, last, start, end in codes
            if kind != "equal"
        )


@checked
@torch.inference_mode()
def what_if(
    pair: PairData,
    changes: GivenChanges = (),
    *,
    prefix: str = "",
    max_length: int | None = None,
    num_random: int = 0,
    seed: int = 1,
    search: DecodingConfig | None = None,
) -> WhatIf:
    """Decode again under changes, and score the original output under them.

    Args:
        pair: the source, and the original output.
        changes: a text such as ``cut decoder.1.cross.0``, a `Change`, a probe, or several, in
            order; they may be empty if a prefix is forced.
        prefix: the beginning of the translation.
        max_length: the most tokens to write; by default twice the original's, and 20 more.
        num_random: the number of draws of other heads to compare with. A draw replaces each
            changed head by another one of the same kind in the same part of the model; if there
            are not as many draws, it takes those that exist.
        seed: decides the draws.
        search: how both models search, such as ``translator.options(beam=5)``, in float32; of
            several hypotheses the best counts. Greedy unless given, with the decoder run again at
            every step.

    Raises:
        InputError: a place does not exist, the vocabulary cannot write the prefix, arguments
            contradict each other, or a random baseline is asked for although a change does not
            name a single head.
    """
    if pair.changes is not None:
        raise InputError("The pair of a what-if must be unchanged. Give all changes to what_if.")
    is_prefix_alone = prefix and isinstance(changes, Sequence) and not changes
    probe = UNCHANGED if is_prefix_alone else pair.read(changes) or UNCHANGED
    own = probe.changes if isinstance(probe, Changes) else ()
    if num_random and not own and probe is not UNCHANGED:
        raise InputError("A random baseline needs changes of heads as text, but is of a probe.")
    texts = [changes] if isinstance(changes, str) else changes
    if num_random and isinstance(texts, Sequence):
        # As they were written: the edges of a word are not what was asked for.
        for text in texts:
            if isinstance(text, str) and is_of_word(text):
                raise _not_of_one_head(text)
    draws = random_heads(pair, own, num_random, seed=seed) if num_random else []
    forced = prefix_ids(pair.tokenizer, prefix) if prefix else ()
    # The language of the translation stays that of the original output.
    forced = (*pair.tokenizer.leading_ids(pair.target_ids), *forced)
    # A changed model may never write the end; twice the length shows that too.
    limit = max_length or 2 * len(pair.target_ids) + 20
    decode = partial(decode_under, prefix_ids=forced, max_length=limit)
    if search is not None:
        longest = max_length or search.max_length
        decode = partial(search_under, prefix=prefix, search=search, max_length=longest)
    before = decode(pair, UNCHANGED)
    after = decode(pair, probe)
    original = _output(pair, pair.target_ids, _score(pair, UNCHANGED))
    effects = [sum(_score(pair, Changes(*draw))) - original.log_probability for draw in draws]
    # The new output scored without the change says how far the change had to push.
    rescored = PairData(pair.model, pair.tokenizer, pair.source_ids, after.ids)
    baseline = None
    if draws:
        baseline = Baseline(tuple(str(Changes(*draw)) for draw in draws), tuple(effects))
    return WhatIf(
        changes=tuple(map(str, own)) if isinstance(probe, Changes) else (describe_probe(probe),),
        original=original,
        under_change=_score(pair, probe),
        before=before,
        after=after,
        after_unchanged=_score(rescored, UNCHANGED),
        baseline=baseline,
    )


@torch.inference_mode()
def search_under(
    pair: PairData,
    probe: Probe,
    *,
    prefix: str = "",
    search: DecodingConfig,
    max_length: int | None = None,
) -> WhatIfOutput:
    """Search for the translation of the pair's source under a probe, with any search.

    Args:
        pair: holds the source; its target is not used.
        probe: changes the model on the way.
        prefix: the beginning of the translation.
        search: how to search; in float32 whatever it says.
        max_length: the most tokens to write, in the place of that of the search.

    Returns:
        The best hypothesis; a token of the language, which is given, has the log-probability 0.

    Raises:
        InputError: nothing obeys the rules of the search, or logits were not finite.
    """
    tokenizer = pair.tokenizer
    under = UnderProbe(pair.model, tokenizer, probe)
    decoder = make_decoder([pair.model], tokenizer).under(under)
    search = search.model_copy(update={"precision": "float32", "max_length": max_length})
    text = tokenizer.masked(pair.source_text) or tokenizer.decode_source(pair.source_ids)
    builder = RequestBuilder(tokenizer, [pair.model.config])
    request = builder.build(text, list(pair.source_ids), Constraints(prefix=prefix), search)
    (found,) = decoder.decode([request], search, batch_tokens=TOKENS_AT_ONCE)
    if not found or found[0].has_overflowed:
        raise InputError(
            "This search finds no translation: nothing obeys its rules, or logits are not finite. "
            "Ask for less, or change less."
        )
    return _output(pair, found[0].ids, found[0].token_log_probabilities)


@torch.inference_mode()
def decode_under(
    pair: PairData,
    probe: Probe | None,
    *,
    prefix_ids: Sequence[int] = (),
    max_length: int,
    never: Sequence[int] = (),
) -> WhatIfOutput:
    """Decode the pair's source greedily, with a probe at every step.

    This is the slow path: each step runs the whole decoder again without a cache, so that a change
    reaches every row as it would in one pass.

    Args:
        pair: holds the source; its target is not used.
        probe: sees every step, and may change it.
        prefix_ids: the beginning of the translation.
        max_length: the most tokens to write, the prefix included.
        never: further tokens that are not written.
    """
    special = pair.tokenizer.config
    # Special tokens are never written, except the one that ends a sentence.
    silent = {special.pad_id, special.bos_id, special.target_start_id} - {special.eos_id, None}
    silenced = pair.to_tensor(sorted({*silent, *never}))
    limit = min(max_length, pair.model.config.max_target_length)
    about = pair.tokenizer, pair.source_ids, pair.source_text
    tell_probe(probe, Reading(*about))
    # The encoder runs once: the changes to it do not depend on the step.
    memory_1SD = pair.model.encode(pair.to_tensor([pair.source_ids]), probe=probe)
    ids: list[int] = []
    logs: list[float] = []
    while len(ids) < limit and (not ids or ids[-1] != special.eos_id):
        read_ids = (special.target_start_id, *ids)
        tell_probe(probe, Reading(*about, read_ids))
        read_1T = pair.to_tensor([read_ids])
        # Without a cache: a change may reach the rows before, too.
        states_1TD = pair.model.decode(read_1T, memory_1SD, probe=probe)
        logs_V = pair.model.logits(states_1TD, probe=probe)[0, -1].log_softmax(dim=-1)
        if len(ids) < len(prefix_ids):
            # A forced token keeps the log-probability that the model gives it.
            chosen = prefix_ids[len(ids)]
        else:
            chosen = int(logs_V.index_fill(0, silenced, -torch.inf).argmax())
        ids.append(chosen)
        logs.append(float(logs_V[chosen]))
    return _output(pair, ids, logs)


def random_heads(
    pair: PairData, changes: Sequence[Change], count: int, *, seed: int = 1
) -> list[list[Change]]:
    """Draw the same changes of other heads.

    Args:
        pair: holds the model.
        changes: each of one head, or of edges of one head.
        count: the number of draws; fewer if there are not as many different ones.
        seed: decides the draws, together with the changes.

    Returns:
        Different draws. Each replaces every changed head by another of the same kind in the same
        part (encoder, decoder's self-attention, or cross-attention), no two by the same.

    Raises:
        InputError: a change names several heads at once, or no other heads are left.
    """
    for change in changes:
        if not change.place.is_one_head:
            raise _not_of_one_head(str(change))
    # Several edges of one head move together.
    heads = {change.place.whole_head for change in changes}
    changed = sorted(heads, key=lambda head: (_kind(head), str(head)))
    # Named after the changes, so that two questions in one program draw independently.
    rng = generator(seed, "random heads", *map(str, changes))
    groups: list[tuple[list[Place], list[Place]]] = []  # the changed heads of a kind, the others
    for kind, group in groupby(changed, key=_kind):
        ours = list(group)
        others = [
            head
            for head in all_heads(pair.model.config)
            if _kind(head) == kind and head not in changed
        ]
        if len(others) < len(ours):
            raise InputError(
                f"A random baseline must have {len(ours)} other heads of {'.'.join(kind)} "
                f"attention, but has {len(others)}. Leave the baseline out."
            )
        groups.append((ours, others))
    # As many different draws as exist: the ordered choices of other heads, for each kind.
    count = min(count, math.prod(math.perm(len(others), len(ours)) for ours, others in groups))
    draws: dict[str, list[Change]] = {}
    for _ in range(20 * count):  # Draws may repeat, most often if there are few heads.
        if len(draws) == count:
            break
        moves: dict[Place, Place] = {}
        for ours, others in groups:
            order = rng.permutation(len(others))
            moves |= {head: others[place] for head, place in zip(ours, order, strict=False)}
        moved = [change.moved_to(moves[change.place.whole_head]) for change in changes]
        # By text, since equal draws are one.
        draws.setdefault(str(Changes(*moved)), moved)
    return list(draws.values())


def _not_of_one_head(change: str) -> InputError:
    return InputError(
        f"A change with a random baseline must be of one head, but is {change!r}. Name one head, "
        "or leave the baseline out."
    )


def _kind(head: Place) -> tuple[str, str]:
    return str(head.part), str(head.kind)


def _score(pair: PairData, probe: Probe) -> tuple[float, ...]:
    return tuple(pair.log_probabilities(probe=probe).tolist())


def _output(pair: PairData, ids: Sequence[int], logs: Sequence[float]) -> WhatIfOutput:
    tokens = tuple(pair.tokenizer.target_tokens(ids))
    return WhatIfOutput(pair.tokenizer.decode_target(ids), tuple(ids), tokens, tuple(logs))
