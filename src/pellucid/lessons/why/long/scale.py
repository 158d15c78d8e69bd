r"""The scale $1/\sqrt{d_k}$ at full length: entropy, gradient, and what training makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from pellucid.inside.pair import Keeper
from pellucid.lessons.why.claims.scale import (
    NOTES_SAY,
    NUM_KEYS,
    OBJECTIVES_SAY,
    WIDTHS,
    Kind,
    Sharpness,
    judge,
    measure_sharpness,
)
from pellucid.lessons.why.long.sums import mean, series_of, thin, updates_until, write
from pellucid.lessons.why.result import Cell, Finding, Measurement, Panel, Plot, Table, Verdict
from pellucid.lessons.why.setting import Setting
from pellucid.lessons.why.tiny.learn import Tiny, count_exact, make_tiny, train_tiny
from pellucid.lessons.why.tiny.sentences import draw_statements
from pellucid.lessons.why.tiny.words import Pair, make_pair_batch
from pellucid.machine.randomness import generator
from pellucid.train.plain import compute_loss

LEARNED = 0.1
"""A model has learned when its training loss stays below this, in nats a word."""
SOONER = 0.9
"""The scale helps if this share of the updates, or less, is enough."""
EVERY = 10

STARTS = {
    "unit": "queries and keys of variance 1",
    "Xavier": "usual first weights",
}
Runs = dict[tuple[Kind, bool], list[list[Sharpness]]]
Taught = dict[tuple[str, int, bool], list[dict[str, Any]]]


def measure(setting: Setting) -> Measurement:
    """Measure the softmax for d_k from 8 to 512, and train with and without the scale."""
    runs = _measure_softmax(setting)
    widths = setting.choose((8, 64, 512), (8, 16))
    steps = setting.choose(250, 5)
    taught: Taught = {
        (start, width, is_scaled): [
            _teach(start, width, is_scaled, steps, seed, setting) for seed in setting.seeds
        ]
        for start in STARTS
        for width in widths
        for is_scaled in (True, False)
    }
    softmax = judge(
        {key: [_average(by_seed) for by_seed in found] for key, found in runs.items()}
    )  # fmt: skip
    learning = judge_learning(taught, widths, steps)
    last = widths[-1]
    scaled, raw = (
        mean([one["exact"] for one in taught["unit", last, is_scaled]])
        for is_scaled in (True, False)
    )
    left = [mean([one.gradient for one in runs["independent", k][-1]]) for k in (False, True)]
    return Measurement(
        claim="scale",
        question="Does dividing by √d_k keep the gradients of the softmax alive?",
        number=f"At d_k = {WIDTHS[-1]} the gradient of the median query is {left[0]:.2g} without "
        f"the scale and {left[1]:.2g} with it; after {steps} updates at d_k = {last}, from queries "
        f"and keys of variance 1, {raw:.0%} of new sentences are right without it and "
        f"{scaled:.0%} with it.",
        method=f"Queries of d_k numbers with mean 0 and variance 1 meet {NUM_KEYS} keys; the "
        "gradient is the Frobenius norm of the softmax's Jacobian, the entropy a share of the "
        "most possible. Then models of one layer with one head and d = 64 learn a tiny language, "
        f"with and without the scale, in {steps} updates at a rate of 0.003: once from the usual "
        "first weights (Xavier), once from weights that give queries and keys of variance 1, which "
        "is what the scale is made for.",
        findings=(Finding(NOTES_SAY, softmax), Finding(OBJECTIVES_SAY, learning)),
        tables=(
            _softmax_table("queries and keys are independent", "independent", runs),
            _softmax_table("one key equals the query", "alike", runs),
            *(_learning_table(start, taught, widths) for start in STARTS),
        ),
        plot=_plot(runs, taught, widths),
        notes=(
            "Xavier's first weights shrink as d_k grows, and with them queries and keys: the "
            "scores do not grow like √d_k, and part of the scale's work is done before training.",
            f"Before training, the relative gradient of queries and keys at d_k = {last} is "
            f"{_start_gradient(taught, last, False)} without the scale and "
            f"{_start_gradient(taught, last, True)} with it, from variance 1: nothing divides it "
            "either. What the scale saves is the course of training, not the size of its first "
            "gradient.",
        ),
        to_try=("pellucid attend help-me --row 0", "pellucid why diagonal"),
        seed=setting.seed,
        size=setting.size,
    )


def judge_learning(taught: Taught, widths: Sequence[int], steps: int) -> Verdict:
    """Judge by the updates to learn with and without the scale, at each d_k and from each start.

    Args:
        taught: the trainings of all seeds by start, d_k and whether scores are divided.
        widths: the values of d_k.
        steps: updates of each training; what never learned counts as these.
    """
    helps: dict[str, list[int]] = {}
    said = []
    for start in STARTS:
        helps[start] = []
        for width in widths:
            scaled, raw = (
                mean([one["updates"] or steps for one in taught[start, width, is_scaled]])
                for is_scaled in (True, False)
            )
            said.append(f"{start} d_k {width}: {scaled:.0f} and {raw:.0f}")
            if scaled <= SOONER * raw:
                helps[start].append(width)
    rule = (
        f"the scale helps where {SOONER:.0%} of the updates or fewer are enough to learn (a loss "
        f"that stays below {LEARNED}; never counts as {steps}); holds if it helps at every d_k "
        "from both starts, fails if it does not at the largest from either"
    )
    numbers = "updates with and without: " + "; ".join(said)
    if all(found == list(widths) for found in helps.values()):
        return Verdict("holds", "", rule, numbers)
    largest = [start for start in STARTS if widths[-1] in helps[start]]
    if not largest:
        return Verdict("fails", "", rule, numbers)
    conditions = []
    if len(largest) < len(STARTS):
        conditions.append(f"training starts from {STARTS[largest[0]]}")
    least = [_smallest_of_run(helps[start], widths) for start in largest]
    if max(least) > widths[0]:
        low, high = min(least), max(least)
        conditions.append(f"d_k is {low} or more" if low == high else
                          f"d_k is {low} or {high} or more, by the first weights")  # fmt: skip
    return Verdict("holds only if", " and ".join(conditions), rule, numbers)


def _smallest_of_run(helps: list[int], widths: Sequence[int]) -> int:
    """Find the d_k from which on every one is helped."""
    least = widths[-1]
    for width in reversed(widths):
        if width not in helps:
            break
        least = width
    return least


def _start_gradient(taught: Taught, width: int, is_scaled: bool) -> str:
    return write([one["gradient"] for one in taught["unit", width, is_scaled]])


def _measure_softmax(setting: Setting) -> Runs:
    queries = setting.choose(2048, 32)
    kinds: tuple[Kind, Kind] = ("independent", "alike")
    runs: Runs = {}
    for kind in kinds:
        for is_scaled in (False, True):
            runs[kind, is_scaled] = [
                [_sharpness(width, kind, is_scaled, queries, seed, setting)
                 for seed in setting.seeds]
                for width in WIDTHS
            ]  # fmt: skip
    return runs


def _sharpness(
    width: int, kind: Kind, is_scaled: bool, queries: int, seed: int, setting: Setting
) -> Sharpness:
    how = "divided" if is_scaled else "not divided"
    found = setting.cell(
        f"softmax, {kind}, d_k {width}, {how}, {queries} queries, seed {seed}",
        lambda: asdict(measure_sharpness(width, kind, is_scaled, queries=queries, seed=seed)),
    )
    return Sharpness(**found)


def _teach(
    start: str, width: int, is_scaled: bool, steps: int, seed: int, setting: Setting
) -> dict[str, Any]:
    how = "divided" if is_scaled else "not divided"
    found: dict[str, Any] = setting.cell(
        f"training, {start}, d_k {width}, {how}, {steps} updates, seed {seed}",
        lambda: _train(start, width, is_scaled, steps, seed, setting),
    )
    return found


def _train(
    start: str, width: int, is_scaled: bool, steps: int, seed: int, setting: Setting
) -> dict[str, Any]:
    train = draw_statements(setting.choose(6000, 60), seed=seed, part="train")
    test = draw_statements(setting.choose(200, 5), seed=seed, part="test")
    tiny = make_tiny(
        [*train, *test], seed=seed, num_heads=1, d_key=width, d_value=64, scale_scores=is_scaled
    )
    if start == "unit":
        _start_at_unit_variance(tiny, seed)
    deviation, entropy = _look(tiny, train[:64])
    gradient = _gradient(tiny, train[:64])
    # Sharp weights are mostly numbers so small that they would slow the processor down.
    torch.set_flush_denormal(True)
    try:
        tiny = train_tiny(tiny, train, steps=steps, seed=seed)
    finally:
        torch.set_flush_denormal(False)
    return {
        "losses": thin(tiny.losses, EVERY),
        "updates": updates_until(tiny.losses, LEARNED),
        "exact": count_exact(tiny, test),
        "deviation": deviation,
        "entropy": entropy,
        "gradient": gradient,
        "entropy_after": _look(tiny, train[:64])[1],
    }


@torch.no_grad()
def _start_at_unit_variance(tiny: Tiny, seed: int) -> None:
    """Give the projections of queries and keys weights of variance 1 ÷ d_model.

    Their inputs have a variance of about 1, so that queries and keys get it too.
    """
    for name, weight in tiny.model.named_parameters():
        if name.endswith(("query.weight", "key.weight")):
            drawn = generator(seed, "unit variance", name).standard_normal(tuple(weight.shape))
            weight.copy_(torch.from_numpy(drawn / weight.shape[1] ** 0.5))


@torch.no_grad()
def _look(tiny: Tiny, pairs: Sequence[Pair]) -> tuple[float, float]:
    """Compute the deviation of the encoder's scores and the entropy of its weights."""
    keeper = Keeper(("scaled", "weights"), ("encoder.0.self",))
    batch = make_pair_batch(
        tiny.source.encode_all([pair[0] for pair in pairs]),
        tiny.target.encode_all([pair[1] for pair in pairs]),
    )
    real_BS = batch.source_mask_BS
    tiny.model.encode(batch.source_BS, real_BS, probe=keeper)
    weights_BHLM = keeper.found["encoder.0.self.weights"]
    scaled_BHLM = keeper.found["encoder.0.self.scaled"]
    is_pair_BHLM = (real_BS[:, None, :, None] & real_BS[:, None, None, :]).expand_as(scaled_BHLM)
    entropy_BHL = -(weights_BHLM * weights_BHLM.clamp_min(1e-30).log()).sum(dim=-1)
    most_B11 = real_BS.sum(dim=1).log()[:, None, None]
    share_BHL = (entropy_BHL / most_B11)[real_BS[:, None].expand_as(entropy_BHL)]
    return float(scaled_BHLM[is_pair_BHLM].std()), float(share_BHL.mean())


def _gradient(tiny: Tiny, pairs: Sequence[Pair]) -> float:
    """Compute the norm of the gradient in the encoder's queries and keys, before training.

    It is divided by the norm of the weights, so that the two starts compare.
    """
    batch = make_pair_batch(
        tiny.source.encode_all([pair[0] for pair in pairs]),
        tiny.target.encode_all([pair[1] for pair in pairs]),
    )
    loss, _ = compute_loss(tiny.model, batch, 0.0, None)
    loss.backward()  # type: ignore[no-untyped-call]
    chosen = [
        weight for name, weight in tiny.model.named_parameters()
        if name.startswith("encoder.") and name.endswith(("query.weight", "key.weight"))
    ]  # fmt: skip
    squares = sum(float(one.grad.square().sum()) for one in chosen if one.grad is not None)
    sizes = sum(float(one.detach().square().sum()) for one in chosen)
    tiny.model.zero_grad()
    return float((squares / sizes) ** 0.5)


def _average(by_seed: Sequence[Sharpness]) -> Sharpness:
    fields = [asdict(one) for one in by_seed]
    means = {name: mean([one[name] for one in fields]) for name in fields[0]}
    means.pop("d_key")
    return Sharpness(by_seed[0].d_key, **means)


def _softmax_table(title: str, kind: Kind, runs: Runs) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for place, width in enumerate(WIDTHS):
        raw, scaled = runs[kind, False][place], runs[kind, True][place]
        cells = [
            write([getattr(one, what) for one in found])
            for what in ("deviation", "entropy", "gradient")
            for found in (raw, scaled)
        ]
        rows.append((width, *cells))
    return Table(
        f"Without and with the scale: {title}",
        ("d_k", "deviation", "÷√d_k", "entropy", "÷√d_k", "gradient", "÷√d_k"),
        ("d", "", "", "", "", "", ""),
        tuple(rows),
    )


def _learning_table(start: str, taught: Taught, widths: Sequence[int]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for width in widths:
        for is_scaled in (True, False):
            found = taught[start, width, is_scaled]
            learned = [one["updates"] for one in found if one["updates"] is not None]
            rows.append(
                (
                    width,
                    "÷√d_k" if is_scaled else "not divided",
                    *(write([one[what] for one in found])
                      for what in ("deviation", "entropy", "gradient", "entropy_after")),
                    f"{len(learned)} of {len(found)}",
                    write(learned),
                    write([one["exact"] for one in found], scale=100),
                )
            )  # fmt: skip
    return Table(
        f"Training from {STARTS[start]}: scores, entropy and relative gradient before the first "
        "update, entropy after the last, trainings that learned with their updates, right",
        ("d_k", "", "deviation", "entropy", "gradient", "after", "learned", "updates", "right, %"),
        ("d", "", "", "", "", "", "", "", ""),
        tuple(rows),
    )


def _plot(runs: Runs, taught: Taught, widths: Sequence[int]) -> Plot:
    def softmax(name: str, kind: Kind, is_scaled: bool, what: str, role: Any) -> Any:
        found = runs[kind, is_scaled]
        values = [[getattr(one, what) for one in by_seed] for by_seed in found]
        return series_of(name, WIDTHS, values, role, in_logarithms=what == "gradient")

    def panel(title: str, label: str, what: str) -> Panel:
        return Panel(
            title, "width of queries and keys, d_k", label,
            (
                softmax("divided by √d_k", "independent", True, what, "accent"),
                softmax("not divided", "independent", False, what, "plain"),
                softmax("divided, a key equals the query", "alike", True, what, "plain"),
            ),
            x_log=True, y_log=what == "gradient", y_range=(0, 1) if what == "entropy" else None,
        )  # fmt: skip

    def course(name: str, width: int, is_scaled: bool, role: Any) -> Any:
        losses = [one["losses"] for one in taught["unit", width, is_scaled]]
        places = [EVERY * (i + 0.5) for i in range(len(losses[0]))]
        return series_of(name, places, list(zip(*losses, strict=True)), role, in_logarithms=True)

    last = widths[-1]
    learning = Panel(
        f"Training loss at d_k = {last}, from variance 1", "update", "nats a word",
        (
            course("divided by √d_k", last, True, "accent"),
            course("not divided", last, False, "plain"),
            course(f"not divided, d_k = {widths[0]}", widths[0], False, "plain"),
        ),
        y_log=True,
    )  # fmt: skip
    return Plot(
        (
            panel("Gradient of the softmax", "norm of the Jacobian (median)", "gradient"),
            panel("Entropy of the weights", "share of the most possible", "entropy"),
            learning,
        )
    )
