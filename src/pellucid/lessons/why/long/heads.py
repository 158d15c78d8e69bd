"""Heads at full length: their number at equal width, their distance, and how many can be cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from statistics import fmean
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid.inside.pair import Keeper
from pellucid.lessons.why.claims import heads as short
from pellucid.lessons.why.intervals import interval
from pellucid.lessons.why.long.cutting import FREE, CutHeads, cut_heads
from pellucid.lessons.why.long.sums import series_of, write
from pellucid.lessons.why.packaged import (
    load_packaged,
    untrained_twin,
    write_examples_of,
)
from pellucid.lessons.why.result import (
    NOTES,
    Finding,
    Measurement,
    Panel,
    Plot,
    Statement,
    Table,
    Verdict,
)
from pellucid.lessons.why.setting import Setting
from pellucid.lessons.why.tiny.learn import make_tiny
from pellucid.lessons.why.tiny.trials import LEARNED, Task, make_task, run_trial
from pellucid.model import EncoderDecoder

NUMBERS = (1, 2, 4, 8, 16)
WIDTH = 32
FASTER = 1.1

NUMBER_SAYS = Statement(NOTES, "section 3.4", "multiple heads, each with its own distinct matrices")
DISTANCE_SAYS = Statement(NOTES, "section 3.4", "heads produce unique queries, keys and values")
CUT_SAYS = Statement(
    NOTES, "section 3.4", "each head learns a unique feature (and would be needed)"
)

_COURSES = (("the least needed first", "losses"), ("order drawn", "random"))
_ROLES: tuple[Literal["accent", "plain"], ...] = ("accent", "plain")

Taught = dict[str, dict[int, list[dict[str, Any]]]]
"""By text and number of heads the trainings of each seed."""


def measure(setting: Setting) -> Measurement:
    """Add to the quick measurement trainings by number of heads, distances, and cutting."""
    quick = short.measure(setting)
    count = setting.choose(60, 2)
    distances = [setting.cell(f"distances in the packaged model, {count} sentences, seed {seed}",
                              partial(_packaged_distances, count, seed))
                 for seed in setting.seeds]  # fmt: skip
    cuts = [_cut(count, seed, setting) for seed in setting.seeds]
    numbers = setting.choose(NUMBERS, (1, 2))
    taught = {name: _teach(name, numbers, setting) for name in ("lists", "pronouns")}
    tiny_distances = [
        (run["trained"], run["untrained"])
        for runs in taught["pronouns"].values()
        for run in runs
        if run["trained"] is not None
    ]
    free = interval([cut.num_free for cut in cuts])
    findings = (
        *quick.findings,
        Finding(NUMBER_SAYS, judge_number(taught)),
        Finding(DISTANCE_SAYS, judge_distance([(one["trained"], one["untrained"])
                                               for one in distances], tiny_distances)),
        Finding(CUT_SAYS, judge_cut(cuts)),
    )  # fmt: skip
    total = len(cuts[0].order)
    return Measurement(
        claim="heads",
        question=quick.question,
        number=f"{quick.number} {free.mean:.0f} of all {total} heads can be cut for at most "
        f"{FREE} nats a token.",
        method=f"{quick.method} Number of heads: tiny models of width {WIDTH}, whose heads share "
        f"it, learn lists of animals and pronouns; learned means a training loss below {LEARNED} "
        "nats. Distance: the share of its weight that one head gives to other words than another "
        "head of the same layer, averaged over rows and pairs of heads. Cutting: each time the "
        f"head of encoder and decoder whose loss least raises the loss on {count} sentences; "
        f"the curve is that of {count} others, with the true translations.",
        findings=findings,
        tables=(*quick.tables, *_number_tables(taught), _distance_table(distances, taught),
                _cut_table(cuts)),
        plot=_plot(quick, taught, cuts),
        notes=quick.notes,
        to_try=quick.to_try,
        seed=setting.seed,
        size=setting.size,
    )  # fmt: skip


def judge_number(taught: Taught) -> Verdict:
    """Judge by the updates that the best number of heads needs, compared with one head."""
    rule = (
        f"better: one head needs {FASTER} times the updates of the best number or more, and more "
        "in every seed; holds if so in every text, fails if in none"
    )
    said, better, worse = [], [], []
    for name, by_number in taught.items():
        best = min(by_number, key=lambda n: fmean(run["updates"] for run in by_number[n]))
        most = max(by_number)
        gain, cost = _ratios(by_number, 1, best), _ratios(by_number, most, best)
        if fmean(gain) >= FASTER and min(gain) > 1:
            better.append(name)
        said.append(f"{name}: {best} heads are best, one head needs × {interval(gain)}")
        if fmean(cost) >= FASTER and min(cost) > 1:
            worse.append(f"{name}: {most} heads need × {interval(cost)}")
    numbers = "; ".join([*said, *worse])
    if not better:
        return Verdict("fails", "", rule, numbers)
    if len(better) < len(taught):
        return Verdict("holds only if", f"the text is {' or '.join(better)}", rule, numbers)
    if worse:
        return Verdict("holds only if", "heads do not become too narrow", rule, numbers)
    return Verdict("holds", "", rule, numbers)


def judge_distance(
    packaged: Sequence[tuple[float, float]], tiny: Sequence[tuple[float, float]]
) -> Verdict:
    """Judge by the distance between heads of trained models, compared with random weights.

    Args:
        packaged: of the packaged model and of untrained ones.
        tiny: of tiny models after and before training.
    """
    rule = (
        "holds if trained heads are further apart than those of random weights, in the packaged "
        "and in the tiny models, the interval of the difference above 0; fails if in neither"
    )
    gains = [interval([one - other for one, other in pairs]) for pairs in (packaged, tiny)]
    said = []
    for name, pairs in (("packaged", packaged), ("tiny", tiny)):
        trained, untrained = (interval(column).mean for column in zip(*pairs, strict=True))
        said.append(f"{name}: {trained:.2f} trained, {untrained:.2f} untrained")
    is_more = [gain.low > 0 for gain in gains]
    numbers = "; ".join(said)
    if all(is_more):
        return Verdict("holds", "", rule, numbers)
    if not any(is_more):
        return Verdict("fails", "", rule, numbers)
    which = "packaged" if is_more[0] else "tiny"
    return Verdict("holds only if", f"it is about the {which} model", rule, numbers)


def judge_cut(cuts: Sequence[CutHeads]) -> Verdict:
    """Judge by how many heads can be cut without loss."""
    total = len(cuts[0].order)
    free = interval([cut.num_free for cut in cuts])
    rule = (
        f"no loss is a rise by at most {FREE} nats a token; holds if no head can be cut, fails "
        "if half of them or more can"
    )
    numbers = f"heads cut without loss: {free} of {total}"
    if free.mean < 1:
        return Verdict("holds", "", rule, numbers)
    if free.mean >= total / 2:
        return Verdict("fails", "", rule, numbers)
    condition = f"it is about the {total - round(free.mean)} of {total} heads that remain"
    return Verdict("holds only if", condition, rule, numbers)


def distance_between(weights_HLM: Tensor) -> float:
    """Compute the mean distance between pairs of heads: half of the sum of absolute gaps.

    It is 0 for heads with the same weights, 1 for heads that never look at the same word.
    """
    num_heads = len(weights_HLM)
    gaps_HHL = (weights_HLM[:, None] - weights_HLM[None]).abs().sum(dim=-1) / 2
    return float(gaps_HHL.mean(dim=-1).sum() / (num_heads * (num_heads - 1)))


def _ratios(by_number: dict[int, list[dict[str, Any]]], one: int, other: int) -> list[float]:
    """Divide the updates of two numbers of heads, seed by seed."""
    both = zip(by_number[one], by_number[other], strict=True)
    return [a["updates"] / b["updates"] for a, b in both]


def _teach(name: str, numbers: Sequence[int], setting: Setting) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {number: [] for number in numbers}
    for seed in setting.seeds:
        task = make_task(name, setting, seed=seed)  # type: ignore[arg-type]
        for number in numbers:
            key = f"{name}, {number} heads, {task.steps} updates, seed {seed}"
            found[number].append(setting.cell(key, partial(_train, task, number, seed)))
    return found


def _train(task: Task, num_heads: int, seed: int) -> dict[str, Any]:
    """Train with a number of heads, and measure their distance before and after."""
    trial, tiny = run_trial(task, seed=seed, num_heads=num_heads)
    record: dict[str, Any] = asdict(trial) | {"trained": None, "untrained": None}
    if num_heads > 1:
        config = tiny.model.config
        raw = make_tiny([*task.train, *task.tests], seed=seed, num_heads=num_heads,
                        d_model=config.d_model, d_ff=config.d_ff,
                        num_encoder_layers=config.num_encoder_layers)  # fmt: skip
        sources = tiny.source.encode_all([pair[0] for pair in task.tests[:40]])
        record["trained"] = _distance(tiny.model, sources)
        record["untrained"] = _distance(raw.model, sources)
    return record


@torch.inference_mode()
def _distance(model: EncoderDecoder, sources: Sequence[Sequence[int]]) -> float:
    """Average the distance between heads over the encoder's layers and some sentences."""
    found = []
    for ids in sources:
        keeper = Keeper(("weights",))
        model.encode(torch.tensor([list(ids)]), probe=keeper)
        found += [distance_between(weights[0]) for weights in keeper.found.values()]
    return sum(found) / len(found)


def _packaged_distances(count: int, seed: int) -> dict[str, float]:
    bundle = load_packaged()
    examples = write_examples_of(count, seed=seed)
    sources = [bundle.tokenizer.encode_source(one.source) for one in examples]
    twin = untrained_twin(bundle, seed=seed)
    return {"trained": _distance(bundle.model, sources), "untrained": _distance(twin, sources)}


def _cut(count: int, seed: int, setting: Setting) -> CutHeads:
    key = f"cutting heads of the packaged model, {count} and {count} sentences, seed {seed}"
    found = setting.cell(key, lambda: asdict(cut_heads(seed, count)))
    return CutHeads(**{name: tuple(values) for name, values in found.items()})


def _number_tables(taught: Taught) -> list[Table]:
    return [
        Table(
            f"Number of heads at width {WIDTH}: {name}",
            ("heads", "width of one", "updates", "right, %", "loss"),
            ("d", "d", "", "", ""),
            tuple(
                (number, WIDTH // number, write([one["updates"] for one in runs]),
                 write([100 * one["exact"] for one in runs]),
                 write([one["loss"] for one in runs]))
                for number, runs in by_number.items()
            ),
        )
        for name, by_number in taught.items()
    ]  # fmt: skip


def _distance_table(distances: Sequence[dict[str, float]], taught: Taught) -> Table:
    rows: list[tuple[str, list[dict[str, Any]]]] = [("packaged model, 4 heads", list(distances))]
    rows += [
        (f"tiny, {number} heads, {name}", runs)
        for name, by_number in taught.items()
        for number, runs in by_number.items()
        if number > 1
    ]
    return Table(
        "Distance between heads of one layer, 0 for the same weights to 1 for no word in common",
        ("", "trained", "untrained"),
        ("", "", ""),
        tuple(
            (name, write([one["trained"] for one in runs]),
             write([one["untrained"] for one in runs]))
            for name, runs in rows
        ),
    )  # fmt: skip


def _cut_table(cuts: Sequence[CutHeads]) -> Table:
    total = len(cuts[0].order)
    return Table(
        "Packaged model with heads cut",
        ("heads cut", "loss", "tokens right, %", "loss, order drawn"),
        ("d", "", "", ""),
        tuple(
            (n, write([cut.losses[n] for cut in cuts]),
             write([100 * cut.right[n] for cut in cuts]),
             write([cut.random[n] for cut in cuts]))
            for n in range(0, total + 1, 2)
        ),
    )  # fmt: skip


def _plot(quick: Measurement, taught: Taught, cuts: Sequence[CutHeads]) -> Plot:
    numbers = [float(number) for number in taught["lists"]]
    places = [float(n) for n in range(len(cuts[0].losses))]
    lines = tuple(
        series_of(name, numbers, [[run["updates"] for run in runs] for runs in by.values()],
                        role)
        for (name, by), role in zip(taught.items(), _ROLES, strict=True)
    )  # fmt: skip
    cutting = tuple(
        series_of(name, places, [[getattr(cut, column)[n] for cut in cuts]
                                       for n in range(len(places))], role)
        for (name, column), role in zip(_COURSES, _ROLES, strict=True)
    )  # fmt: skip
    return Plot(
        (
            quick.plot.panels[0],
            Panel("Updates until the text is learned", "heads at equal width", "updates", lines,
                  x_log=True),
            Panel("Loss without heads", "heads cut, of all", "nats a token", cutting, y_log=True),
        )
    )  # fmt: skip
