"""The claims of the texts: what is known of each before it is measured, and what was found.

Listing them loads nothing heavy.
"""

from __future__ import annotations

import tomllib
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
    Found,
    MeasuredClaim,
    Measurement,
    Plot,
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
        notes: what a reader should know, whatever was found.
        long_notes: the same of what only the long form measures.
        open: the statements on which the kept long form's seeds disagree: a short run of one seed
            is no surer than they are.
        is_timed: True if it measures times, which are those of the machine at hand.
        is_trained: True if it trains tiny models.
    """

    name: str
    question: str
    to_try: tuple[str, ...]
    says: dict[str, tuple[str, str, str]]
    notes: tuple[str, ...] = ()
    long_notes: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    is_timed: bool = False
    is_trained: bool = False


def _read_claims() -> dict[str, Claim]:
    text = files("pellucid.lessons.why").joinpath("claims.toml").read_text(encoding="utf-8")
    claims = {}
    for name, entry in tomllib.loads(text).items():
        lists = {
            key: tuple(entry.get(key, ())) for key in ("to_try", "notes", "long_notes", "open")
        }
        claims[name] = Claim(name, **(entry | lists))
    return claims


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
            f"A claim must be one of those that pellucid claim lists, but is {name!r}. "
            + suggestion(name, CLAIMS)
        )
    claim = CLAIMS[name]
    setting = setting or MeasurementSetting()
    # Only the asked one, since most load PyTorch and some a model.
    module = import_module(f"pellucid.lessons.why.claims.{name.replace('-', '_')}")
    found: Found = module.measure(setting)
    findings = []
    # A claim has more statements than its short form judges.
    for key, verdict in found.verdicts.items():
        text, section, says = claim.says[key]
        if key in claim.open and not setting.is_long:
            verdict = verdict.doubted()
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
        (*claim.notes, *(claim.long_notes if setting.is_long else ()), *found.notes),
        claim.to_try,
        setting.seed,
        setting.size,
        machine,
    )
