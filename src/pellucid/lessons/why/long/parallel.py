"""Processing in sequence: recurrent models next to the Transformer, and gold next to own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from statistics import fmean
from typing import Any

from torch import Tensor, nn

from pellucid.config import TrainingConfig
from pellucid.lessons.why.claims.parallel import (
    AT_ALL,
    Race,
    judge,
    make_races,
    plot_races,
    tabulate_races,
)
from pellucid.lessons.why.claims.parallel import SAYS as ONE_PASS_SAYS
from pellucid.lessons.why.clock import seconds_of
from pellucid.lessons.why.long.sums import mean, series_of, write
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
from pellucid.lessons.why.tiny.forms import FORMS, Form, make_form
from pellucid.lessons.why.tiny.learn import Updates, count_exact, make_tiny
from pellucid.lessons.why.tiny.letters import LETTERS, draw_letters
from pellucid.lessons.why.tiny.own import train_on
from pellucid.lessons.why.tiny.sentences import draw_statements
from pellucid.machine.hardware import describe_machine
from pellucid.machine.randomness import generator

SAYS = Statement(
    NOTES,
    "introduction",
    "recurrent networks process tokens in sequence, which makes training inefficient",
)
WIDTH = 128
TOKENS = 2048
NATIVE = "recurrent layer of PyTorch"

Speeds = Mapping[tuple[str, int], Sequence[float]]
"""Tokens per second by form and length, one number for each seed."""


def measure(setting: Setting) -> Measurement:
    """Time updates of every form by length, one pass against a loop, and gold against own words."""
    lengths = setting.choose((8, 16, 32, 64, 128, 256), (3, 5))
    speeds, encoders = _time_all(setting, lengths)
    races = _average([
        [
            Race(**race)
            for race in setting.cell(
                f"one pass and loop, seed {seed}", partial(_race, setting, seed), is_timed=True
            )
        ]
        for seed in setting.seeds
    ])  # fmt: skip
    own = {
        updates: [_learn(setting, seed, updates) for seed in setting.seeds]
        for updates in setting.choose((120, 300), (3,))
    }
    first, last = (
        mean(speeds["Transformer", length]) / mean(speeds["fixed vector", length])
        for length in (lengths[0], lengths[-1])
    )
    return Measurement(
        claim="parallel",
        question="How much faster is one pass than word by word?",
        number=f"In training the Transformer reads {first:.1f} times as many tokens a second as a "
        f"recurrent model of its size at {lengths[0]} tokens, {last:.1f} times at {lengths[-1]}. "
        f"Its decoder in one pass is {races[-1].speedup:.0f} times as fast as in a loop over "
        f"{races[-1].length} words.",
        method=f"Models of equal size, d = {WIDTH}, one layer on either side, make updates on "
        f"batches of about {TOKENS:,} source and as many target letters, all of one length. "
        "Next to them only encoders, forward and backward: the cell of this project, a loop in "
        "Python, and PyTorch's own layer of gated units, a loop in C++. "
        f"Then a decoder of the Transformer reads {races[0].length} to {races[-1].length} words in "
        "one pass and in a loop. Last, tiny Transformers learn statements on the correct words, "
        "or on words that they write themselves first.",
        findings=(
            Finding(SAYS, judge_sequence(speeds, encoders)),
            Finding(ONE_PASS_SAYS, judge(races)),
        ),
        tables=(
            _speed_table("Tokens per second, whole updates", speeds),
            _speed_table("Tokens per second, encoder only, forward and backward", encoders),
            tabulate_races(races),
            _own_table(own),
        ),
        plot=_plot(speeds, races),
        notes=(
            "The more numbers a machine computes at once, the more it gains from one pass: one "
            "thread of a processor gains the least, a GPU the most.",
            "A recurrence needs as many steps one after another as there are tokens; each step is "
            "small. More rows in a batch make each step larger, and the loss smaller.",
            "On its own words a model must write before it can learn, word by word, and is then "
            "corrected against words that need not belong to what it wrote.",
        ),
        to_try=(
            "pellucid why cache",
            "pellucid why memory",
            "pellucid inspect demo --draw training",
        ),
        seed=setting.seed,
        size=setting.size,
        machine=describe_machine(),
    )


def judge_sequence(speeds: Speeds, encoders: Speeds) -> Verdict:
    """Judge by the speed of the Transformer next to that of the fastest recurrent form.

    Args:
        speeds: of whole updates.
        encoders: of encoders only, among them PyTorch's own recurrent layer.
    """
    rule = (
        f"inefficient means that the Transformer reads {AT_ALL} times as many tokens a second as "
        "the fastest recurrent form; holds if so at every length, and PyTorch's own recurrent "
        "layer is as slow in an encoder; only for long texts if so from some length on; fails "
        "otherwise"
    )
    lengths = sorted({length for _, length in speeds})

    def ratio(found: Speeds, length: int) -> float:
        others = [mean(found[key]) for key in found if key[1] == length and key[0] != "Transformer"]
        return mean(found["Transformer", length]) / max(others)

    ratios = {length: min(ratio(speeds, length), ratio(encoders, length)) for length in lengths}
    numbers = "times as fast as the fastest recurrence, of updates and of encoders: " + ", ".join(
        f"{ratio(speeds, length):.1f} and {ratio(encoders, length):.1f} at {length}"
        for length in lengths
    )
    slow = [length for length in lengths if ratios[length] >= AT_ALL]
    if slow == lengths:
        return Verdict("holds", "", rule, numbers)
    if slow and lengths[lengths.index(slow[0]) :] == slow:
        condition = f"sequences have about {slow[0]} tokens or more"
        return Verdict("holds only if", condition, rule, numbers)
    if all(ratio(speeds, length) >= AT_ALL for length in lengths):
        condition = "the loop over the tokens is one of Python: a loop in C++ is as fast"
        return Verdict("holds only if", condition, rule, numbers)
    return Verdict("fails", "", rule, numbers)


def _time_all(setting: Setting, lengths: Sequence[int]) -> tuple[Speeds, Speeds]:
    """Time whole updates of every form, and encoders only, by length."""
    speeds: dict[tuple[str, int], list[float]] = {
        (form, length): [
            setting.cell(
                f"update, {form}, {length} letters, d = {WIDTH}, seed {seed}",
                partial(_time_update, form, length, seed),
                is_timed=True,
            )
            for seed in setting.seeds
        ]
        for form in FORMS
        for length in lengths
    }
    encoders: dict[tuple[str, int], list[float]] = {
        (kind, length): [
            setting.cell(
                f"encoder, {kind}, {length} letters, d = {WIDTH}, seed {seed}",
                partial(_time_encoder, kind, length, seed),
                is_timed=True,
            )
            for seed in setting.seeds
        ]
        for kind in ("fixed vector", NATIVE, "Transformer")
        for length in lengths
    }
    return speeds, encoders


def _time_update(form: Form, length: int, seed: int) -> float:
    """Time an update: source tokens per second."""
    tiny = make_form(form, LETTERS, seed=seed, d_model=WIDTH, d_ff=2 * WIDTH)
    rows = max(1, TOKENS // length)
    batch = draw_letters("copy", length, rows=rows, numbers=generator(seed, "why speed", length))
    updating = Updates(tiny, TrainingConfig(seed=seed, label_smoothing=0.0, dropout=0.0))
    seconds = seconds_of(lambda: updating.make(batch), repeats=3)
    return batch.num_source_tokens / seconds


def _time_encoder(kind: str, length: int, seed: int) -> float:
    """Time an encoder forward and backward: tokens per second."""
    rows = max(1, TOKENS // length)
    numbers = generator(seed, "why encoder speed", length)
    batch = draw_letters("copy", length, rows=rows, numbers=numbers)
    if kind == NATIVE:
        layer, embedding = nn.GRU(WIDTH, WIDTH, batch_first=True), nn.Embedding(12, WIDTH)

        def read() -> Tensor:
            states_BSD: Tensor = layer(embedding(batch.source_BS))[0]
            return states_BSD
    else:
        form: Form = "fixed vector" if kind == "fixed vector" else "Transformer"
        model = make_form(form, LETTERS, seed=seed, d_model=WIDTH, d_ff=2 * WIDTH).model

        def read() -> Tensor:
            return model.encode(batch.source_BS)

    def run() -> None:
        loss: Any = read().square().mean()
        loss.backward()

    return batch.num_source_tokens / seconds_of(run, repeats=3)


def _race(setting: Setting, seed: int) -> list[dict[str, Any]]:
    return [asdict(race) for race in make_races(replace(setting, seed=seed))]


def _average(by_seed: Sequence[Sequence[Race]]) -> list[Race]:
    """Average races of the same length over seeds."""
    return [
        Race(
            races[0].length,
            fmean(race.pass_seconds for race in races),
            fmean(race.loop_seconds for race in races),
            fmean(race.pass_loss for race in races),
            fmean(race.loop_loss for race in races),
            max(race.gradient_difference for race in races),
        )
        for races in zip(*by_seed, strict=True)
    ]


def _learn(setting: Setting, seed: int, updates: int) -> dict[str, dict[str, float]]:
    """Train on correct words, on own words, and on own words in the time of the first."""
    count, tests = setting.choose((4000, 200), (60, 11))

    def run(is_own: bool, steps: int) -> dict[str, float]:
        train = draw_statements(count, seed=seed, part="train")
        test = draw_statements(tests, seed=seed, part="test")
        tiny = make_tiny([*train, *test], seed=seed)
        paced = train_on(tiny, train, is_own=is_own, updates=steps, seed=seed)
        exact = count_exact(tiny, test)
        return {"updates": steps, "seconds": paced.seconds, "exact": exact}

    gold = setting.cell(
        f"on correct words, {updates} updates, seed {seed}",
        partial(run, False, updates),
        is_timed=True,
    )
    own = setting.cell(
        f"on own words, {updates} updates, seed {seed}", partial(run, True, updates), is_timed=True
    )
    steps = max(1, round(updates * gold["seconds"] / own["seconds"]))
    timed = setting.cell(
        f"on own words, in the time of {updates} updates on correct words, seed {seed}",
        partial(run, True, steps),
        is_timed=True,
    )
    return {"correct words": gold, "own words": own, "own words, equal time": timed}


def _speed_table(title: str, speeds: Speeds) -> Table:
    forms = list(dict.fromkeys(form for form, _ in speeds))
    lengths = sorted({length for _, length in speeds})
    return Table(
        title,
        ("tokens", *forms),
        ("d", *("" for _ in forms)),
        tuple(
            (length, *(_write_thousands(speeds[form, length]) for form in forms))
            for length in lengths
        ),
        is_of_this_machine=True,
    )


def _write_thousands(speeds: Sequence[float]) -> str:
    return f"{write([speed / 1000 for speed in speeds])}k"


def _own_table(own: Mapping[int, Sequence[Mapping[str, Mapping[str, float]]]]) -> Table:
    columns = ("updates", "seconds", "exact")
    return Table(
        "Training a Transformer on statements",
        ("updates on correct words", "learned from", "updates", "seconds", "right, %"),
        ("d", "", "", "", ""),
        tuple(
            (updates, kind, *(
                write([found[kind][name] for found in by_seed], scale=100 if name == "exact" else 1)
                for name in columns
            ))
            for updates, by_seed in own.items()
            for kind in by_seed[0]
        ),
        is_of_this_machine=True,
    )  # fmt: skip


def _plot(speeds: Speeds, races: Sequence[Race]) -> Plot:
    lengths = sorted({length for _, length in speeds})
    lines = tuple(
        series_of(
            form, lengths, [speeds[form, length] for length in lengths],
            "accent" if form == "Transformer" else "plain", scale=1e-3,
        )
        for form in FORMS
    )  # fmt: skip
    training = Panel(
        "Training", "tokens of source and target", "1,000 tokens a second", lines,
        x_log=True, y_log=True,
    )  # fmt: skip
    return Plot((training, *plot_races(races).panels))
