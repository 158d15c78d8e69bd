"""Tables and ratios of decoding speed."""

from __future__ import annotations

import statistics
from typing import Any

from side_by_side.machine import has_vnni

NAMES = {"pellucid": "pellucid", "hugging_face": "Hugging Face", "ctranslate2": "CTranslate2"}
RIVALS = {
    "the best peer": (
        *("hugging_face float32", "hugging_face bfloat16"),
        *("ctranslate2 float32", "ctranslate2 int8"),
    ),
    "Hugging Face's best": ("hugging_face float32", "hugging_face bfloat16"),
    "CTranslate2 float32": ("ctranslate2 float32",),
    "CTranslate2 int8": ("ctranslate2 int8",),
}
BARS = {
    "single-greedy": {"demo": 4.0, "tiny": 4.0, "small": 2.0, "base": 1.2},
    "single-beam": {"demo": 2.0, "tiny": 2.0, "small": 1.5, "base": 1.2},
    "large-greedy": dict.fromkeys(("demo", "tiny", "small", "base"), 1.5),
    "large-beam": dict.fromkeys(("demo", "tiny", "small", "base"), 1.3),
}
"""Ratios to reach, to the best peer."""

WITHOUT_VNNI = 1.3
"""The bar of large greedy batches on a processor that does not sum products of bytes."""

LOSS_ALLOWED = 0.2
"""The BLEU that a precision may lose to count as ours."""

Measured = dict[str, dict[str, Any]]


def ratios(
    subject: str, setting: str, measured: Measured, instructions: str | None
) -> dict[str, Any]:
    """Compare our best precision with each rival: the median over the rounds, and the bar."""
    ours = _best(measured, [name for name in measured if _counts(name, measured)])
    if ours is None:
        return {}
    bar = BARS[setting].get(subject)
    if bar is not None and setting == "large-greedy" and (instructions or not has_vnni()):
        bar = WITHOUT_VNNI
    found = {}
    for title, names in RIVALS.items():
        theirs = _best(measured, [name for name in names if name in measured])
        if theirs is not None:
            found[title] = {
                "ours": ours,
                "theirs": theirs,
                "ratio": _median_ratio(measured[ours], measured[theirs]),
                "bar": bar if title == "the best peer" else None,
            }
    return found


def print_subject(name: str, result: dict[str, Any], precisions: list[str]) -> None:
    """Print what was measured with one model."""
    print(f"\n{name}: {result['title']}")
    print(
        "target tokens/s (batch, threads), peak MB, BLEU, sentences with the same tokens (float32),"
    )
    print("shares of the machine's rates: × of products, ↔ of reading weights from memory")
    if "bfloat16" not in precisions:
        print("bfloat16 not measured here (no AVX512_BF16 or AMX, or not asked for)")
    for setting, one in result["settings"].items():
        print(f"{_title(setting, one)}")
        for system, measured in one["systems"].items():
            print(f"  {_spell(system):<22}{_cell(measured, is_exact=system.endswith('float32'))}")
        for title, found in one["ratios"].items():
            print(f"  / {title:<20}{_ratio(found)}")


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
    batch = f"{setting['at_once']} at once"
    search = "greedy" if setting["beam"] == 1 else f"beam {setting['beam']}"
    return f"{batch}, {search}, {setting['sentences']} sentences, {setting['rounds']} rounds"


def _spell(system: str) -> str:
    name, precision = system.split()
    return f"{NAMES[name]} {precision}"


def _cell(one: dict[str, Any], *, is_exact: bool) -> str:
    bleu = "" if one["bleu"] is None else f" {one['bleu']:.2f}"
    same = one["same_tokens_as_pellucid_float32"] if is_exact else None
    share = "" if same is None else f" {same:.1%}"
    variant = one["variant"]
    threads = variant.get("workers", 1) * variant.get("threads", 0) or "all"
    speed = f"{one['tokens_per_second']:,.0f} ({variant['batch']}, {threads})"
    shares = "".join(
        f" {sign} {one[key]:.0%}"
        for sign, key in (("×", "share_of_products"), ("↔", "share_of_reading"))
        if key in one
    )
    return f"{speed:<17}{one['peak_megabytes']:>5,.0f} MB{bleu}{share}{shares}"


def _ratio(found: dict[str, Any]) -> str:
    bar = "" if found["bar"] is None else f", to reach {found['bar']}"
    ours = found["ours"].removeprefix("pellucid ")
    theirs = found["theirs"].split()[1]
    return f"{found['ratio']:.2f} ({ours} / {theirs}{bar})"
