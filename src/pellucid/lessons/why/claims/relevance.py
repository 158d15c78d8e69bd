"""Relevance, not proximity: the weight on an antecedent as words are put before its pronoun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal

import torch

from pellucid.inside.pair import Keeper
from pellucid.lessons.why.apart import Apart, draw_apart_packaged, draw_apart_tiny, look_apart
from pellucid.lessons.why.intervals import interval
from pellucid.lessons.why.long.sums import series_of, write
from pellucid.lessons.why.packaged import load_packaged, write_examples_of
from pellucid.lessons.why.result import (
    NOTES,
    OBJECTIVES,
    Cell,
    Finding,
    Measurement,
    Panel,
    Plot,
    Statement,
    Table,
    Verdict,
)
from pellucid.lessons.why.setting import Setting
from pellucid.lessons.why.shares import Explained, explain
from pellucid.lessons.why.tiny.between import draw_hesitant
from pellucid.lessons.why.tiny.learn import make_tiny, train_tiny

WORDS = (0, 1, 3, 10, 30, 100)
RIGHT = 0.9

REACH_SAYS = Statement(OBJECTIVES, "", "relations are found regardless of how far apart words are")
SHARES_SAY = Statement(
    NOTES, "introduction", "attention weighs all tokens by relevance, not proximity"
)

Curve = list[Apart]
"""What a model makes of more and more words between."""
Curves = dict[str, list[Curve]]
"""The curves of each model, one for each seed."""


def measure(setting: Setting) -> Measurement:
    """Put words between an antecedent and its pronoun, and explain weights by distance."""
    count = setting.choose(300, 12, 1000)
    shares = [
        setting.cell(
            f"shares that distance explains, packaged model, {count} sentences, seed {seed}",
            partial(_explain_packaged, count, seed),
        )
        for seed in setting.seeds
    ]
    curves = _curves(setting)
    far = curves[_LONG][0][-1]
    by_distance, by_words = (
        interval([sum(head[column] for head in run) / len(run) for run in shares]).mean
        for column in ("distance", "words")
    )
    return Measurement(
        claim="relevance",
        question="Is it relevance that counts, not proximity?",
        number=f"With {far.words} words between, a tiny model that was trained with so many has "
        f"{interval([run[-1].right for run in curves[_LONG]]).mean:.0%} of the pronouns right. In "
        f"the packaged model the distance explains {by_distance:.0%} of the weights, the two "
        f"words {by_words:.0%}, averaged over the encoder's heads.",
        method="Tiny: sentences such as “the soup was next to the bag um well and it tasted good”, "
        "with 0 to 100 hesitations, which the translation leaves out. Packaged model: adjectives "
        "before the second noun of sentences of the built-in corpus, which never has so many; the "
        "true translation without them is given. The predicate decides between the nouns, half of "
        "the time for each. The weight is that on the antecedent "
        "in the attention that gives it most without words between, chosen on other sentences: "
        "the row of it or of the last word in the encoder, or of the pronoun in the decoder. "
        f"Shares: the part of the variance around even weights, in {count} sentences of which "
        "half teach and half test.",
        findings=(
            Finding(REACH_SAYS, judge_reach(curves)),
            Finding(SHARES_SAY, judge_shares(_averaged(shares))),
        ),
        tables=(*(_curve_table(name, runs) for name, runs in curves.items()), _share_table(shares)),
        plot=_plot(curves, shares),
        notes=(
            "Every pair of words is one step apart in attention. What distance changes is the "
            "number of other words, which share the weight, and positions that training lacked.",
            "A weight is not a cause: a model may be right with little weight on the antecedent, "
            "because another word has gathered what it needs.",
        ),
        to_try=('pellucid look demo "The pizza came out of the oven and it tasted good." --kind '
                'self', "pellucid why examples"),
        seed=setting.seed,
        size=setting.size,
    )  # fmt: skip


_LONG, _SHORT, _PACKAGED = "trained with 0 to 100", "trained with 0 to 10", "packaged model"


def judge_reach(curves: Curves) -> Verdict:
    """Judge by the distance up to which pronouns are right.

    The weight on the antecedent is shown only: a model may gather what it needs on other ways than
    one direct look.
    """
    rule = (
        f"reached: {RIGHT:.0%} of the pronouns right; holds if all models reach the largest "
        "distance, fails if none does"
    )
    reached, numbers = {}, []
    for name, runs in curves.items():
        means = [_mean([run[place] for run in runs]) for place in range(len(runs[0]))]
        good = 0
        for one in means:
            if one.right < RIGHT:
                break
            good += 1
        reached[name] = good == len(means)
        last = means[good - 1].words if good else None
        said = "no distance" if last is None else f"{last} words"
        numbers.append(
            f"{name}: {said}; at {means[-1].words} right {means[-1].right:.0%}, weight "
            f"{_times_even(means[0])} to {_times_even(means[-1])} times even"
        )
    said = "; ".join(numbers)
    if all(reached.values()):
        return Verdict("holds", "", rule, said)
    if not any(reached.values()):
        return Verdict("fails", "", rule, said)
    if reached.get(_LONG) and sum(reached.values()) == 1:
        return Verdict("holds only if", "training had words as far apart", rule, said)
    names = " or ".join(name for name, is_reached in reached.items() if is_reached)
    return Verdict("holds only if", f"it is about the model {names}", rule, said)


def _times_even(apart: Apart) -> str:
    return f"{apart.weight / apart.even:.1f}"


def judge_shares(heads: Sequence[Explained]) -> Verdict:
    """Judge by whether words or distance explain more of each head's weights."""
    rule = "holds if in every head the words explain more than the distance does, fails if in none"
    is_words = [head.words > head.distance for head in heads]
    most = max(head.distance for head in heads)
    numbers = (
        f"words explain more in {sum(is_words)} of {len(heads)} heads; distance explains "
        f"{min(head.distance for head in heads):.0%} to {most:.0%}"
    ).replace("-", "−")
    if all(is_words):
        return Verdict("holds", "", rule, numbers)
    if not any(is_words):
        return Verdict("fails", "", rule, numbers)
    condition = f"it is about {sum(is_words)} of {len(heads)} heads: the others go by distance"
    return Verdict("holds only if", condition, rule, numbers)


@torch.inference_mode()
def _explain_packaged(count: int, seed: int) -> list[dict[str, float]]:
    """Explain the weights of every head of the packaged encoder, layer by layer."""
    bundle = load_packaged()
    examples = write_examples_of(count, seed=seed)
    sources = [bundle.tokenizer.encode_source(example.source) for example in examples]
    sites = [f"encoder.{layer}.self" for layer in range(bundle.model.config.num_encoder_layers)]
    weights = []
    for ids in sources:
        keeper = Keeper(("weights",), sites)
        bundle.model.encode(torch.tensor([ids]), probe=keeper)
        weights.append(torch.cat([keeper.found[f"{site}.weights"][0] for site in sites]).numpy())
    return [asdict(one) for one in explain(weights, sources)]


def _curves(setting: Setting) -> Curves:
    words = setting.choose(WORDS, (0, 5))
    kinds = setting.choose((_LONG,), (_LONG,), (_LONG, _SHORT))
    steps, count = setting.choose((400, 40), (3, 4))
    found: Curves = {name: [] for name in (*kinds, _PACKAGED)}
    for seed in setting.seeds:
        for name in kinds:
            most = setting.choose(100 if name == _LONG else 10, 5)
            record = setting.cell(
                f"tiny model {name} words between, {steps} updates, seed {seed}",
                partial(_train, most, steps, count, words, seed),
            )
            found[name].append([Apart(**one) for one in record])
        record = setting.cell(
            f"packaged model, adjectives between, {count} sentences, seed {seed}",
            partial(_look_packaged, count, words, seed),
        )
        found[_PACKAGED].append([Apart(**one) for one in record])
    return found


def _train(
    most: int, steps: int, count: int, words: Sequence[int], seed: int
) -> list[dict[str, Any]]:
    text = [one[0] for one in draw_hesitant(10 * steps, most=most, seed=seed, part="train")]
    tiny = make_tiny(text, seed=seed, num_encoder_layers=2, num_heads=2, d_model=32, d_ff=64)
    tiny = train_tiny(tiny, text, steps=steps, seed=seed, rate=5e-3, rows=32)
    return [asdict(one) for one in look_apart(
        tiny.model, lambda n, part: draw_apart_tiny(tiny, count, n, seed=seed, part=part), words
    )]  # fmt: skip


def _look_packaged(count: int, words: Sequence[int], seed: int) -> list[dict[str, Any]]:
    bundle = load_packaged()
    return [asdict(one) for one in look_apart(
        bundle.model, lambda n, part: draw_apart_packaged(bundle, count, n, seed=seed, part=part),
        words,
    )]  # fmt: skip


def _mean(runs: Sequence[Apart]) -> Apart:
    def mean(column: str) -> float:
        return interval([getattr(run, column) for run in runs]).mean

    return Apart(runs[0].words, "", *map(mean, ("weight", "other", "even", "right")))


def _averaged(shares: Sequence[Sequence[dict[str, float]]]) -> list[Explained]:
    return [
        Explained(*(interval([run[place][column] for run in shares]).mean
                    for column in ("distance", "words", "both")))
        for place in range(len(shares[0]))
    ]  # fmt: skip


def _curve_table(name: str, runs: Sequence[Curve]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for place in range(len(runs[0])):
        here = [run[place] for run in runs]
        rows.append((
            here[0].words,
            *(write([getattr(one, column) for one in here]) for column in ("weight", "other")),
            write([one.weight / one.even for one in here]),
            write([100 * one.right for one in here]),
        ))  # fmt: skip
    where = ", ".join(dict.fromkeys(run[0].place for run in runs))
    return Table(
        f"{name}, by the words between: {where}",
        ("words", "antecedent", "other noun", "times even", "right, %"),
        ("d", "", "", "", ""),
        tuple(rows),
    )


def _share_table(shares: Sequence[Sequence[dict[str, float]]]) -> Table:
    heads = load_packaged().model.config.num_heads
    rows: list[tuple[Cell, ...]] = [
        (
            f"layer {place // heads} head {place % heads}",
            *(write([100 * run[place][column] for run in shares])
              for column in ("distance", "words", "both")),
        )
        for place in range(len(shares[0]))
    ]  # fmt: skip
    return Table(
        "Share of the weights that is explained in the packaged model, %",
        ("", "by distance", "by the words", "by both"),
        ("", "", "", ""),
        tuple(rows),
    )


def _plot(curves: Curves, shares: Sequence[Sequence[dict[str, float]]]) -> Plot:
    names = tuple(f"{one.words}" for one in curves[_LONG][0])
    count = range(len(names))
    places = [float(place) for place in count]
    roles: tuple[Literal["accent", "plain"], ...] = ("accent", "plain", "plain")

    def panel(title: str, label: str, column: str, scale: float) -> Panel:
        lines = [
            series_of(
                name, places, [[getattr(run[n], column) for run in runs] for n in count],
                role, scale=scale,
            )
            for (name, runs), role in zip(curves.items(), roles, strict=False)
        ]  # fmt: skip
        if column == "weight":  # Each seed has another attention: the table has the intervals.
            lines = [replace(line, low=(), high=()) for line in lines]
        ends = (0.0, 105.0) if label == "%" else (0.0, 1.0)
        return Panel(title, "words between", label, tuple(lines), names=names, y_range=ends)

    heads = load_packaged().model.config.num_heads
    where = [float(place) for place in range(len(shares[0]))]
    bars = tuple(
        series_of(name, where, [[run[n][column] for run in shares]
                                      for n in range(len(where))], role, scale=100)
        for name, column, role in (("by distance", "distance", roles[0]),
                                   ("by the two words", "words", roles[1]))
    )  # fmt: skip
    return Plot(
        (
            panel("Weight on the antecedent", "share of the row", "weight", 1),
            panel("Pronouns that are right", "%", "right", 100),
            Panel("Weights explained, packaged model", "encoder layer.head", "%", bars,
                  kind="bars", names=tuple(f"{n // heads}.{n % heads}" for n in range(len(where)))),
        )
    )  # fmt: skip
