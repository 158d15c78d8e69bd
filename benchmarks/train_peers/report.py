"""Tables and ratios of training speed."""

from __future__ import annotations

import statistics
from typing import Any

NAMES = {
    "pellucid": "pellucid",
    "marian": "Marian",
    "hugging_face": "Hugging Face",
    "torch_nn": "torch.nn",
    "joeynmt": "JoeyNMT",
}
BARS = {
    "tiny": {"the faster float32 of Marian and Hugging Face": 5.0, "the fastest of all": 3.5},
    "base": {"the faster float32 of Marian and Hugging Face": 3.0, "the fastest of all": 1.3},
}
"""Ratios to reach on a CPU that multiplies bfloat16."""

PEAKS = {"H200": 989, "H100": 989, "A100": 312, "L40S": 362, "L4": 121, "RTX 4090": 165}
"""Dense bfloat16 TFLOP/s of graphics processors, as their makers state them."""

Measured = dict[str, dict[str, Any]]


def ratios(measured: Measured) -> dict[str, dict[str, Any]]:
    """Compare each of our precisions with each peer: the median over the rounds."""
    ours = [name for name in measured if name.startswith("pellucid ")]
    found = {}
    for title, names in _rivals(measured).items():
        theirs = _fastest(measured, names)
        found[title] = {
            "theirs": theirs,
            "ratios": {name: _median_ratio(measured[name], measured[theirs]) for name in ours},
        }
    return found


def _rivals(measured: Measured) -> dict[str, list[str]]:
    """List the peers of each comparison; of several the fastest counts."""
    theirs = [name for name in measured if not name.startswith("pellucid ")]
    found = {}
    for system in dict.fromkeys(name.split()[0] for name in theirs):
        same = [name for name in theirs if name.split()[0] == system]
        if f"{system} float32" in same:
            found[f"{NAMES[system]}, float32"] = [f"{system} float32"]
        if len(same) > 1:
            found[f"{NAMES[system]}, fastest"] = same
    if both := [name for name in ("marian float32", "hugging_face float32") if name in theirs]:
        found["the faster float32 of Marian and Hugging Face"] = both
    if theirs:
        found["the fastest of all"] = theirs
    return found


def print_size(size: str, result: dict[str, Any]) -> None:
    """Print what was measured with models of one size."""
    measured, rates = result["systems"], result["operations_per_second"]
    print(f"\n{size}: {result['title']}")
    print(
        f"{result['operations_per_target_token'] / 1e6:,.1f} million operations in products for a "
        "target subword; matrix products here: "
        + ", ".join(f"{name} {rate / 1e9:,.0f} GFLOP/s" for name, rate in rates.items())
    )
    share = "of the peak" if "share_of_peak" in next(iter(measured.values())) else "of products"
    print(f"{'':<24}{'subwords/s':>11}{share:>13}{'peak MB':>9}{'a step':>8}{'weights':>12}")
    for name, one in measured.items():
        used = one.get("share_of_peak", one["share_of_matrix_rate"])
        weights = f"{one['parameters']:,}" if one["parameters"] else ""
        variant = " ".join(f"{key} {value}" for key, value in one["variant"].items())
        print(
            f"{_spell(name):<24}{one['subwords_per_second']:>11,.0f}{used:>13.1%}"
            f"{one['peak_megabytes']:>9,.0f}{one['subwords_per_step']:>8,.0f}{weights:>12}  "
            f"{variant}"
        )
    ours = [name for name in measured if name.startswith("pellucid ")]
    print(f"\n{'faster than':<48}" + "".join(f"{_spell(name):>20}" for name in ours))
    for title, found in result["ratios"].items():
        cells = "".join(f"{found['ratios'][name]:>20.2f}" for name in ours)
        bar = BARS.get(size, {}).get(title)
        print(f"{title:<48}{cells}" + ("" if bar is None else f"  to reach {bar}"))


def print_losses(losses: dict[str, Any]) -> None:
    """Print how our two precisions learn."""
    print(f"\nloss of the last {losses['last']} of {losses['steps']} steps, tiny")
    for seed, found in losses["seeds"].items():
        print(f"seed {seed}: " + ", ".join(f"{name} {loss:.4f}" for name, loss in found.items()))
    print(
        f"bfloat16 − float32: mean {losses['mean_difference']:+.4f}; "
        f"spread of float32 over the seeds {losses['spread']:.4f}"
    )


def compare_losses(seeds: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the mean difference, and by how much seeds differ in float32."""
    differences = [found["bfloat16"] - found["float32"] for found in seeds.values()]
    full = [found["float32"] for found in seeds.values()]
    return {
        "mean_difference": statistics.mean(differences),
        "spread": statistics.stdev(full) if len(full) > 1 else 0.0,
    }


def _fastest(measured: Measured, names: list[str]) -> str:
    return max(names, key=lambda name: measured[name]["subwords_per_second"])


def _median_ratio(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    rounds = zip(ours["rounds"], theirs["rounds"], strict=True)
    return statistics.median(us / them for us, them in rounds)


def _spell(system: str) -> str:
    name, precision = system.split()
    return f"{NAMES[name]} {precision}"
