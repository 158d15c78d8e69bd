"""More examples: what a model makes of *it* and *tasted* as it meets them with *pizza*."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Literal

import torch

from pellucid.inside.pair import Keeper
from pellucid.lessons.why.intervals import interval
from pellucid.lessons.why.long.sums import series_of, write
from pellucid.lessons.why.result import (
    SLIDES,
    Cell,
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
from pellucid.lessons.why.tiny.learn import Tiny, make_tiny, train_tiny, translate_tiny
from pellucid.lessons.why.tiny.pizza import TASTE, draw_others, draw_tests, draw_ties
from pellucid.lessons.why.tiny.words import START, UNKNOWN, Pair

COUNTS = (0, 10, 100, 1000)
MORE_COUNTS = (0, 10, 30, 100, 300, 1000, 10_000)
LEARNED = 0.9
RISES, ACTS = 0.1, 1.0

SCORE_SAYS = Statement(
    SLIDES,
    "",
    "with a lot of examples the similarity score between pizza, it and taste will be more",
)
CORRECT_SAYS = Statement(
    SLIDES, "", "transformers have attentions to correctly associate the word it to pizza"
)


@dataclass(frozen=True)
class Tied:
    """A model that met some sentences that tie *it* and *tasted* to *pizza*.

    Attributes:
        count: the number of those sentences in its training text.
        it_score: the scaled score of *it* for *pizza* in the encoder, less the mean score of its
            row, averaged over heads, layers and test sentences.
        tasted_score: the same for *tasted*.
        it_weight: the weight of *it* on *pizza*, averaged in the same way.
        tasted_weight: the same for *tasted*.
        occlusion: the fall of the log-odds of *elle* to *il* if *pizza* is hidden, in nats.
        accuracy: the share of test sentences about pizza whose pronoun is right.
        control: the same for sentences about the other noun, with the same beginnings.
    """

    count: int
    it_score: float
    tasted_score: float
    it_weight: float
    tasted_weight: float
    occlusion: float
    accuracy: float
    control: float


Runs = Sequence[Sequence[Tied]]
"""For each seed the models by their number of sentences, from none to the most."""


def measure(setting: Setting) -> Measurement:
    """Train models that differ only in how many sentences tie the words, and look at each."""
    counts = setting.choose(COUNTS, (0, 10), MORE_COUNTS)
    num_others, steps = setting.choose((3000, 800), (60, 4))
    runs = [_train_all(counts, num_others, steps, seed, setting) for seed in setting.seeds]
    found = [_average([run[place] for run in runs]) for place in range(len(counts))]
    first, last = found[0], found[-1]
    example, tie = draw_others(num_others, seed=setting.seed)[0], draw_ties(1, seed=setting.seed)[0]
    return Measurement(
        claim="examples",
        question="Do more examples tie it and tasted to pizza?",
        number=f"From {first.count} to {last.count:,} sentences the share of right pronouns "
        f"for pizza goes from {first.accuracy:.0%} to {last.accuracy:.0%}, the weight of it "
        f"on pizza from {first.it_weight:.2f} to {last.it_weight:.2f}, its score from "
        f"{first.it_score:+.2f} to {last.it_score:+.2f}.".replace("-", "−"),
        method=f"Models of two encoder layers with two heads learn {num_others:,} sentences "
        f"in {steps} updates, such as “{example[0]}”; pizza is only in sentences without a "
        f"pronoun. To these come 0 to {max(counts):,} such as “{tie[0]}”. {len(_tests(setting))} "
        "new sentences put pizza next to things that no training text has next to it; "
        "the last words make half of them about pizza. Scores are those of the encoder's "
        "self-attention, divided by √d_k, less the mean of their row, averaged over layers, "
        "heads and the sentences about pizza. Occlusion puts <unk> in pizza's place and "
        "measures the fall of log p(elle) − log p(il).",
        findings=(
            Finding(SCORE_SAYS, judge_score(runs)),
            Finding(CORRECT_SAYS, judge_correct(found)),
        ),
        tables=(_table(runs),),
        plot=_plot(runs),
        notes=(
            "All models of a seed begin with the same weights and make the same number of "
            "updates. There are 216 sentences that tie the words: more of them are repetitions.",
            *(
                ("One training is one draw: another --seed shows how much the numbers move.",)
                if len(runs) == 1
                else ()
            ),
        ),
        to_try=(
            'pellucid look demo "The pizza came out of the oven and it tasted good."',
            "pellucid attend pizza",
        ),
        seed=setting.seed,
        size=setting.size,
    )


def _tests(setting: Setting) -> list[Pair]:
    return draw_tests()[:: setting.choose(1, 13)]


def _train_all(
    counts: Sequence[int], num_others: int, steps: int, seed: int, setting: Setting
) -> list[Tied]:
    """Train one model for each number of sentences, all with the same first weights."""
    others, tests = draw_others(num_others, seed=seed), _tests(setting)
    ties = draw_ties(max(counts), seed=seed)

    def train(count: int) -> dict[str, float]:
        # The words are the same for all, so that only the sentences differ.
        tiny = make_tiny(
            [*others, *ties, *tests], seed=seed, num_encoder_layers=2, num_heads=2,
            d_model=32, d_ff=64,
        )  # fmt: skip
        text = [*others, *ties[:count]]
        tiny = train_tiny(tiny, text, steps=steps, seed=seed, rate=4e-3, rows=32)
        return asdict(_look(tiny, tests, count))

    return [
        Tied(**setting.cell(
            f"training with {count} sentences about pizza, {steps} updates, seed {seed}",
            partial(train, count),
        ))
        for count in counts
    ]  # fmt: skip


def _average(tied: Sequence[Tied]) -> Tied:
    """Average the numbers of the seeds."""
    numbers = {
        field.name: interval([getattr(one, field.name) for one in tied]).mean
        for field in fields(Tied)
    }
    return Tied(**numbers | {"count": tied[0].count})  # type: ignore[arg-type]


def judge_score(runs: Runs) -> Verdict:
    """Judge by whether the scores rise from no examples to the most.

    Args:
        runs: for each seed the models from no example to the most.
    """
    last = len(runs[0]) - 1
    rise = {word: _changes(runs, f"{word}_score", 0, last) for word in ("it", "tasted")}
    rises = [word for word, gains in rise.items() if fmean(gains) >= RISES and min(gains) > 0]
    effects = _changes(runs, "occlusion", 0, last)
    rule = (
        f"holds if the scores of it and of tasted are at least {RISES} higher with the most "
        f"examples than with none, and none falls by as much between; if neither "
        f"is, only as an effect if occlusion rises by {ACTS} "
        "nat or more; fails otherwise; all seeds must agree in the direction of a change"
    )
    numbers = (
        f"change of the score of it {_signed(rise['it'])}, of tasted {_signed(rise['tasted'])}, "
        f"of occlusion {_signed(effects)}"
    )
    falls = any(
        fmean(steps) < -RISES and max(steps) < 0
        for fewer, more in pairwise(range(last + 1))
        for steps in (_changes(runs, f"{word}_score", fewer, more) for word in ("it", "tasted"))
    )
    if len(rises) == 2 and falls:
        condition = "none is compared with the most: between, the scores rise and fall"
        return Verdict("holds only if", condition, rule, numbers)
    if len(rises) == 2:
        return Verdict("holds", "", rule, numbers)
    if rises:
        return Verdict("holds only if", f"it is about the score of {rises[0]}", rule, numbers)
    if fmean(effects) >= ACTS and min(effects) > 0:
        condition = "the effect on the pronoun is meant: the scores do not rise"
        return Verdict("holds only if", condition, rule, numbers)
    return Verdict("fails", "", rule, numbers)


def _changes(runs: Runs, column: str, before: int, after: int) -> list[float]:
    """Compute by how much a number rises from one count to another, seed by seed."""
    return [getattr(run[after], column) - getattr(run[before], column) for run in runs]


def _signed(changes: Sequence[float]) -> str:
    found = interval(changes)
    half = found.high - found.mean
    return f"{found.mean:+.2f}{f' ± {half:.2f}' if half else ''}".replace("-", "−")


def judge_correct(found: Sequence[Tied]) -> Verdict:
    """Judge by the share of right pronouns, and by whether pizza decides them."""
    rule = (
        f"correct means that {LEARNED:.0%} of the pronouns are right, for pizza and for the other "
        "noun; holds if that is so without any example, fails if never"
    )
    numbers = ", ".join(
        f"{one.accuracy:.0%} and {one.control:.0%} with {one.count:,}" for one in found
    )
    enough = [one.count for one in found if min(one.accuracy, one.control) >= LEARNED]
    if not enough:
        return Verdict("fails", "", rule, numbers)
    if enough[0] == 0:
        return Verdict("holds", "", rule, numbers)
    condition = f"training had examples: {enough[0]:,} were enough"
    later = (one.count for one in found if one.count > enough[0])
    too_few = [f"{count:,}" for count in later if count not in enough]
    if too_few:
        condition += f", but {' and '.join(too_few)} were not"
    return Verdict("holds only if", condition, rule, numbers)


@torch.inference_mode()
def _look(tiny: Tiny, tests: Sequence[Pair], count: int) -> Tied:
    """Average what the encoder makes of the test sentences."""
    names = [f"encoder.{layer}.self" for layer in range(tiny.model.config.num_encoder_layers)]
    sums = torch.zeros(4)
    occlusion = 0.0
    tied = [(source, target) for source, target in tests if source.endswith(TASTE)]
    for source, target in tied:
        words = source.split()
        ids = torch.tensor([tiny.source.encode(source)])
        keeper = Keeper(("scaled", "weights"), names)
        memory_1SD = tiny.model.encode(ids, probe=keeper)
        scaled_XHSS = torch.cat([keeper.found[f"{name}.scaled"] for name in names])
        weights_XHSS = torch.cat([keeper.found[f"{name}.weights"] for name in names])
        above_XHSS = scaled_XHSS - scaled_XHSS.mean(dim=-1, keepdim=True)
        pizza = words.index("pizza")
        for place, row in enumerate((words.index("it"), words.index("tasted"))):
            sums[place] += above_XHSS[..., row, pizza].mean() / len(tied)
            sums[2 + place] += weights_XHSS[..., row, pizza].mean() / len(tied)
        hidden = ids.clone()
        hidden[0, pizza] = UNKNOWN
        before = _odds(tiny, memory_1SD, target)
        occlusion += (before - _odds(tiny, tiny.model.encode(hidden), target)) / len(tied)
    written = translate_tiny(tiny, [source for source, _ in tests])
    is_right = [
        _pronoun(text) == _pronoun(target) for text, (_, target) in zip(written, tests, strict=True)
    ]
    is_tied = [source.endswith(TASTE) for source, _ in tests]
    right = sum(a and b for a, b in zip(is_right, is_tied, strict=True))
    num_others = max(1, len(tests) - len(tied))
    it_score, tasted_score, it_weight, tasted_weight = sums.tolist()
    return Tied(
        count, it_score, tasted_score, it_weight, tasted_weight, occlusion,
        accuracy=right / len(tied), control=(sum(is_right) - right) / num_others,
    )  # fmt: skip


def _pronoun(text: str) -> str:
    """Find the word after *et*."""
    return text.partition(" et ")[2].split(" ")[0]


def _odds(tiny: Tiny, memory_1SD: torch.Tensor, target: str) -> float:
    """Compute log p(elle) − log p(il) where the translation has its pronoun."""
    ids = tiny.target.encode(target)
    row = target.split().index("elle")
    read = torch.tensor([[START, *ids[:-1]]])
    logits_V = tiny.model.logits(tiny.model.decode(read, memory_1SD))[0, row]
    elle, il = (tiny.target.words.index(word) for word in ("elle", "il"))
    return float(logits_V[elle] - logits_V[il])


def _table(runs: Runs) -> Table:
    columns = (
        ("it_score", 1), ("tasted_score", 1), ("it_weight", 1), ("tasted_weight", 1),
        ("occlusion", 1), ("accuracy", 100), ("control", 100),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            runs[0][place].count,
            *(
                write([getattr(run[place], column) for run in runs], scale=scale).replace("-", "−")
                for column, scale in columns
            ),
        )
        for place in range(len(runs[0]))
    ]
    return Table(
        "Score and weight on pizza, by the number of sentences that tie the words",
        ("sentences", "score: it", "tasted", "weight: it", "tasted", "occlusion", "right, %",
         "other, %"),
        (",d", "", "", "", "", "", "", ""),
        tuple(rows),
    )  # fmt: skip


def _plot(runs: Runs) -> Plot:
    places = [float(place) for place in range(len(runs[0]))]
    names = tuple(f"{one.count:,}" for one in runs[0])

    def line(name: str, column: str, role: Literal["accent", "plain"], scale: float = 1) -> Series:
        values = [[getattr(run[place], column) for run in runs] for place in range(len(places))]
        return series_of(name, places, values, role, scale=scale)

    def panel(title: str, label: str, *lines: Series) -> Panel:
        ends = (0.0, 105.0) if label == "%" else None
        return Panel(
            title, "sentences that tie the words", label, lines, names=names, y_range=ends
        )  # fmt: skip

    return Plot(
        (
            panel("Score for pizza", "above the mean of the row",
                  line("it", "it_score", "accent"), line("tasted", "tasted_score", "plain")),
            panel("Weight on pizza", "share of the row",
                  line("it", "it_weight", "accent"), line("tasted", "tasted_weight", "plain")),
            panel("Pronouns that are right", "%", line("about pizza", "accuracy", "accent", 100),
                  line("about the other noun", "control", "plain", 100)),
        )
    )  # fmt: skip
