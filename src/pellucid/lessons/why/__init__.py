"""Measurements of what the texts claim, each with numbers, a plot and a verdict.

`CLAIMS` lists them. `measure_claim` measures one and returns a `Measurement`, which is data: the
terminal, JSON and pictures are made from it.
"""

from pellucid.lessons.why.known_claims import CLAIMS, Claim, measure_claim
from pellucid.lessons.why.result import Measurement
from pellucid.lessons.why.setting import MeasurementSetting

__all__ = ["CLAIMS", "Claim", "Measurement", "MeasurementSetting", "measure_claim"]
