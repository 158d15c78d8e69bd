"""Order and size: words that change places, and translations of another length than the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pellucid.lessons.why.cells import (
    Cells,
    Column,
    decide,
    join_rows,
    judge_seeds,
    measure_cells,
    say_seeds,
)
from pellucid.lessons.why.clock import thread_seconds
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import FORMS, Form, Pair, make_form, train_tiny, translate_tiny
from pellucid.lessons.why.tiny.tiny_language import Kind, draw_uneven, kind_of, order_of

OFTEN = 0.05
KINDS: tuple[Kind, ...] = get_args(Kind)
ANIMALS = (2, 3, 4)
UPDATES = "equal updates"
TIME = "the time of the Transformer"


def measure(setting: MeasurementSetting) -> Found:
    """Teach lists of animals to every form, and count what is wrong in the translations."""
    forms: tuple[Form, ...] = setting.choose(
        ("fixed vector", "additive", "Transformer"), ("fixed vector", "Transformer"), tuple(FORMS)
    )
    count, updates, tests = setting.choose((6000, 350, 300), (60, 4, 20), (6000, 400, 500))
    runs = {
        UPDATES: measure_cells(
            setting,
            f"{{form}}, {updates} updates, {count} lists, {tests} tests",
            lambda form, seed: _run(form, seed, count, updates, tests),
            read=lambda found: found["errors"] | {"seconds": found["seconds"]},
            is_timed=True,
            form=forms,
        )
    }
    if setting.size != "quick":
        runs[TIME] = _run_in_time(setting, runs[UPDATES], count, updates, tests)
    equal = runs[UPDATES]
    example = draw_uneven(1, phrases=(2,), seed=setting.seed, part="train")[0]
    vector = equal.where(form="fixed vector")
    transformer = equal.where(form="Transformer")
    return Found(
        f"networks translate lists such as “{example[0]}” into French, where a color stands after "
        "its animal. Each animal that has a color is checked. A recurrent network "
        f"with one vector writes {vector.mean('order'):.0%} of them with the right words in a "
        f"wrong order. But it writes {vector.mean('words'):.0%} with wrong words. A Transformer "
        f"writes {transformer.mean('words'):.0%} with wrong words. And the number of words? Some "
        "lists need as many words in French as in English, others more or fewer. Of the first "
        "kind, the recurrent network with one vector gets the number wrong in "
        f"{vector.mean('length equal'):.0%}. Of the second kind, it gets the number wrong in "
        f"{_uneven(vector):.0%}",
        f"Models of equal size, d = 64, learn lists of 1 to 4 animals in {updates} updates "
        f"of 64 lists, such as “{example[0]}”, “{example[1]}”. Colors change places, and animals "
        "have names of one to five words, so that a translation may be shorter or longer than its "
        f"source. {tests} new lists of {ANIMALS[0]} to {ANIMALS[-1]} animals are translated. Each "
        "animal with a color is compared with the one in its place: right, in a wrong order (the "
        "same words, or any with a color that is not last), other words, or nothing.",
        {"order": judge_seeds(judge_word_order, equal), "size": judge_seeds(judge_size, equal)},
        tuple(_tables(runs)),
        (
            _panel(
                equal,
                "Animals with a color",
                ("", "%"),
                {one.name: one.head for one in _WRONG},
            ),
            _panel(
                equal,
                "Wrong number of words",
                ("size of the translation", "% of the lists"),
                {f"length {kind}": kind for kind in KINDS},
            ),
        ),
    )


def _percent(head: str, name: str) -> Column:
    return Column(head, name, ".1f", 100, over_seeds=".1f")


_WRONG = [
    _percent("wrong order", "order"),
    _percent("wrong words", "words"),
    _percent("missing", "missing"),
]
_SIZES = [
    _percent(f"{said}: {kind}", f"{what} {kind}")
    for said, what in (("wrong size", "length"), ("not exact", "wrong"))
    for kind in KINDS
]


def _tables(runs: Mapping[str, Cells]) -> Iterator[ResultTable]:
    groups = {
        "Animals with a color": [_percent("right", "right"), *_WRONG],
        "Lists by the size of the translation": _SIZES,
    }
    for reading, cells in runs.items():
        for title, columns in groups.items():
            is_timed = reading == TIME
            title = f"{title}, %, {reading}"
            yield cells.table(title, "form", columns, is_of_this_machine=is_timed)


def _panel(cells: Cells, title: str, labels: tuple[str, str], names: Mapping[str, str]) -> Panel:
    """Draw several numbers of each form; ``names`` says how each is called."""
    return cells.add(all=lambda row: [row[name] for name in names]).panel(
        title,
        labels,
        cells.each("form"),
        range(len(names)),
        "all",
        scale=100,
        kind="bars",
        names=tuple(names.values()),
    )


def judge_word_order(cells: Cells) -> Verdict:
    """Judge by the animals whose words stand in a wrong order."""
    forms = cells.values("form")
    shares = {form: cells.mean("order", form=form) for form in forms}
    lost = {
        form: cells.mean("words", form=form) + cells.mean("missing", form=form) for form in forms
    }
    # Without any of them only the fixed vector decides.
    attending = [shares[form] for form in forms if form in ("additive", "dot product")]
    return decide(
        f"holds if recurrent models with and without attention put the words of at least "
        f"{OFTEN:.0%} of the animals with a color in a wrong order, only for a fixed vector if "
        "that one does; fails if it is rarer, or less than twice as frequent as in the Transformer",
        "wrong order: "
        + ", ".join(f"{form} {shares[form]:.1%}" for form in forms)
        + "; wrong or missing words: "
        + ", ".join(f"{form} {lost[form]:.0%}" for form in forms),
        f"A recurrent network with one vector writes {shares['fixed vector']:.0%} of the animals "
        f"in a wrong order. To hold, it must be {OFTEN:.0%} or more, and twice as many as in a "
        f"Transformer, where it is {shares['Transformer']:.0%}.",
        # If the Transformer errs as often, it is not recurrence that does it.
        fails=shares["fixed vector"] < max(OFTEN, 2 * shares["Transformer"]),
        unless={"one vector is all that the decoder gets": min(attending, default=1.0) < OFTEN},
    )


def judge_size(cells: Cells) -> Verdict:
    """Judge by the translations with a wrong number of words, for equal sizes and for others."""
    forms = cells.values("form")
    even = {form: cells.mean("length equal", form=form) for form in forms}
    uneven = {form: _uneven(cells.where(form=form)) for form in forms}
    more = {form: uneven[form] - even[form] for form in forms}
    is_size = more["fixed vector"] >= OFTEN
    each = [
        100 * (_uneven(one) - one.mean("length equal"))
        for seed in cells.values("seed")
        for one in (cells.where(form="fixed vector", seed=seed),)
    ]
    return decide(
        f"holds if a recurrent model with one vector writes the wrong number of words at least "
        f"{OFTEN:.0%} more often if source and translation have different sizes than if they have "
        f"the same, only for one vector if attention errs in less than {OFTEN:.0%}; fails "
        "otherwise, or if the Transformer errs in the same way",
        "wrong number of words, other size and same size: "
        + ", ".join(f"{form} {uneven[form]:.0%} and {even[form]:.0%}" for form in forms),
        "Lists that need as many words in French as in English were compared with lists that need "
        "more or fewer. In the second kind, the recurrent network with one vector gets the number "
        f"of words wrong more often, by {say_seeds(each, '.1f')} percentage points, seed by seed. "
        f"To hold, it must be {100 * OFTEN:.0f} points or more, and less than "
        f"{100 * OFTEN:.0f} points in a Transformer, where it is "
        f"{say_seeds([100 * more['Transformer']], '.1f')}." + _say_attending(uneven),
        fails=not is_size or more["Transformer"] >= OFTEN,
        unless={"one vector is all that the decoder gets": uneven.get("additive", 1.0) < OFTEN},
    )


def _say_attending(uneven: Mapping[str, float]) -> str:
    """Say how often a recurrent network with attention gets the number wrong, if there is one."""
    if "additive" not in uneven:
        return ""
    return (
        " Recurrent networks with attention get the number wrong in "
        f"{uneven['additive']:.0%} of the lists of the second kind. Less than {OFTEN:.0%} counts "
        "as no trouble. So the statement can at best hold for networks with one vector."
    )


def _uneven(cells: Cells) -> float:
    """Average the share of wrong lengths where source and translation differ in length."""
    # Both kinds count alike, however many lists each has.
    return (cells.mean("length shorter") + cells.mean("length longer")) / 2


def count_errors(written: Sequence[str], pairs: Sequence[Pair]) -> dict[str, float]:
    """Count what is wrong in translations.

    Args:
        written: by a model.
        pairs: the sources with the correct translations.

    Returns:
        Shares of the animals with a color: ``right``, ``order``, ``words`` and ``missing``; and of
        the lists of each kind: ``length KIND`` whose translation has a wrong number of words,
        ``wrong KIND`` that are not translated exactly.
    """
    animals: Counter[str] = Counter()
    lists: Counter[str] = Counter()
    for text, pair in zip(written, pairs, strict=True):
        # Colors change places in French, so only animals that have one can be out of order.
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


def _run_in_time(
    setting: MeasurementSetting, equal: Cells, count: int, updates: int, tests: int
) -> Cells:
    """Train the other forms in the time that the Transformer took."""

    def run(form: Form, seed: int) -> dict[str, Any]:
        (ours,) = equal.all("seconds", form=form, seed=seed)
        (theirs,) = equal.all("seconds", form="Transformer", seed=seed)
        # Processor time of a thread, which other programs hardly change.
        return _run(form, seed, count, max(1, round(updates * theirs / ours)), tests)

    forms = [form for form in equal.values("form") if form != "Transformer"]
    others = measure_cells(
        setting,
        f"{{form}}, in the time of the Transformer's {updates} updates, {count} lists, {tests} "
        "tests",
        run,
        read=lambda found: found["errors"],
        is_timed=True,
        form=forms,
    )
    # The Transformer's equal updates are its equal time.
    return join_rows((others, equal.where(form="Transformer")))


def _run(form: Form, seed: int, count: int, updates: int, tests: int) -> dict[str, Any]:
    train = draw_uneven(count, phrases=(1, *ANIMALS), seed=seed, part="train")
    test = draw_uneven(tests, phrases=ANIMALS, seed=seed, part="test")
    tiny = make_form(form, [*train, *test], seed=seed)
    started = thread_seconds()
    tiny = train_tiny(tiny, train, steps=updates, seed=seed)
    seconds = thread_seconds() - started
    written = translate_tiny(tiny, [source for source, _ in test])
    return {"errors": count_errors(written, test), "seconds": seconds, "updates": updates}
