"""Heads: what each one looks at, whether no other does the same, and whether it is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.corpora import Example
from pellucid.inside.pair import Keeper, Pair
from pellucid.lessons.why.packaged import load_packaged, pairs_of, write_examples_of
from pellucid.lessons.why.result import (
    NOTES,
    Finding,
    Measurement,
    Panel,
    Plot,
    Series,
    Statement,
    Table,
    Verdict,
)
from pellucid.lessons.why.setting import Setting
from pellucid.text.token_words import words_of_tokens

CLEAR = 1.5
"""A head has a feature if it gives it this many times the weight that chance would."""

SAYS = Statement(
    NOTES, "section 3.4", "each attention head aims to learn a unique linguistic feature"
)

Places = list[tuple[int, int]]
"""Rows and the columns that they should attend to."""

FEATURES = ("itself", "previous", "next", "end", "antecedent", "article")
_PLACES_ONLY = ("itself", "previous", "next", "end")


@dataclass(frozen=True)
class Head:
    """A head of the encoder's self-attention.

    Attributes:
        place: its layer and number.
        lifts: for each of `FEATURES`, the weight on it divided by what even weights would give.
        loss: the rise of the loss per token if the head's context is set to 0, in nats.
        nearest: the least distance of its weights from those of another head, from 0 for the same
            to 1 for weights that share no word.
    """

    place: str
    lifts: tuple[float, ...]
    loss: float
    nearest: float

    @property
    def feature(self) -> str:
        """The feature with the largest lift; a dash if none is clear."""
        best = max(range(len(FEATURES)), key=lambda index: self.lifts[index])
        return FEATURES[best] if self.lifts[best] >= CLEAR else "–"


@torch.inference_mode()
def measure(setting: Setting) -> Measurement:
    """Measure features, distances and the effect of removal for each head of the encoder."""
    bundle = load_packaged()
    examples = write_examples_of(setting.choose(300, 17), seed=setting.seed)
    pairs = pairs_of(bundle, examples)
    config = bundle.model.config
    sites = [f"encoder.{layer}.self" for layer in range(config.num_encoder_layers)]
    num_heads = len(sites) * config.num_heads
    sums, evens = torch.zeros(num_heads, len(FEATURES)), torch.zeros(len(FEATURES))
    distances_HH = torch.zeros(num_heads, num_heads)
    for pair, example in zip(pairs, examples, strict=True):
        weights_HLM = _weights(pair, sites)
        for index, places in enumerate(find_features(pair, example)):
            for row, column in places:
                sums[:, index] += weights_HLM[:, row, column]
                evens[index] += 1 / weights_HLM.shape[-1]
        gaps = (weights_HLM[:, None] - weights_HLM[None]).abs().sum(dim=-1).mean(dim=-1)
        distances_HH += gaps / 2 / len(pairs)
    distances_HH.fill_diagonal_(1.0)
    some = pairs[: setting.choose(80, 5)]
    before = _loss(some)
    heads = []
    for index in range(num_heads):
        layer, head = divmod(index, config.num_heads)
        setting.say(f"without layer {layer} head {head}")
        lifts = (sums[index] / evens.clamp_min(1e-9)).tolist()
        rise = _loss(some, _Remove(sites[layer], head)) - before
        nearest = float(distances_HH[index].min())
        heads.append(Head(f"layer {layer} head {head}", tuple(lifts), rise, nearest))
    clear = [one for one in heads if one.feature != "–"]
    return Measurement(
        claim="heads",
        question="Does each head learn its own feature?",
        number=f"{len({one.feature for one in clear})} different features are the strongest of "
        f"{len(clear)} of {len(heads)} heads; the two most similar heads differ in "
        f"{min(one.nearest for one in heads):.0%} of their weight.",
        method=f"Encoder self-attention of the packaged model in {len(examples)} new sentences. A "
        "lift is the weight that a head gives to a feature, divided by what even weights would "
        "give; 1 is chance. Features: the token itself, the previous, the next, </s>; the "
        "antecedent of a pronoun; the article before a word. The "
        f"loss is that of {len(some)} true translations when the head's context is set to 0.",
        findings=(Finding(SAYS, judge(heads)),),
        tables=(_table(heads),),
        plot=_plot(heads),
        notes=(
            "Nothing in training asks heads to differ. They begin with other random weights, and "
            "what one has learned lowers the loss less for the next.",
        ),
        to_try=('pellucid look demo "The pizza is good." --heads', "pellucid why diagonal"),
        seed=setting.seed,
        size=setting.size,
    )


def judge(heads: Sequence[Head]) -> Verdict:
    """Judge by the features of the heads: clear ones, different ones, linguistic ones."""
    named = [one.feature for one in heads if one.feature != "–"]
    linguistic = [name for name in named if name not in _PLACES_ONLY]
    unique = len(set(named)) == len(heads)
    rule = (
        f"a feature is clear from {CLEAR} times chance; holds if every head has a clear one that "
        "no other head has and that is more than a place in the sentence; fails if no head has a "
        "clear one"
    )
    numbers = (
        f"{len(named)} of {len(heads)} heads have a clear feature, {len(set(named))} different; "
        f"{len(linguistic)} are more than a place; removing a head costs "
        f"{min(one.loss for one in heads):.3f} to {max(one.loss for one in heads):.3f} nats"
    )
    if not named:
        return Verdict("fails", "", rule, numbers)
    if unique and len(linguistic) == len(heads):
        return Verdict("holds", "", rule, numbers)
    conditions = []
    if not unique:
        conditions.append("heads may share a feature")
    if len(linguistic) < len(heads):
        conditions.append("a place in the sentence counts as a linguistic feature")
    return Verdict("holds only if", " and ".join(conditions), rule, numbers)


def find_features(pair: Pair, example: Example) -> list[Places]:
    """Find, for each of `FEATURES`, the rows that have it and the columns where it is.

    Args:
        pair: the sentence, tokenized.
        example: the same sentence with the antecedents of its pronouns.
    """
    length = len(pair.source_ids)
    words = _words_of_source(pair, example)
    pronouns: Places = [
        (row, column)
        for pronoun in example.pronouns
        for row in words[pronoun.source]
        for column in words[pronoun.source_antecedent]
    ]
    written = [word.lower() for word in example.source.split(" ")]
    articles: Places = [
        (row, column)
        for place, word in enumerate(written[:-1])
        if word in ("the", "a", "an", "some")
        for row in words[place + 1]
        for column in words[place]
    ]
    return [
        [(row, row) for row in range(length)],
        [(row, row - 1) for row in range(1, length)],
        [(row, row + 1) for row in range(length - 1)],
        [(row, length - 1) for row in range(length - 1)],
        pronouns,
        articles,
    ]


def _words_of_source(pair: Pair, example: Example) -> list[list[int]]:
    """List the source tokens of each word between spaces."""
    owners = words_of_tokens(pair.tokenizer, "source", example.source, pair.source_ids)
    words: list[list[int]] = [[] for _ in example.source.split(" ")]
    for token, owned in enumerate(owners):
        for word in owned:
            words[word].append(token)
    return words


def _weights(pair: Pair, sites: Sequence[str]) -> Tensor:
    seen = pair.see(("weights",), sites=sites)
    return torch.cat([seen[f"{site}.weights"] for site in sites])


class _Remove:
    """A probe that sets one head's context to 0."""

    def __init__(self, site: str, head: int) -> None:
        self._site, self._head = site, head
        self.sites = (site,)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Silence the head."""
        if (site, stage) != (self._site, "context"):
            return None
        changed = tensor.clone()
        changed[:, self._head] = 0.0
        return changed


def _loss(pairs: Sequence[Pair], probe: _Remove | Keeper | None = None) -> float:
    logs = [pair.log_probabilities(probe=probe) for pair in pairs]
    return -float(torch.cat(logs).mean())


def _table(heads: Sequence[Head]) -> Table:
    short = ("itself", "prev.", "next", "end", "anteced.", "article")
    return Table(
        "Lifts of the features, the strongest, distance of the nearest head, and loss without it",
        ("", *short, "strongest", "nearest", "loss"),
        ("", ".1f", ".1f", ".1f", ".1f", ".1f", ".1f", "", ".2f", ".3f"),
        tuple((one.place.replace("layer ", "").replace(" head ", "."), *one.lifts, one.feature,
               one.nearest, one.loss) for one in heads),
    )  # fmt: skip


def _plot(heads: Sequence[Head]) -> Plot:
    names = tuple(one.place.replace("layer ", "").replace(" head ", ".") for one in heads)
    features = tuple(f"{name}\n{one.feature}" for name, one in zip(names, heads, strict=True))
    places = tuple(float(place) for place in range(len(heads)))

    def panel(title: str, label: str, take: Callable[[Head], float], faint: float | None) -> Panel:
        series = [Series("", places, tuple(take(one) for one in heads), "accent")]
        if faint is not None:
            series = [
                Series("strongest feature", places, series[0].y, "accent"),
                Series("chance", places, tuple(faint for _ in heads), "faint"),
            ]
        shown = names if faint is None else features
        return Panel(title, "encoder layer.head", label, tuple(series), kind="bars", names=shown)

    return Plot(
        (
            panel("Lift of the strongest feature", "times the weight by chance",
                  lambda one: max(one.lifts), 1.0),
            panel("Loss without the head", "rise in nats a token", lambda one: one.loss, None),
        )
    )  # fmt: skip
