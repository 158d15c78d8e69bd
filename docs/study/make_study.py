"""Draw the figures of the study, and write its tables, from one file of results.

    python docs/study/make_study.py [--results FILE] [--out DIR] [--facts]

`benchmarks/gender_of_it.py --summary FILE` makes the results. Equal results give equal files:
nothing in them depends on the day.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "benchmarks" / "results" / "2026-11-29-gender-of-it.json"
PACKAGED = "demo"
LONGER = ("sinusoidal longer", "relative longer")
SIX = ("sinusoidal", "rotary", "ALiBi", "relative", "pre-norm", "RMS norm")
ALL = (PACKAGED, *SIX, *LONGER)
COLORS = dict(zip(ALL, ("#1a1a1a", *(f"C{index}" for index in range(6)), "C7", "C6"), strict=True))
ROLES = ("rest", "antecedent", "rival", "pronoun", "predicate", "end")
LAYERED = ("pronoun > antecedent", "predicate > nouns")
WEIGHED = {"encoder": "antecedent", "cross": "predicate"}
"""Whose weight is shown: the pronoun's on its antecedent, the predicting row's on the predicate."""
T_VALUES = {3: 4.303, 4: 3.182, 5: 2.776, 30: 2.045}
"""0.975 quantiles of Student's t for so many values, which have one degree of freedom less."""
STYLE: dict[str, Any] = {
    "font.size": 8,
    # Every text of a picture repeats the list.
    "font.sans-serif": ["DejaVu Sans"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "pellucid",
}

Model = dict[str, Any]
Results = dict[str, list[Model]]


def main() -> None:
    """Draw every figure and renew the tables of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--facts", action="store_true", help="print what the text quotes")
    given = parser.parse_args()
    found = read_results(given.results)
    if given.facts:
        print("\n".join(facts_of(found)))
        return
    draw_all(found, given.out)
    page = given.out / "README.md"
    if page.is_file():
        page.write_text(renew_tables(page.read_text("utf-8"), found), "utf-8")


def read_results(path: Path) -> Results:
    """Read the models of each variant."""
    models = json.loads(path.read_text("utf-8"))["models"]
    return {name: [one for one in models if one["variant"] == name] for name in ALL}


def draw_all(found: Results, out: Path) -> None:
    """Draw every figure into a folder."""
    with mpl.rc_context(STYLE):
        for draw in FIGURES:
            name = draw.__name__.removeprefix("draw_")
            metadata = {"Title": draw.__doc__, "Date": None, "Creator": None}
            draw(found).savefig(out / f"{name}.svg", metadata=metadata, bbox_inches="tight")


def effect(model: Model, name: str) -> float:
    """Return the share of right answers that an intervention turned into wrong ones."""
    _, turned = model["effects"][name]
    return float(turned)


def mean_of(models: Sequence[Model], read: Callable[[Model], float]) -> tuple[float, float]:
    """Compute a mean over seeds, and half of its 95 % t-interval; 0 for fewer than three."""
    values = [read(model) for model in models]
    if len(values) < 3:
        return float(np.mean(values)), 0.0
    return float(np.mean(values)), T_VALUES[len(values)] * float(
        np.std(values, ddof=1)
    ) / math.sqrt(len(values))


def draw_groups(
    axes: Any, found: Results, groups: Sequence[str], read: Callable[[Model, str], float]
) -> None:
    """Draw a point with its interval for each group and variant, and the seeds as small dots."""
    shown = [name for name in ALL if found[name]]
    for at, name in enumerate(shown):
        places = np.arange(len(groups)) + 0.8 * (at / (len(shown) - 1) - 0.5)
        for place, group in zip(places, groups, strict=True):
            values = [read(model, group) for model in found[name]]
            axes.scatter([place] * len(values), values, s=3, color=COLORS[name], alpha=0.4)
            middle, half = mean_of(found[name], lambda model, one=group: read(model, one))
            label = name if group == groups[0] else None
            axes.errorbar(place, middle, half, fmt="o", ms=3, lw=1, color=COLORS[name], label=label)
    axes.set_xticks(range(len(groups)), groups)
    for place in range(len(groups) - 1):
        axes.axvline(place + 0.5, color="#dddddd", lw=0.5)


def add_legend(figure: Figure, axes: Any) -> None:
    """Name the colors below the figure, where they hide no point."""
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=5, fontsize=6, frameon=False)


def draw_behavior(found: Results) -> Figure:
    """Accuracy of the pronoun in translations, and the margin between both pronouns."""
    figure = Figure(figsize=(6.5, 2.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    groups = ("one sentence", "both of a pair")
    keys = dict(zip(groups, ("translated_right", "translated_both_right"), strict=True))
    draw_groups(left, found, groups, lambda model, group: model[keys[group]])
    left.axhline(0.95, color="#999999", lw=0.7, ls=":")
    left.set_ylim(top=1.02)
    left.set_ylabel("pronoun translated right")
    draw_groups(right, found, ("margin",), lambda model, _: model["margin"][0])
    right.set_ylabel("own minus other pronoun, nats")
    add_legend(figure, left)
    return figure


def draw_flow(found: Results) -> Figure:
    """Answers turned by vectors of another sentence, after each layer and in each part."""
    shown = [name for name in ALL if found[name]]
    figure = Figure(figsize=(8.5, 6.4), layout="constrained")
    halves = figure.subfigures(2, 1)
    for half, contrast in zip(halves, ("choice", "gender"), strict=True):
        half.suptitle(f"vectors of the sentence with another {contrast}", fontsize=9)
        for cell, name in zip(half.subplots(2, 5).flat, [*ALL, None], strict=True):
            if name not in shown:
                cell.axis("off")
                continue
            values = flow_of(found[name], contrast)
            image = cell.imshow(values, vmin=0, vmax=1, cmap="cividis", aspect="auto")
            for (y, x), value in np.ndenumerate(values):
                color = "#ffffff" if value < 0.6 else "#1a1a1a"
                text = f"{100 * value:.0f}"
                cell.text(x, y, text, ha="center", va="center", fontsize=6, color=color)
            cell.set_title(name, fontsize=8)
            cell.set_xticks(range(len(ROLES)), ROLES, rotation=60, fontsize=6)
            cell.set_yticks(range(len(values)), [f"layer {at}" for at in range(len(values))])
    figure.colorbar(image, ax=halves[0].axes, label="answers turned", shrink=0.7)
    figure.colorbar(image, ax=halves[1].axes, label="answers turned", shrink=0.7)
    return figure


def flow_of(models: Sequence[Model], contrast: str) -> np.ndarray:
    """Average over seeds what patches turn: a row for each layer, a column for each part."""
    depth = sum(f"{contrast} {at} all" in models[0]["effects"] for at in range(1, 9))
    grids = [
        [[effect(model, f"{contrast} {at} {role}") for role in ROLES] for at in range(1, depth + 1)]
        for model in models
    ]
    found: np.ndarray = np.mean(grids, axis=0)
    return found


def draw_reads(found: Results) -> Figure:
    """Answers turned when the predicting row cannot read a part, or gets other keys or values."""
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    top, bottom = figure.subplots(2, 1)
    parts = ("pronoun", "predicate", "nouns", "rest", "end", "prefix-nouns", "prefix")
    draw_groups(top, found, parts, lambda model, part: effect(model, f"row reads no {part}"))
    top.set_ylim(bottom=-0.02)
    top.set_ylabel("turned without reading it")
    others = ("choice key", "choice value", "gender key", "gender value")
    draw_groups(bottom, found, others, effect)
    bottom.set_ylim(bottom=-0.02)
    bottom.set_ylabel("turned by the donor's")
    add_legend(figure, top)
    return figure


def draw_lines(found: Results) -> Figure:
    """Answers turned by cutting lines of the encoder, in all layers or in one."""
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    top, bottom = figure.subplots(2, 1)
    lines = ("pronoun > nouns", "pronoun > predicate", "predicate > nouns", "nouns > predicate")
    draw_groups(top, found, lines, lambda model, line: effect(model, f"line all {line}"))
    top.set_ylim(bottom=-0.02)
    top.set_ylabel("turned, all layers cut")
    layered = [f"{at} {line}" for line in LAYERED for at in range(3)]
    draw_groups(bottom, found, layered, line_in_layer)
    names = [one[2:].replace("> ", ">\n") + f"\nlayer {one[0]}" for one in layered]
    bottom.set_xticks(range(len(names)), names, fontsize=6)
    bottom.set_ylim(bottom=-0.02)
    bottom.set_ylabel("turned, one layer cut")
    add_legend(figure, top)
    return figure


def line_in_layer(model: Model, line: str) -> float:
    """Read what a line of one layer turns; not a number in a layer that the model lacks."""
    name = f"line {line}"
    return effect(model, name) if name in model["effects"] else math.nan


def draw_heads(found: Results) -> Figure:
    """Weights of heads against what they pass on, and the strongest heads of each model."""
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    panels = figure.subplots(1, 3, width_ratios=(1, 1, 1.3))
    for panel, (part, key) in zip(panels, WEIGHED.items(), strict=False):
        for name in ALL:
            rows = [row for model in found[name] for row in heads_of(model, part)]
            weights = [row["weights"][key] for row in rows]
            panel.scatter(weights, [row["patched"] for row in rows], s=4, color=COLORS[name])
        panel.set_xlabel(f"weight on the {key}")
        panel.set_title(f"{part} heads", fontsize=8)
    panels[0].set_ylabel("share that the head passes on")
    ranks = ("1", "2", "3")
    draw_groups(panels[2], found, ranks, lambda model, rank: strongest(model)[int(rank) - 1])
    panels[2].set_title("three strongest heads", fontsize=8)
    add_legend(figure, panels[2])
    return figure


def heads_of(model: Model, part: str) -> list[dict[str, Any]]:
    """List the heads of the encoder, or of cross-attention."""
    return [row for row in model["heads"]["rows"] if row["weights"] and part in row["head"]]


def strongest(model: Model) -> list[float]:
    """Sort the shares that single heads pass on, largest first."""
    rows = [*heads_of(model, "encoder"), *heads_of(model, "cross")]
    return sorted((row["patched"] for row in rows), reverse=True)


def draw_directions(found: Results) -> Figure:
    """Gender read from a vector by a probe, and answers turned by one direction."""
    figure = Figure(figsize=(7, 4.8), layout="constrained")
    rows = figure.subplots(3, 2, sharey=True)
    for (probed, moved), role in zip(rows, ("pronoun", "predicate", "row"), strict=True):
        for name in (one for one in ALL if found[one]):
            draw_course(probed, found[name], role, "gender", "-", COLORS[name])
            draw_course(probed, found[name], role, "control", ":", COLORS[name])
            draw_course(moved, found[name], role, "steer", "-", COLORS[name])
            draw_course(moved, found[name], role, "noise", ":", COLORS[name])
            moved.plot([], [], color=COLORS[name], label=name)
        probed.set_ylabel("predicting row" if role == "row" else role)
        for axes in (probed, moved):
            axes.set_ylim(-0.03, 1.03)
            axes.set_xticks(range(3), ["layer 0", "layer 1", "layer 2"])
            # The decoder has fewer layers than the encoder; equal numbers stand in one line.
            axes.set_xlim(-0.1, 2.1)
    rows[0][0].set_title("read by a probe (dotted: control task)", fontsize=8)
    rows[0][1].set_title("turned by the direction (dotted: random)", fontsize=8)
    add_legend(figure, rows[0][1])
    return figure


def draw_course(
    axes: Any, models: Sequence[Model], role: str, kind: str, dash: str, color: str
) -> None:
    """Draw one figure through the layers: a mean over seeds with its interval."""
    places = [name for name in models[0]["probes"] if name.endswith(role) and "input" not in name]
    middles, halves = [], []
    for place in places:
        middle, half = mean_of(models, lambda model, place=place: figure_at(model, place, kind))
        middles.append(middle)
        halves.append(half)
    axes.errorbar(range(len(places)), middles, halves, ls=dash, lw=1, marker=".", color=color)


def figure_at(model: Model, place: str, kind: str) -> float:
    """Read the accuracy of a probe, or what a direction turns."""
    if kind in {"gender", "control"}:
        return float(model["probes"][place][kind])
    return effect(model, f"{kind} {place}")


def draw_agreement(found: Results) -> Figure:
    """Models by the two words that pass on the gender, and their correlations with each other."""
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    words, pairs = figure.subplots(1, 2)
    for name in (one for one in ALL if found[one]):
        pronoun = [last_layer("gender", "pronoun")(model) for model in found[name]]
        predicate = [last_layer("gender", "predicate")(model) for model in found[name]]
        words.scatter(pronoun, predicate, s=14, color=COLORS[name], label=name)
    words.set_xlabel("gender turned by the pronoun's vector")
    words.set_ylabel("by the predicate's")
    models = [model for name in (*SIX, *LONGER) for model in found[name]]
    image = pairs.imshow(np.corrcoef([grid_of(one) for one in models]), vmin=0, cmap="cividis")
    names = [model["variant"] for model in models]
    titles = list(dict.fromkeys(names))
    pairs.set_yticks([names.index(title) for title in titles], titles)
    pairs.set_xticks([])
    figure.colorbar(image, label="correlation", shrink=0.7)
    add_legend(figure, words)
    return figure


def grid_of(model: Model) -> np.ndarray:
    """List what each patch between layers turns, over layers, parts and contrasts."""
    return np.concatenate([flow_of([model], contrast).ravel() for contrast in ("choice", "gender")])


FIGURES = (
    draw_behavior,
    draw_flow,
    draw_reads,
    draw_lines,
    draw_heads,
    draw_directions,
    draw_agreement,
)


def percent(models: Sequence[Model], read: Callable[[Model], float], *, digits: int = 1) -> str:
    """Write a mean over seeds with half of its interval, in percent."""
    middle, half = mean_of(models, read)
    interval = f" ± {100 * half:.{digits}f}" if len(models) > 2 else ""
    return f"{100 * middle:.{digits}f}{interval}"


def facts_of(found: Results) -> Iterable[str]:
    """Write what each intervention turns: mean over the six variants' models, range, demo."""
    models = [model for name in SIX for model in found[name]]
    (packaged,) = found[PACKAGED]
    for name in models[0]["effects"]:
        # Pre-norm has other names for some places.
        values = [effect(one, name) for one in models if name in one["effects"]]
        ours = f"{100 * effect(packaged, name):.1f}" if name in packaged["effects"] else "–"
        mean = percent(models, turns(name)) if len(values) == len(models) else "–"
        yield f"{name}: {mean} ({100 * min(values):.1f} to {100 * max(values):.1f}); demo {ours}"
    for role in ("pronoun", "predicate", "antecedent"):
        yield f"decided at the {role}: {percent(models, decided_at(role))}"
    for model in (model for name in LONGER for model in found[name]):
        yield f"{model['variant']} {model['seed']}, choice by number: {model['by_number']}"


def renew_tables(text: str, found: Results) -> str:
    """Replace what stands between the marks of each table."""
    for name, make in TABLES.items():
        pattern = rf"(<!-- table {name} -->\n).*?(<!-- end -->)"
        table = "\n".join(f"| {' | '.join(row)} |" for row in make(found))
        text = re.sub(pattern, rf"\g<1>{table}\n\g<2>", text, flags=re.DOTALL)
    return text


def table_of(
    found: Results, columns: dict[str, Callable[[Model], float]], *, digits: int = 0
) -> Iterable[Sequence[str]]:
    """Yield a row for each variant."""
    yield ("model", *columns)
    yield ("---", *("---:" for _ in columns))
    for name in ALL:
        if found[name]:
            title = f"`{name}`" if name == PACKAGED else name
            yield (title, *(percent(found[name], read, digits=digits) for read in columns.values()))


def turns(name: str) -> Callable[[Model], float]:
    """Make a function that reads what an intervention turns."""
    return lambda model: effect(model, name)


def last_layer(kind: str, role: str) -> Callable[[Model], float]:
    """Make a function that reads a patch after the encoder's last layer."""
    return lambda model: max(
        (int(name.split()[1]), effect(model, name))
        for name in model["effects"]
        if re.fullmatch(rf"{kind} \d {role}", name)
    )[1]


def decided_at(role: str) -> Callable[[Model], float]:
    """Make a function that reads what a part turns in the contrast in which it turns less."""
    return lambda model: min(last_layer(donor, role)(model) for donor in ("choice", "gender"))


def agreement_rows(found: Results) -> Iterable[Sequence[str]]:
    """Yield a row for each kind of pair of models, of the six variants."""
    yield ("two models", "pairs", "where answers turn", "effects of heads by number")
    yield ("---", "---:", "---:", "---:")
    models = [model for name in SIX for model in found[name]]
    kinds: dict[str, list[tuple[float, float]]] = {}
    for one, other in combinations(models, 2):
        grids = np.corrcoef(grid_of(one), grid_of(other))[0, 1]
        cuts = [[row["cut"] for row in model["heads"]["rows"]] for model in (one, other)]
        ranks = [np.argsort(np.argsort(values)) for values in cuts]
        variant = "same variant" if one["variant"] == other["variant"] else "other variant"
        seed = "same seed" if one["seed"] == other["seed"] else "other seed"
        both = float(grids), float(np.corrcoef(ranks)[0, 1])
        kinds.setdefault(f"{variant}, {seed}", []).append(both)
    for kind, values in sorted(kinds.items(), reverse=True):
        means = np.mean(values, axis=0)
        yield (kind, str(len(values)), *(f"{mean:.2f}" for mean in means))


def longer_rows(found: Results) -> Iterable[Sequence[str]]:
    """Yield a row for each longer training: what is decided where in it and in the short one."""
    roles = ("pronoun", "predicate", "rest")
    headings = [f"{role}, {length}" for length in ("short", "longer") for role in roles]
    yield ("model", "seed", *headings)
    yield ("---", "---:", *("---:" for _ in headings))
    for name in LONGER:
        for model in found[name]:
            base = name.removesuffix(" longer")
            (short,) = (one for one in found[base] if one["seed"] == model["seed"])
            shares = [decided_at(role)(one) for one in (short, model) for role in roles]
            yield (base, str(model["seed"]), *(f"{100 * share:.0f}" for share in shares))


TABLES: dict[str, Callable[[Results], Iterable[Sequence[str]]]] = {
    "behavior": lambda found: table_of(
        found,
        {
            "pronoun right": lambda model: model["translated_right"],
            "both of a pair": lambda model: model["translated_both_right"],
        },
        digits=1,
    ),
    "decided": lambda found: table_of(
        found,
        {
            "at the pronoun": decided_at("pronoun"),
            "at the predicate": decided_at("predicate"),
            "at the antecedent": decided_at("antecedent"),
            "choice, at the predicate": last_layer("choice", "predicate"),
            "gender, at the antecedent": last_layer("gender", "antecedent"),
            "gender, everywhere": last_layer("gender", "all"),
        },
    ),
    "reads": lambda found: table_of(
        found,
        {
            "pronoun": turns("row reads no pronoun"),
            "predicate": turns("row reads no predicate"),
            "nouns": turns("row reads no nouns"),
            "nouns in French": turns("row reads no prefix-nouns"),
            "both": turns("row reads no nouns prefix-nouns"),
            "all French words": turns("row reads no prefix"),
        },
    ),
    "longer": longer_rows,
    "agreement": agreement_rows,
}


if __name__ == "__main__":
    main()
