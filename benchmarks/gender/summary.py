"""Join what was measured on all models: shares and turned answers, with intervals."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pellucid.evaluation.resampling import draw_resamples

READ = ("pronoun", "predicate", "antecedent")
DONORS = ("choice", "gender")
PERMUTATIONS = 999
STEERED = ("steer", "noise", "erase")


def summarize(cells: Mapping[tuple[str, int], Path], variants: Collection[str]) -> dict[str, Any]:
    """Join the results of cells, by variant and seed, and compare those of some variants.

    Seed 0 is the packaged model, which has no other seed to compare with: its effects get their
    intervals over pairs.
    """
    models = [
        {"variant": variant, "seed": seed, **_of_model(cell, with_intervals=seed == 0)}
        for (variant, seed), cell in cells.items()
    ]
    trained = [one for one in models if one["variant"] in variants]
    return {
        "models": models,
        "by_variant": {role: _between_variants(trained, role) for role in READ},
        "with_accuracy": {role: _with_accuracy(trained, role) for role in READ},
    }


def _of_model(cell: Path, *, with_intervals: bool) -> dict[str, Any]:
    kept = np.load(cell / "margins.npz")
    other = json.loads((cell / "measured.json").read_text("utf-8"))
    base = kept["as it is"]
    names = [name for name in kept.files if name not in {"as it is", "is_test", "has_swap"}]
    sums = {name: _sums(kept, name) for name in names}
    effects = {name: [_ratio(*one) for one in found] for name, found in sums.items()}
    intervals = {}
    if with_intervals:
        intervals = {name: [_interval(*one)[1:] for one in found] for name, found in sums.items()}
    weights = other.pop("weights")
    slopes = other.pop("slopes")
    return {
        **other,
        "probes": {
            place: {task: round(value, 3) for task, value in found.items()}
            for place, found in other["probes"].items()
        },
        "num_pairs": len(base),
        "by_number": _by_number(kept, cell, other["sites"]),
        "right": _interval((base > 0).astype(float), np.ones(len(base))),
        "margin": _interval(base, np.ones(len(base))),
        "effects": effects,
        "intervals": intervals,
        "heads": _heads(other["sites"], other["num_heads"], effects, slopes, weights),
    }


def _by_number(
    kept: Mapping[str, np.ndarray], cell: Path, sites: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Compute what two words turn in the contrast of choice, for *it* and for *they*."""
    pairs = json.loads((cell.parent / "text" / "pairs.json").read_text("utf-8"))
    is_plural = np.array([" they " in pair[0]["source"] for pair in pairs])
    depth = sum(site.startswith("encoder") for site in sites)
    found: dict[str, dict[str, float]] = {}
    for name, is_chosen in (("it", ~is_plural), ("they", is_plural)):
        is_right = is_chosen[: len(kept["as it is"])] & (kept["as it is"] > 0)
        found[name] = {
            role: _ratio(is_right & (kept[f"choice {depth} {role}"] < 0), is_right)
            for role in ("pronoun", "predicate")
        }
    return found


Fraction = tuple[np.ndarray, np.ndarray]
"""Numbers of pairs to sum above and below the line."""


def _sums(kept: Mapping[str, np.ndarray], name: str) -> tuple[Fraction, Fraction]:
    """Compute what an intervention does: the share it passes on, and the answers it turns.

    The share is the part of the way to the donor's margin, summed over pairs; for a change that has
    no donor, the part of the margin that is lost. Answers turned are right ones that become wrong,
    as a share of right ones.
    """
    base, after = kept["as it is"], kept[name]
    kind = name.split()[0]
    chosen = np.ones(len(base), dtype=bool)
    if kind in STEERED:
        chosen = kept["is_test"]
    elif "gender" in name.split()[:2]:
        chosen = kept["has_swap"]
    whole = base
    if kind in {"choice", "gender", "row", "patch"}:
        whole = base - kept["donor gender" if kind == "gender" else "donor choice"]
    is_right = chosen & (base > 0)
    is_turned = is_right & (after < 0)
    return ((base - after)[chosen], whole[chosen]), (is_turned[chosen], is_right[chosen])


def _interval(upper: np.ndarray, lower: np.ndarray) -> list[float]:
    """Divide two sums; add the ends of the bootstrap interval over pairs."""
    counts = _resamples(len(upper))
    drawn = (counts @ upper.astype(np.float64)) / (counts @ lower.astype(np.float64))
    ends = np.percentile(drawn, (2.5, 97.5))
    return [_ratio(upper, lower), *(round(one, 3) for one in ends.tolist())]


def _ratio(upper: np.ndarray, lower: np.ndarray) -> float:
    return round(float(upper.sum() / lower.sum()), 3)


_DRAWN: dict[int, np.ndarray] = {}


def _resamples(count: int) -> np.ndarray:
    if count not in _DRAWN:
        _DRAWN[count] = np.stack(list(draw_resamples(count, 1000, 1))).astype(np.float64)
    return _DRAWN[count]


def _heads(
    sites: Sequence[str],
    num_heads: int,
    effects: Mapping[str, Any],
    slopes: Mapping[str, float],
    weights: Mapping[str, Mapping[str, float]],
) -> dict[str, Any]:
    """List each head's figures, and how far they agree."""
    rows = []
    for site in sites:
        for head in range(num_heads):
            name = f"{site}.{head}"
            patched = effects.get(f"patch {name}")
            reader = "pronoun" if name.startswith("encoder") else "row"
            read = weights.get(f"{name} {reader}")
            rows.append(
                {
                    "head": name,
                    "cut": effects[f"cut {name}"][0],
                    "slope": round(slopes[name], 3),
                    "patched": None if patched is None else patched[0],
                    "weights": None if read is None else {key: round(read[key], 3) for key in READ},
                }
            )
    encoder = [row for row in rows if row["head"].startswith("encoder")]
    cross = [row for row in rows if ".cross." in row["head"]]
    return {
        "rows": rows,
        "slope_and_cut": rank_correlation(
            [row["slope"] for row in rows], [row["cut"] for row in rows]
        ),
        "encoder_weight_and_patch": rank_correlation(
            [row["weights"]["antecedent"] for row in encoder],
            [abs(row["patched"]) for row in encoder],
        ),
        "cross_weight_and_patch": rank_correlation(
            [max(row["weights"]["pronoun"], row["weights"]["predicate"]) for row in cross],
            [abs(row["patched"]) for row in cross],
        ),
    }


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Compute Spearman's rank correlation (no ties are expected)."""
    ranks = [np.argsort(np.argsort(values)).astype(float) for values in (a, b)]
    return round(float(np.corrcoef(*ranks)[0, 1]), 4)


def decided_at(model: Mapping[str, Any], role: str) -> float:
    """Return what a part turns after the encoder's last layer, in the contrast where it is less."""
    depth = sum(site.startswith("encoder") for site in model["sites"])
    turned = [model["effects"][f"{donor} {depth} {role}"][1] for donor in DONORS]
    return float(min(turned))


def _between_variants(models: Sequence[Mapping[str, Any]], role: str) -> dict[str, float]:
    """Compute the share of variance that lies between variants, and its permutation test."""
    values = np.array([decided_at(model, role) for model in models])
    names = [model["variant"] for model in models]
    variants = np.array([sorted(set(names)).index(name) for name in names])
    observed = _variance_between(values, variants)
    draw = np.random.default_rng(1)
    others = [_variance_between(values, draw.permutation(variants)) for _ in range(PERMUTATIONS)]
    as_large = sum(other >= observed for other in others)
    return {
        "share": round(observed, 3),
        "p": round((as_large + 1) / (PERMUTATIONS + 1), 4),
        "mean": round(float(values.mean()), 3),
        "low": round(float(values.min()), 3),
        "high": round(float(values.max()), 3),
    }


def _variance_between(values: np.ndarray, groups: np.ndarray) -> float:
    sizes = np.bincount(groups)
    means = np.bincount(groups, weights=values) / np.maximum(sizes, 1)
    between = (sizes * (means - values.mean()) ** 2).sum()
    return float(between / max(((values - values.mean()) ** 2).sum(), 1e-12))


def _with_accuracy(models: Sequence[Mapping[str, Any]], role: str) -> float:
    """Correlate, over models, how much is decided at a part with how often they are right."""
    return rank_correlation(
        [decided_at(model, role) for model in models],
        [model["translated_right"] for model in models],
    )
