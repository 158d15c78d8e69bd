"""More examples: what a model makes of *it* and *tasted* as it meets them with *pizza*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pellucid.inside.pair import Keeper
from pellucid.lessons.why.cells import (
    PERCENT,
    Cells,
    Column,
    decide,
    judge_seeds,
    measure_cells,
)
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import (
    START,
    UNKNOWN,
    Pair,
    Tiny,
    make_tiny,
    train_tiny,
    translate_tiny,
)
from pellucid.lessons.why.tiny.two_nouns import TASTE, draw_others, draw_tests, draw_ties

COUNTS = (0, 10, 100, 1000)
MORE_COUNTS = (0, 10, 30, 100, 300, 1000, 10_000)
LEARNED = 0.9
JUDGED = 1000
"""Sentences at which pronouns are judged."""
RISES = 0.1


def measure(setting: MeasurementSetting) -> Found:
    """Train models that differ only in how many sentences tie the words, and look at each."""
    counts = setting.choose(COUNTS, (0, 10), MORE_COUNTS)
    num_others, steps = setting.choose((3000, 800), (60, 4))
    tests = draw_tests()[:: setting.choose(1, 13)]
    most = max(counts)

    def train(count: int, seed: int) -> dict[str, float]:
        others = draw_others(num_others, seed=seed)
        ties = draw_ties(most, seed=seed)
        # The words are the same for all, so that only the sentences differ.
        tiny = make_tiny(
            [*others, *ties, *tests],
            seed=seed,
            num_encoder_layers=2,
            num_heads=2,
            d_model=32,
            d_ff=64,
        )
        text = [*others, *ties[:count]]
        tiny = train_tiny(tiny, text, steps=steps, seed=seed, rate=4e-3, rows=32)
        return _look(tiny, tests)

    cells = measure_cells(
        setting,
        f"training with {{count}} sentences about pizza, {steps} updates",
        train,
        count=counts,
    )
    score = {count: cells.mean("it_score", count=count) for count in counts}
    right = {count: cells.mean("accuracy", count=count) for count in counts}
    other = {count: cells.mean("control", count=count) for count in counts}
    risen = {word: _say_risen(cells, word) for word in ("it", "tasted")}
    first = min(counts)
    falls = ""
    if other[most] < other[first]:
        falls = " So some of the translators only learned to write “elle” more often."
    num_ties = len({tie[0] for tie in draw_ties(most, seed=setting.seed)})
    example = draw_others(num_others, seed=setting.seed)[0]
    tie = draw_ties(1, seed=setting.seed)[0]
    return Found(
        f"tiny translators learned {num_others:,} sentences in which “it” is never the pizza. They "
        f"also learned 0 to {most:,} such as “{tie[0]}”, in which “it” is the pizza, since only "
        "food tastes. The score of "
        "“it” for “pizza” is the product of the query of “it” and the key of “pizza”. Here the "
        "average of the scores of “it” for all words of the sentence is subtracted, so that 0 is "
        f"the score of an average word. With {most:,} sentences about pizza this score is higher "
        f"than with none in {risen['it']} trainings. On average it rises from "
        f"{_say_score(score[first])} to {_say_score(score[most])}. The score of “tasted” for "
        f"“pizza”, which the slides name too, is higher in {risen['tasted']} trainings. "
        "Did the translators understand “it”? In French it is “elle” for the pizza, and “il” for "
        "the other noun of these sentences. Without sentences about pizza, "
        f"{right[first]:.0%} of the pronouns that mean the pizza are right. With all of them "
        f"{right[most]:.0%} are right. Of the pronouns that mean the other noun, "
        f"{other[first]:.0%} are right without sentences about pizza. With all of them "
        f"{other[most]:.0%} are right.{falls} Only {num_ties} sentences about pizza differ, and "
        "the others repeat them",
        f"Models of two encoder layers with two heads learn {num_others:,} sentences "
        f"in {steps} updates, such as “{example[0]}”; pizza is only in sentences without a "
        f"pronoun. To these come 0 to {most:,} such as “{tie[0]}”. {len(tests)} "
        "new sentences put pizza next to things that no training text has next to it; "
        "the last words make half of them about pizza. Scores are those of the encoder's "
        "self-attention, divided by √d_k, less the mean of their row, averaged over layers, "
        "heads and the sentences about pizza. Occlusion puts <unk> in pizza's place and "
        "measures the fall of log p(elle) − log p(il).",
        {"scores": judge_seeds(judge_score, cells), "pizza": judge_seeds(judge_correct, cells)},
        (_table(cells),),
        _panels(cells),
    )


def _say_score(score: float) -> str:
    return f"{score:+.2f}".replace("-", "−")


def judge_score(cells: Cells) -> Verdict:
    """Judge by whether the scores are higher with the most examples than with none."""
    counts = cells.values("count")
    numbers = []
    rises = {}
    for word in ("it", "tasted"):
        course = [cells.mean(f"{word}_score", count=count) for count in counts]
        rises[word] = course[-1] - course[0] >= RISES
        numbers.append(f"{word} {', '.join(f'{score:+.2f}' for score in course)}")
    return decide(
        f"holds if the scores of it and of tasted are at least {RISES} higher with the most "
        "examples than with none, only for one of the words if the other's is not, fails if "
        "neither is; the text does not say that every example raises them",
        "; ".join(numbers).replace("-", "−")
        + f" with {', '.join(f'{count:,}' for count in counts)}",
        f"With {counts[-1]:,} sentences about pizza instead of {counts[0]}, the score of “it” for "
        "“pizza” "
        f"rises by at least {RISES} in {_say_risen(cells, 'it')} trainings. The score of “tasted” "
        f"does in {_say_risen(cells, 'tasted')}. To hold, both must do so.",
        fails=not any(rises.values()),
        unless={f"the word is “{word}”": rises[word] and not all(rises.values()) for word in rises},
    )


def _say_risen(cells: Cells, word: str) -> str:
    """Count the trainings in which the score is higher with the most examples than with none."""
    counts = cells.values("count")
    none = cells.all(f"{word}_score", count=counts[0])
    most = cells.all(f"{word}_score", count=counts[-1])
    risen = sum(more - fewer >= RISES for fewer, more in zip(none, most, strict=True))
    return f"{risen} of {len(none)}"


def judge_correct(cells: Cells) -> Verdict:
    """Judge by the share of right pronouns, and by whether pizza decides them."""
    right = {
        count: (cells.mean("accuracy", count=count), cells.mean("control", count=count))
        for count in cells.values("count")
    }
    # Chosen before measuring; smaller forms have no so large number.
    judged = JUDGED if JUDGED in right else max(right)
    return decide(
        f"correct means that {LEARNED:.0%} of the pronouns are right, for pizza and for the other "
        f"noun; holds if that is so without any example, only with examples if it is so with "
        f"{judged:,}, fails otherwise",
        ", ".join(
            f"{pizza:.0%} and {other:.0%} with {count:,}" for count, (pizza, other) in right.items()
        ),
        f"A translator is correct if {LEARNED:.0%} or more of the pronouns are right, both of "
        "those that mean the pizza and of those that mean the other noun. With "
        f"{judged:,} sentences about pizza, {_say_right(cells, judged)} translators are correct. "
        "That number of sentences was chosen before measuring. Without any of these sentences, "
        f"{_say_right(cells, min(right))} are correct. To hold, translators must be correct with "
        "and without such sentences.",
        fails=min(right[judged]) < LEARNED,
        unless={"training had such sentences": min(right[min(right)]) < LEARNED},
    )


def _say_right(cells: Cells, count: int) -> str:
    """Count the trainings in which pronouns are right, for pizza and for the other noun."""
    here = cells.where(count=count).rows
    right = sum(min(row["accuracy"], row["control"]) >= LEARNED for row in here)
    return f"{right} of {len(here)}"


@torch.inference_mode()
def _look(tiny: Tiny, tests: Sequence[Pair]) -> dict[str, float]:
    """Average what the encoder makes of the test sentences.

    Returns:
        The scaled scores of *it* and of *tasted* for *pizza*, less the mean score of their row,
        averaged over heads, layers and test sentences; their weights on *pizza*; the fall of the
        log-odds of *elle* to *il* if *pizza* is hidden (``occlusion``), in nats; and the shares of
        right pronouns in test sentences about pizza (``accuracy``) and in those about the other
        noun, with the same beginnings (``control``).
    """
    sites = [f"encoder.{layer}.self" for layer in range(tiny.model.config.num_encoder_layers)]
    sums = torch.zeros(4)
    occlusion = 0.0
    tied = [(source, target) for source, target in tests if source.endswith(TASTE)]
    for source, target in tied:
        words = source.split()
        ids = torch.tensor([tiny.source.encode(source)])
        keeper = Keeper(("scaled", "weights"), sites)
        memory_1SD = tiny.model.encode(ids, probe=keeper)
        scaled_XHSS = torch.cat([keeper.found[f"{site}.scaled"] for site in sites])
        weights_XHSS = torch.cat([keeper.found[f"{site}.weights"] for site in sites])
        # A softmax sees only differences within a row, so only these compare.
        above_XHSS = scaled_XHSS - scaled_XHSS.mean(dim=-1, keepdim=True)
        pizza = words.index("pizza")
        for place, row in enumerate((words.index("it"), words.index("tasted"))):
            sums[place] += above_XHSS[..., row, pizza].mean() / len(tied)
            sums[2 + place] += weights_XHSS[..., row, pizza].mean() / len(tied)
        hidden = ids.clone()
        # Hidden rather than left out, so that all other words keep their places.
        hidden[0, pizza] = UNKNOWN
        before = _odds(tiny, memory_1SD, target)
        occlusion += (before - _odds(tiny, tiny.model.encode(hidden), target)) / len(tied)
    written = translate_tiny(tiny, [source for source, _ in tests])
    is_right = [
        _pronoun(text) == _pronoun(target) for text, (_, target) in zip(written, tests, strict=True)
    ]
    is_tied = [source.endswith(TASTE) for source, _ in tests]
    right = sum(a and b for a, b in zip(is_right, is_tied, strict=True))
    # At toy size the list may be empty.
    num_others = max(1, len(tests) - len(tied))
    names = ("it_score", "tasted_score", "it_weight", "tasted_weight")
    return dict(zip(names, sums.tolist(), strict=True)) | {
        "occlusion": occlusion,
        "accuracy": right / len(tied),
        "control": (sum(is_right) - right) / num_others,
    }


def _pronoun(text: str) -> str:
    """Find the word after *et*."""
    return text.partition(" et ")[2].split(" ")[0]


def _odds(tiny: Tiny, memory_1SD: torch.Tensor, target: str) -> float:
    """Compute log p(elle) − log p(il) where the translation has its pronoun."""
    ids = tiny.target.encode(target)
    # The step that writes the pronoun reads everything before it.
    row = target.split().index("elle")
    read = torch.tensor([[START, *ids[:-1]]])
    logits_V = tiny.model.logits(tiny.model.decode(read, memory_1SD))[0, row]
    elle, il = (tiny.target.words.index(word) for word in ("elle", "il"))
    return float(logits_V[elle] - logits_V[il])


def _table(cells: Cells) -> ResultTable:
    columns = (
        Column("score: it", "it_score"),
        Column("tasted", "tasted_score"),
        Column("weight: it", "it_weight"),
        Column("tasted", "tasted_weight"),
        Column("occlusion", "occlusion"),
        Column("right, %", "accuracy", scale=100),
        Column("other, %", "control", scale=100),
    )
    title = "Score and weight on pizza, by the number of sentences that tie the words"
    return cells.table(title, "count", columns, head="sentences", form=",d")


def _panels(cells: Cells) -> tuple[Panel, ...]:
    # Places count the numbers of sentences, which stand too far apart for an axis.
    names = tuple(f"{count:,}" for count in cells.values("count"))

    def panel(title: str, label: str, lines: Mapping[str, str], **rest: Any) -> Panel:
        labels = ("sentences that tie the words", label)
        return cells.panel(title, labels, lines, "count", names=names, **rest)

    return (
        panel(
            "Score for pizza",
            "above the mean of the row",
            {"it": "it_score", "tasted": "tasted_score"},
        ),
        panel(
            "Weight on pizza",
            "share of the row",
            {"it": "it_weight", "tasted": "tasted_weight"},
        ),
        panel(
            "Pronouns that are right",
            "%",
            {"about pizza": "accuracy", "about the other noun": "control"},
            scale=100,
            y_range=PERCENT,
        ),
    )
