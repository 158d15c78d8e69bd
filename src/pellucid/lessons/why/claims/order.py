"""Order and size: words that change places, and translations of another length than the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, Literal, get_args

from pellucid.lessons.why.clock import thread_seconds
from pellucid.lessons.why.over_seeds import write_over_seeds
from pellucid.lessons.why.result import (
    SLIDES,
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
from pellucid.lessons.why.tiny.forms import FORMS, Form, make_form
from pellucid.lessons.why.tiny.learn import train_tiny, translate_tiny
from pellucid.lessons.why.tiny.uneven import Kind, draw_uneven, kind_of, order_of
from pellucid.lessons.why.tiny.words import Pair
from pellucid.machine.hardware import describe_machine

RARE, OFTEN = 0.01, 0.05
KINDS: tuple[Kind, ...] = get_args(Kind)
ANIMALS = (2, 3, 4)

ORDER_SAYS = Statement(
    SLIDES, "", "machine translation with recurrent networks: the order of the words does not match"
)
SIZE_SAYS = Statement(
    SLIDES, "", "machine translation with recurrent networks: the number of words does not match"
)

Errors = Mapping[str, float]
"""Shares of one model: ``right``, ``order``, ``words`` and ``missing`` of the animals with a color;
``length KIND`` of the lists of a kind whose translation has a wrong number of words, and ``wrong
KIND`` of those that are not translated exactly."""


def measure(setting: Setting) -> Measurement:
    """Teach lists of animals to every form, and count what is wrong in the translations."""
    forms: tuple[Form, ...] = setting.choose(
        ("fixed vector", "additive", "Transformer"), ("fixed vector", "Transformer"), tuple(FORMS)
    )
    count, updates, tests = setting.choose((6000, 350, 300), (60, 4, 20), (6000, 400, 500))
    runs = _run_all(setting, forms, count, updates, tests)
    equal = {form: runs["equal updates"][form] for form in forms}
    example = draw_uneven(1, phrases=(2,), seed=setting.seed, part="train")[0]
    vector, transformer = equal["fixed vector"], equal["Transformer"]
    return Measurement(
        claim="order",
        question="Are order and size what recurrent translation gets wrong?",
        number=f"With one vector {_mean(vector, 'order'):.1%} of the animals with a color have "
        f"their words in a wrong order, and {_mean(vector, 'words'):.0%} have wrong words; in the "
        f"Transformer {_mean(transformer, 'order'):.1%} and {_mean(transformer, 'words'):.0%}.",
        method=f"Models of equal size, d = 64, learn lists of 1 to 4 animals in {updates} updates "
        f"of 64 lists, such as “{example[0]}”, “{example[1]}”. Colors change places, and animals "
        "have names of one to five words, so that a translation may be shorter or longer than its "
        f"source. {tests} new lists of {ANIMALS[0]} to {ANIMALS[-1]} animals are translated. Each "
        "animal with a color is compared with the one in its place: right, in a wrong order (the "
        "same words, or any with a color that is not last), other words, or nothing.",
        findings=(
            Finding(ORDER_SAYS, judge_order(equal)),
            Finding(SIZE_SAYS, judge_size(equal)),
        ),
        tables=tuple(
            table
            for reading, found in runs.items()
            for table in (_order_table(reading, found, forms), _size_table(reading, found, forms))
        ),
        plot=_plot(equal),
        notes=(
            "An order may be learned as a rule: the color comes after the noun. To name the right "
            "animal a model must remember which one was there, and that is what one vector loses.",
        ),
        to_try=(
            'pellucid look demo "The European Economic Area" --links',
            "pellucid why memory",
            "pellucid why position",
        ),
        seed=setting.seed,
        size=setting.size,
        machine=describe_machine(),
    )


def judge_order(found: Mapping[Form, Sequence[Errors]]) -> Verdict:
    """Judge by the animals whose words stand in a wrong order."""
    rule = (
        f"holds if recurrent models with and without attention put the words of at least "
        f"{OFTEN:.0%} of the animals with a color in a wrong order, only for a fixed vector if "
        f"that one does; fails if it is rarer, or as frequent in the Transformer"
    )
    shares = {form: _mean(runs, "order") for form, runs in found.items()}
    numbers = "wrong order: " + ", ".join(f"{form} {share:.1%}" for form, share in shares.items())
    numbers += "; wrong or missing words: " + ", ".join(
        f"{form} {_mean(runs, 'words') + _mean(runs, 'missing'):.0%}"
        for form, runs in found.items()
    )
    if shares["fixed vector"] < max(OFTEN, 2 * shares["Transformer"]):
        return Verdict("fails", "", rule, numbers)
    attending = [share for form, share in shares.items() if form in ("additive", "dot product")]
    if min(attending, default=1.0) >= OFTEN:
        return Verdict("holds", "", rule, numbers)
    return Verdict("holds only if", "one vector is all that the decoder gets", rule, numbers)


def judge_size(found: Mapping[Form, Sequence[Errors]]) -> Verdict:
    """Judge by the translations with a wrong number of words, for equal sizes and for others."""
    rule = (
        f"holds if a recurrent model with one vector writes the wrong number of words at least "
        f"{OFTEN:.0%} more often if source and translation have different sizes than if they have "
        "the same; only as a matter of what is remembered if it errs at least as often, but "
        f"as much for equal sizes; fails if it errs in less than {OFTEN:.0%} of the lists of "
        "another size"
    )
    uneven = {
        form: fmean(_mean(runs, f"length {kind}") for kind in ("shorter", "longer"))
        for form, runs in found.items()
    }
    even = {form: _mean(runs, "length equal") for form, runs in found.items()}
    numbers = "wrong number of words, other size and same size: " + ", ".join(
        f"{form} {uneven[form]:.0%} and {even[form]:.0%}" for form in found
    )
    if uneven["fixed vector"] < OFTEN:
        return Verdict("fails", "", rule, numbers)
    if uneven["fixed vector"] - even["fixed vector"] >= OFTEN:
        if uneven["Transformer"] - even["Transformer"] >= OFTEN:
            return Verdict("fails", "", rule, numbers)
        if uneven.get("additive", 1.0) < OFTEN:
            condition = "one vector is all that the decoder gets"
            return Verdict("holds only if", condition, rule, numbers)
        return Verdict("holds", "", rule, numbers)
    condition = "lost words are the reason: lists of the same size get the wrong number as often"
    return Verdict("holds only if", condition, rule, numbers)


def count_errors(written: Sequence[str], pairs: Sequence[Pair]) -> dict[str, float]:
    """Count what is wrong in translations.

    Args:
        written: by a model.
        pairs: the sources with the correct translations.
    """
    animals: Counter[str] = Counter()
    lists: Counter[str] = Counter()
    for text, pair in zip(written, pairs, strict=True):
        animals.update(order_of(text, pair[1]))
        kind = kind_of(pair)
        lists[kind] += 1
        lists[f"wrong {kind}"] += text != pair[1]
        lists[f"length {kind}"] += len(text.split()) != len(pair[1].split())
    found = {
        name: animals[name] / max(1, animals.total())
        for name in ("right", "order", "words", "missing")
    }
    for kind in KINDS:
        for name in ("wrong", "length"):
            found[f"{name} {kind}"] = lists[f"{name} {kind}"] / max(1, lists[kind])
    return found


def _run_all(
    setting: Setting, forms: Sequence[Form], count: int, updates: int, tests: int
) -> dict[str, dict[Form, list[Errors]]]:
    """Train every form with each seed, after equal updates and, in the long form, in equal time."""
    runs: dict[str, dict[Form, list[Errors]]] = {"equal updates": {}}
    if setting.size != "quick":
        runs["the time of the Transformer"] = {}
    sizes = f"{count} lists, {tests} tests"
    for seed in setting.seeds:
        seconds = 0.0
        for form in sorted(forms, key=lambda form: form != "Transformer"):
            one = setting.cell(
                f"{form}, {updates} updates, {sizes}, seed {seed}",
                partial(_run, form, seed, count, updates, tests),
                is_timed=True,
            )
            runs["equal updates"].setdefault(form, []).append(one["errors"])
            if form == "Transformer":
                seconds = one["seconds"]
            if "the time of the Transformer" in runs:
                if form != "Transformer":
                    steps = max(1, round(updates * seconds / one["seconds"]))
                    one = setting.cell(
                        f"{form}, in the time of the Transformer's {updates} updates, {sizes}, "
                        f"seed {seed}",
                        partial(_run, form, seed, count, steps, tests),
                        is_timed=True,
                    )
                runs["the time of the Transformer"].setdefault(form, []).append(one["errors"])
    return runs


def _run(form: Form, seed: int, count: int, updates: int, tests: int) -> dict[str, Any]:
    train = draw_uneven(count, phrases=(1, *ANIMALS), seed=seed, part="train")
    test = draw_uneven(tests, phrases=ANIMALS, seed=seed, part="test")
    tiny = make_form(form, [*train, *test], seed=seed)
    started = thread_seconds()
    tiny = train_tiny(tiny, train, steps=updates, seed=seed)
    seconds = thread_seconds() - started
    written = translate_tiny(tiny, [source for source, _ in test])
    return {"errors": count_errors(written, test), "seconds": seconds, "updates": updates}


def _mean(runs: Sequence[Errors], name: str) -> float:
    return fmean(run[name] for run in runs)


def _percent(runs: Sequence[Errors], name: str) -> str:
    return write_over_seeds([100 * run[name] for run in runs], ".1f")


def _order_table(
    reading: str, found: Mapping[Form, Sequence[Errors]], forms: Sequence[Form]
) -> Table:
    names = ("right", "order", "words", "missing")
    return Table(
        f"Animals with a color, %, {reading}",
        ("", "right", "wrong order", "wrong words", "missing"),
        ("", *("" for _ in names)),
        tuple((form, *(_percent(found[form], name) for name in names)) for form in forms),
        is_of_this_machine="time" in reading,
    )


def _size_table(
    reading: str, found: Mapping[Form, Sequence[Errors]], forms: Sequence[Form]
) -> Table:
    columns = [(what, kind) for what in ("length", "wrong") for kind in KINDS]
    return Table(
        f"Lists by the size of the translation, %, {reading}",
        ("", *(
            f"{'wrong size' if what == 'length' else 'not exact'}: {kind}"
            for what, kind in columns
        )),
        ("", *("" for _ in columns)),
        tuple(
            (form, *(_percent(found[form], f"{what} {kind}") for what, kind in columns))
            for form in forms
        ),
        is_of_this_machine="time" in reading,
    )  # fmt: skip


def _plot(found: Mapping[Form, Sequence[Errors]]) -> Plot:
    def bars(names: Sequence[str]) -> tuple[Series, ...]:
        places = tuple(float(place) for place in range(len(names)))
        made = []
        for form, runs in found.items():
            heights = tuple(100 * _mean(runs, name) for name in names)
            role: Literal["accent", "plain"] = "accent" if form == "fixed vector" else "plain"
            made.append(Series(form, places, heights, role))
        return tuple(made)

    order = Panel(
        "Animals with a color", "", "%", bars(("order", "words", "missing")),
        kind="bars", names=("wrong order", "wrong words", "missing"),
    )  # fmt: skip
    size = Panel(
        "Wrong number of words", "size of the translation", "% of the lists",
        bars([f"length {kind}" for kind in KINDS]), kind="bars", names=KINDS,
    )  # fmt: skip
    return Plot((order, size))
