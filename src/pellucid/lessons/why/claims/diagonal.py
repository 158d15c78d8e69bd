"""The diagonal: whether a word attends most to itself, then to the most similar word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from statistics import fmean
from typing import Any, Literal

from pellucid.lessons.why.long.sums import series_of, write
from pellucid.lessons.why.packaged import (
    load_packaged,
    pairs_of,
    untrained_twin,
    write_examples_of,
)
from pellucid.lessons.why.result import (
    NOTES,
    SLIDES,
    STUDY_NOTES,
    Cell,
    Finding,
    Measurement,
    Panel,
    Plot,
    Statement,
    Table,
    Verdict,
)
from pellucid.lessons.why.rows import OwnWeight, look_at_heads, look_at_inputs
from pellucid.lessons.why.setting import Setting
from pellucid.lessons.why.tiny.learn import make_tiny
from pellucid.lessons.why.tiny.trials import make_task, run_trial
from pellucid.lessons.why.tiny.words import START

USUALLY = 0.5

NOTES_SAY = Statement(
    NOTES, "section 3.3", "scores between the same word are usually highest in practice"
)
STUDY_SAY = Statement(
    STUDY_NOTES, "", "it is weighted much more heavily because it's so much more similar to itself"
)
SIMILAR_SAYS = Statement(
    SLIDES, "", "self-attention computes the similarity between a word and all others"
)

Heads = list[OwnWeight]
Sentences = list[tuple[list[int], list[int]]]


def measure(setting: Setting) -> Measurement:
    """Look at the rows of all heads, trained and not, and at attention without projections."""
    count = setting.choose(300, 11)
    parts = setting.choose(("encoder",), ("encoder",), ("encoder", "decoder"))
    trained = {part: _packaged(part, count, setting, is_trained=True) for part in parts}
    untrained = {part: _packaged(part, count, setting, is_trained=False) for part in parts}
    plain = [
        _from_records(setting.cell(f"without projections, {count} sentences, seed {seed}",
                                   partial(_look_plain, count, seed)))[0]
        for seed in setting.seeds
    ]  # fmt: skip
    tiny = [] if setting.size != "full" else [_tiny(seed, setting) for seed in setting.seeds]
    heads, bare = _average(trained["encoder"]), _average([[one] for one in plain])[0]
    raw = _average(untrained["encoder"])
    others = _average(trained["decoder"]) if "decoder" in trained else []
    best = max(heads, key=lambda one: one.highest)
    return Measurement(
        claim="diagonal",
        question="Does a word attend most to itself?",
        number=f"In the packaged model {_mean(heads):.0%} of all words attend most to themselves, "
        f"averaged over the heads of the encoder; {best.highest:.0%} in {best.place}. By chance it "
        f"would be {bare.chance:.0%}.",
        method=f"Self-attention in {count} new sentences{_of_seeds(setting)}: the share of tokens, "
        "</s> included, whose own weight is the largest of their row. Ranks: Spearman's "
        "correlation of the weights on the other words with the cosines of the embeddings; first: "
        "the share of words that give the most similar other word the most. The untrained model "
        "has the same shape and random weights. Without projections, queries and keys are the "
        "embeddings with positions themselves."
        + (" Tiny models learn pronouns, with one text and first weights a seed." if tiny else ""),
        findings=(
            Finding(NOTES_SAY, judge(heads, bare, others)),
            Finding(STUDY_SAY, judge(heads, bare, others)),
            Finding(SIMILAR_SAYS, judge_similar(heads, bare)),
        ),
        tables=(
            *(_table(part, trained[part], untrained[part], plain) for part in parts),
            *((_tiny_table(tiny),) if tiny else ()),
        ),
        plot=_plot(trained["encoder"], untrained["encoder"], plain),
        notes=(
            f"The untrained model has {_mean(raw):.0%}: nothing in attention favors the word "
            "itself, because queries and keys are projected by different matrices. Without "
            "projections a score is x·x, which is hard to beat.",
            "The residual connection carries the word itself past attention, so that a head is "
            "free to look elsewhere.",
        ),
        to_try=("pellucid attend lets-go", 'pellucid look demo "The pizza is good." --kind self'),
        seed=setting.seed,
        size=setting.size,
    )  # fmt: skip


def _of_seeds(setting: Setting) -> str:
    return f" for each of {len(setting.seeds)} seeds" if len(setting.seeds) > 1 else ""


def judge(
    trained: Sequence[OwnWeight], plain: OwnWeight, decoder: Sequence[OwnWeight] = ()
) -> Verdict:
    """Judge by the share of words with the highest weight on themselves.

    Args:
        trained: the heads of the trained encoder.
        plain: attention without projections.
        decoder: the heads of the trained decoder, whose words see only those before them, if they
            were measured.
    """
    mean = _mean(trained)
    usual = [one for one in trained if one.highest > USUALLY]
    rule = (
        f"usually means more than {USUALLY:.0%} of the words; holds if the average over all heads "
        "is above that, fails if no head is, nor attention without projections"
    )
    in_decoder = [one.place for one in decoder if one.highest > USUALLY]
    numbers = (
        f"average {mean:.0%}, {len(usual)} of {len(trained)} heads above {USUALLY:.0%}, without "
        f"projections {plain.highest:.0%}, chance {plain.chance:.0%}"
    )
    if decoder:
        numbers += (
            f"; decoder: average {_mean(decoder):.0%}, {len(in_decoder)} of {len(decoder)} heads "
            f"above {USUALLY:.0%}, chance {decoder[0].chance:.0%}"
        )
    if mean > USUALLY:
        return Verdict("holds", "", rule, numbers)
    if usual:
        names = ", ".join(one.place for one in usual)
        return Verdict("holds only if", f"it is about {names}", rule, numbers)
    if plain.highest > USUALLY:
        condition = "queries and keys are the embeddings themselves, without projections"
        if in_decoder:
            condition += f", or it is about {', '.join(in_decoder)} of the decoder"
        return Verdict("holds only if", condition, rule, numbers)
    return Verdict("fails", "", rule, numbers)


def judge_similar(trained: Sequence[OwnWeight], plain: OwnWeight) -> Verdict:
    """Judge by the rank correlation of weights on other words with the embeddings' cosines.

    Args:
        trained: the heads of the trained encoder.
        plain: attention without projections.
    """
    mean = fmean(one.ranks for one in trained)
    usual = [one for one in trained if one.ranks > USUALLY]
    rule = (
        f"holds if the rank correlation, averaged over all heads, is above {USUALLY}; fails if "
        "that of no head is, nor that of attention without projections"
    )
    numbers = (
        f"average {mean:.2f}, from {min(one.ranks for one in trained):.2f} to "
        f"{max(one.ranks for one in trained):.2f}; without projections {plain.ranks:.2f}; most "
        f"weight to the most similar: {fmean(one.first for one in trained):.0%}, chance "
        f"{plain.chance_first:.0%}"
    ).replace("-", "−")
    if mean > USUALLY:
        return Verdict("holds", "", rule, numbers)
    if usual:
        names = ", ".join(one.place for one in usual)
        return Verdict("holds only if", f"it is about {names}", rule, numbers)
    if plain.ranks > USUALLY:
        condition = "queries and keys are the embeddings themselves, without projections"
        return Verdict("holds only if", condition, rule, numbers)
    return Verdict("fails", "", rule, numbers)


def _mean(heads: Sequence[OwnWeight]) -> float:
    return fmean(one.highest for one in heads)


def _average(runs: Sequence[Sequence[OwnWeight]]) -> Heads:
    """Average each head over the seeds."""
    columns = ("highest", "own", "ranks", "first", "chance", "chance_first")
    return [
        OwnWeight(
            here[0].place, *(fmean(getattr(one, column) for one in here) for column in columns)
        )
        for here in zip(*runs, strict=True)
    ]


def _packaged(part: str, count: int, setting: Setting, *, is_trained: bool) -> list[Heads]:
    name = "packaged model" if is_trained else "untrained model"
    return [
        _from_records(
            setting.cell(
                f"{name}, {part}, {count} sentences, seed {seed}",
                partial(_look_packaged, part, count, seed, is_trained),
            )
        )
        for seed in setting.seeds
    ]


def _from_records(records: list[dict[str, Any]]) -> Heads:
    return [OwnWeight(**record) for record in records]


def _sentences(count: int, seed: int) -> Sentences:
    pairs = pairs_of(load_packaged(), write_examples_of(count, seed=seed))
    return [(list(pair.source_ids), list(pair.read_ids)) for pair in pairs]


def _look_packaged(part: str, count: int, seed: int, is_trained: bool) -> list[dict[str, Any]]:
    bundle = load_packaged()
    model = bundle.model if is_trained else untrained_twin(bundle, seed=seed)
    return [asdict(one) for one in look_at_heads(model, _sentences(count, seed), part)]


def _look_plain(count: int, seed: int) -> list[dict[str, Any]]:
    return [asdict(look_at_inputs(load_packaged().model, _sentences(count, seed)))]


def _tiny(seed: int, setting: Setting) -> dict[str, list[dict[str, Any]]]:
    """Look at a tiny model before and after it has learned pronouns."""
    task = make_task("pronouns", setting, seed=seed)

    def look() -> dict[str, list[dict[str, Any]]]:
        _, tiny = run_trial(task, seed=seed)
        config = tiny.model.config
        raw = make_tiny([*task.train, *task.tests], seed=seed, num_heads=config.num_heads,
                        d_model=config.d_model, d_ff=config.d_ff,
                        num_encoder_layers=config.num_encoder_layers)  # fmt: skip
        sentences = [
            (tiny.source.encode(source), [START, *tiny.target.encode(target)[:-1]])
            for source, target in task.tests
        ]
        return {
            name: [asdict(one) for one in look_at_heads(model, sentences)]
            for name, model in (("trained", tiny.model), ("untrained", raw.model))
        }

    found = setting.cell(f"tiny model, pronouns, {task.steps} updates, seed {seed}", look)
    return dict(found)


def _table(
    part: str, trained: Sequence[Heads], untrained: Sequence[Heads], plain: Sequence[OwnWeight]
) -> Table:
    def cells(runs: Sequence[OwnWeight]) -> list[str]:
        return [
            write([getattr(run, column) for run in runs], scale=scale).replace("-", "−")
            for column, scale in (("highest", 100), ("own", 1), ("ranks", 1), ("first", 100))
        ]

    rows: list[tuple[Cell, ...]] = []
    for here, others in zip(zip(*trained, strict=True), zip(*untrained, strict=True), strict=True):
        raw = cells(others)
        rows.append((here[0].place, *cells(here), raw[0], raw[2]))
    if part == "encoder":
        rows.append(("without projections", *cells(plain), None, None))
    chance, first = trained[0][0].chance, trained[0][0].chance_first
    rows.append(("chance", f"{100 * chance:.3g}", f"{chance:.3g}", "0", f"{100 * first:.3g}",
                 f"{100 * chance:.3g}", "0"))  # fmt: skip
    return Table(
        f"Words of the {part} that attend most to themselves, and similarity of the others",
        ("", "highest, %", "weight", "ranks", "first, %", "untrained, %", "ranks"),
        ("", "", "", "", "", "", ""),
        tuple(rows),
    )


def _tiny_table(tiny: Sequence[dict[str, list[dict[str, Any]]]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for place in range(len(tiny[0]["trained"])):
        cells: list[str] = []
        for name in ("trained", "untrained"):
            here = [_from_records(run[name])[place] for run in tiny]
            cells.append(write([100 * one.highest for one in here]))
            cells.append(write([one.ranks for one in here]).replace("-", "−"))
        rows.append((tiny[0]["trained"][place]["place"], *cells))
    return Table(
        "Tiny models that learned pronouns: words that attend most to themselves",
        ("", "highest, %", "ranks", "untrained, %", "ranks"),
        ("", "", "", "", ""),
        tuple(rows),
    )


def _plot(trained: Sequence[Heads], untrained: Sequence[Heads], plain: Sequence[OwnWeight]) -> Plot:
    heads = [one.place.replace("layer ", "").replace(" head ", ".") for one in trained[0]]
    count = len(heads)
    nothing = [float("nan")]
    roles: tuple[Literal["accent", "plain"], ...] = ("accent", "plain", "plain")

    def panel(title: str, label: str, column: str, scale: float) -> Panel:
        def over(runs: Sequence[Heads]) -> list[list[float]]:
            return [[getattr(run[n], column) for run in runs] for n in range(count)]

        rows = (
            ("packaged model", [*over(trained), nothing]),
            ("untrained", [*over(untrained), nothing]),
            ("without projections",
             [*[nothing] * count, [getattr(one, column) for one in plain]]),
        )  # fmt: skip
        lines = [
            series_of(name, range(count + 1), values, role, scale=scale)
            for (name, values), role in zip(rows, roles, strict=True)
        ]
        if column == "highest":
            chance = [[run[0].chance for run in trained]] * (count + 1)
            lines.append(series_of("chance", range(count + 1), chance, "faint", scale=scale))
        return Panel(
            title, "encoder layer.head, and embeddings without projections", label, tuple(lines),
            kind="bars", names=(*heads, "x·x"), y_range=(0, 100) if scale == 100 else None,
        )  # fmt: skip

    return Plot(
        (
            panel("Words that attend most to themselves", "% of words", "highest", 100),
            panel("Weights ranked as similarities", "rank correlation", "ranks", 1),
        )
    )
