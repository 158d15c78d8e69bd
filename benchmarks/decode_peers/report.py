"""Tables and ratios of decoding speed."""

from __future__ import annotations

import statistics
from typing import Any

NAMES = {"pellucid": "pellucid", "hugging_face": "Hugging Face", "ctranslate2": "CTranslate2"}
RIVALS = {
    "Hugging Face's best": ("hugging_face float32", "hugging_face bfloat16"),
    "CTranslate2 float32": ("ctranslate2 float32",),
    "CTranslate2 int8": ("ctranslate2 int8",),
}
BARS = {
    ("small", "large"): {
        "Hugging Face's best": 3.0,
        "CTranslate2 float32": 1.0,
        "CTranslate2 int8": 0.7,
    },
    ("base", "large"): {
        "Hugging Face's best": 1.3,
        "CTranslate2 float32": 1.0,
        "CTranslate2 int8": 1.0,
    },
    ("base", "single"): {"CTranslate2 float32": 1.0},
    ("trained", "large"): {"CTranslate2 float32": 1.0},
}
"""Ratios to reach. Small models at batch 1 have no bar."""

LOSS_ALLOWED = 0.2
"""The BLEU that a precision may lose to count as ours."""

Measured = dict[str, dict[str, Any]]


def ratios(subject: str, setting: str, measured: Measured) -> dict[str, Any]:
    """Compare our best precision with each rival: the median over the rounds, and the bar."""
    ours = _best(measured, [name for name in measured if _counts(name, measured)])
    if ours is None:
        return {}
    bars = BARS.get((subject, setting.partition("-")[0]), {})
    found = {}
    for title, names in RIVALS.items():
        theirs = _best(measured, [name for name in names if name in measured])
        if theirs is not None:
            found[title] = {
                "ours": ours,
                "theirs": theirs,
                "ratio": _median_ratio(measured[ours], measured[theirs]),
                "bar": bars.get(title),
            }
    return found


def print_subject(name: str, result: dict[str, Any], precisions: list[str]) -> None:
    """Print what was measured with one model."""
    settings = result["settings"]
    print(f"\n{name}: {result['title']}")
    print("target tokens/s (batch), peak MB, BLEU, sentences with the same tokens (float32)")
    print(" " * 22 + "".join(f"{_title(key, one):<36}" for key, one in settings.items()))
    systems = dict.fromkeys(key for one in settings.values() for key in one["systems"])
    for system in systems:
        is_exact = system.endswith("float32")
        cells = [_cell(one["systems"][system], is_exact=is_exact) for one in settings.values()]
        print(f"{_spell(system):<22}" + "".join(f"{cell:<36}" for cell in cells))
    if "bfloat16" not in precisions:
        print("bfloat16              not measured here (no AVX512_BF16 or AMX, or not asked for)")
    for title in dict.fromkeys(key for one in settings.values() for key in one["ratios"]):
        cells = [_ratio(one["ratios"].get(title)) for one in settings.values()]
        print(f"/ {title:<20}" + "".join(f"{cell:<36}" for cell in cells))


def _counts(name: str, measured: Measured) -> bool:
    """Tell whether a precision of ours loses no more BLEU than allowed, if BLEU was measured."""
    bleu = measured[name]["bleu"]
    full = measured.get("pellucid float32", measured[name])["bleu"]
    is_ours = name.startswith("pellucid ")
    return is_ours and (bleu is None or full is None or full - bleu <= LOSS_ALLOWED)


def _best(measured: Measured, names: list[str]) -> str | None:
    return max(names, key=lambda name: measured[name]["tokens_per_second"], default=None)


def _median_ratio(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """Return the median ratio of tokens per second, round by round."""
    tokens = ours["target_tokens"] / theirs["target_tokens"]
    rounds = zip(ours["seconds"]["all"], theirs["seconds"]["all"], strict=True)
    return statistics.median(tokens * them / us for us, them in rounds)


def _title(name: str, setting: dict[str, Any]) -> str:
    batch = "batch 1" if name.startswith("single") else "large batches"
    search = "greedy" if setting["beam"] == 1 else f"beam {setting['beam']}"
    return f"{batch}, {search} ({setting['sentences']})"


def _spell(system: str) -> str:
    name, precision = system.split()
    return f"{NAMES[name]} {precision}"


def _cell(one: dict[str, Any], *, is_exact: bool) -> str:
    bleu = "" if one["bleu"] is None else f" {one['bleu']:.2f}"
    same = one["same_tokens_as_pellucid_float32"] if is_exact else None
    share = "" if same is None else f" {same:.1%}"
    speed = f"{one['tokens_per_second']:,.0f} ({one['variant']['batch']})"
    return f"{speed:<13}{one['peak_megabytes']:>5,.0f} MB{bleu}{share}"


def _ratio(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    bar = "" if found["bar"] is None else f", to reach {found['bar']}"
    ours = found["ours"].removeprefix("pellucid ")
    return f"{found['ratio']:.2f} ({ours}{bar})"
