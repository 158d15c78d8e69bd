"""What the page says of removed parts, against the kept measurements of the claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
SAID = (ROOT / "web" / "src" / "grow" / "removals.ts").read_text(encoding="utf-8")
WORDS = ("none", "one", "two", "three", "four", "five", "six")


def measurement(claim: str) -> dict[str, Any]:
    path = ROOT / "benchmarks" / "results" / "claims" / f"{claim}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))["measurement"])


def rows(claim: str, title: str) -> list[list[Any]]:
    tables = measurement(claim)["tables"]
    return [row for table in tables if title in table["title"] for row in table["rows"]]


def learned(found: list[str]) -> tuple[int, int]:
    """Add up cells such as ``2 of 3``."""
    counts = [tuple(map(int, one.split(" of "))) for one in found]
    return sum(one for one, _ in counts), sum(of for _, of in counts)


def test_trainings_without_a_part_are_counted_as_measured() -> None:
    undivided = [row[6] for row in rows("scale", "Training from") if row[:2] == [64, "not divided"]]
    right, total = learned(undivided)
    assert f"{WORDS[total - right]} of {WORDS[total]} trainings failed without the division" in SAID

    one, of = learned([row[1] for row in rows("residual", "with 1 enc") if row[0] == "norm only"])
    assert f"{WORDS[one]} of {WORDS[of]} larger models still learned without them" in SAID
    deeper = [row[1] for row in rows("residual", "Training with") if row[0] == "norm only"][1:]
    assert learned(deeper)[0] == 0

    deep = rows("norm", "Training with 4")
    pre, none = (
        "{} of {}".format(*learned([row[2] for row in deep if row[0] == kind]))
        for kind in ("pre-norm", "no norm")
    )
    assert f"help: {pre} trainings learned, without norms {none}" in SAID


def test_shares_and_counts_of_other_parts_are_as_measured() -> None:
    (right,) = (row[1] for row in rows("position", "Statements") if row[0] == "none")
    shares = [float(one) for one in right.split(" · ")]
    assert f"{sum(shares) / len(shares):.0f} % of the sentences are right" in SAID

    numbers = {
        finding["statement"]["says"]: finding["verdict"]["numbers"]
        for claim in ("queries", "heads")
        for finding in measurement(claim)["findings"]
    }
    (values,) = (said for says, said in numbers.items() if "the Values step" in says)
    ratios = [
        float(one) for part in values.split("× ")[1:] for one in part.split(";")[0].split(" · ")
    ]
    assert f"in {min(ratios):.1f} to {max(ratios):.1f} times as many updates" in SAID
    (cut,) = (said for said in numbers.values() if said.startswith("heads cut"))
    free = [int(one) for one in cut.split(": ")[1].split(" of ")[0].split(" · ")]
    assert f"{min(free)} to {max(free)} could be cut without loss" in SAID
