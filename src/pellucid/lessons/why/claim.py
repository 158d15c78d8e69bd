"""The claims of the texts: what is known of each before it is measured, and what was found.

Listing them loads nothing heavy.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files

from pellucid.errors import InputError, suggestion
from pellucid.lessons.why.result import (
    LECTURE,
    NOTES,
    OBJECTIVES,
    SLIDES,
    STUDY_NOTES,
    ClaimText,
    MeasuredClaim,
    Measurement,
    Panel,
    Plot,
    ResultTable,
    Verdict,
)
from pellucid.lessons.why.setting import MeasurementSetting

_TEXTS = {
    "lecture": LECTURE,
    "slides": SLIDES,
    "notes": NOTES,
    "objectives": OBJECTIVES,
    "study-notes": STUDY_NOTES,
}


@dataclass(frozen=True)
class Claim:
    """A claim of the texts, as ``claims.toml`` has it.

    Attributes:
        name: to ask for it; `pellucid.lessons.why.claims` has a module of this name.
        question: answered by the measurement.
        to_try: commands that continue from here.
        says: the statements of the texts by a short name: the text, the section, the words.
        is_timed: True if it measures times, which are those of the machine at hand.
        is_trained: True if it trains tiny models.
    """

    name: str
    question: str
    to_try: tuple[str, ...]
    says: dict[str, tuple[str, str, str]]
    is_timed: bool = False
    is_trained: bool = False


@dataclass(frozen=True)
class Found:
    """What the module of a claim found.

    Attributes:
        number: completes the answer, without its full stop: the most telling numbers.
        method: what was measured, and how.
        verdicts: the judgment of each statement, by its short name; the first answers the question.
        tables: the numbers.
        panels: of the picture.
        notes: what else a reader should know.
    """

    number: str
    method: str
    verdicts: dict[str, Verdict]
    tables: tuple[ResultTable, ...]
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()

    def plus(
        self,
        number: str = "",
        method: str = "",
        *,
        verdicts: Mapping[str, Verdict] | None = None,
        tables: Sequence[ResultTable] = (),
        panels: Sequence[Panel] = (),
        notes: Sequence[str] = (),
    ) -> Found:
        """Add what the long form measures besides; a new verdict takes the place of an old one."""
        return Found(
            self.number + number,
            self.method + method,
            {**self.verdicts, **(verdicts or {})},
            (*self.tables, *tables),
            (*self.panels, *panels),
            (*self.notes, *notes),
        )


def _read_claims() -> dict[str, Claim]:
    text = files("pellucid.lessons.why").joinpath("claims.toml").read_text(encoding="utf-8")
    return {
        name: Claim(name, **(entry | {"to_try": tuple(entry["to_try"])}))
        for name, entry in tomllib.loads(text).items()
    }


CLAIMS = _read_claims()
"""Every claim by name."""


def measure_claim(name: str, setting: MeasurementSetting | None = None) -> Measurement:
    """Measure a claim on this machine.

    Args:
        name: one of `CLAIMS`.
        setting: its size, its seed and where to report progress.

    Raises:
        InputError: the claim is not known.
    """
    if name not in CLAIMS:
        raise InputError(
            f"A claim must be one of those that pellucid why lists, but is {name!r}. "
            + suggestion(name, CLAIMS)
        )
    claim = CLAIMS[name]
    setting = setting or MeasurementSetting()
    module = import_module(f"pellucid.lessons.why.claims.{name.replace('-', '_')}")
    found: Found = module.measure(setting)
    findings = []
    for key, verdict in found.verdicts.items():
        text, section, says = claim.says[key]
        findings.append(MeasuredClaim(ClaimText(_TEXTS[text], section, says), verdict))
    machine = ""
    if claim.is_timed:
        from pellucid.machine.hardware import describe_machine  # Loads PyTorch.

        machine = describe_machine()
    return Measurement(
        name,
        claim.question,
        f"{findings[0].verdict.answer}: {found.number}.",
        found.method,
        tuple(findings),
        found.tables,
        # A picture has room for three: what the long form adds takes the place of the first.
        Plot(found.panels[-3:]),
        found.notes,
        claim.to_try,
        setting.seed,
        setting.size,
        machine,
    )
