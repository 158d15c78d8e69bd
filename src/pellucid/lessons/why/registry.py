"""The claims that can be measured. Listing them loads nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from pellucid.errors import InputError, suggestion
from pellucid.lessons.why.result import Measurement
from pellucid.lessons.why.setting import Setting


@dataclass(frozen=True)
class Claim:
    """A claim of the texts.

    Attributes:
        name: to ask for it.
        question: answered by the measurement.
        is_timed: True if it measures times, which are those of the machine at hand.
        is_trained: True if it trains tiny models.
    """

    name: str
    question: str
    is_timed: bool = False
    is_trained: bool = False


_ALL = (
    Claim("memory", "Is what was read first forgotten?", is_timed=True, is_trained=True),
    Claim("gradients", "Do gradients vanish on the way to early words?", is_trained=True),
    Claim(
        "order",
        "Are order and size what recurrent translation gets wrong?",
        is_timed=True,
        is_trained=True,
    ),
    Claim("scale", "Does dividing by √d_k keep the gradients of the softmax alive?"),
    Claim("mask", "Does a decoder without the look-ahead mask cheat?", is_trained=True),
    Claim("length", "Is attention quadratic, and how long may a text be?", is_timed=True),
    Claim("padding", "Does padding leave the words of a sentence as they are?"),
    Claim("fixed-size", "Is an input of fixed size the efficient one?", is_timed=True),
    Claim("cache", "Are keys and values computed only once?", is_timed=True),
    Claim("parallel", "How much faster is one pass than word by word?", is_timed=True),
    Claim("examples", "Do more examples tie it and tasted to pizza?", is_trained=True),
    Claim("diagonal", "Does a word attend most to itself?"),
    Claim("heads", "Does each head learn its own feature?"),
    Claim("queries", "Why queries, keys and values?", is_trained=True),
    Claim("relevance", "Is it relevance that counts, not proximity?", is_trained=True),
    Claim("position", "Is there no order without positions?", is_trained=True),
    Claim("residual", "Do residual connections carry gradients and knowledge?", is_trained=True),
    Claim("norm", "Does layer normalization stabilize and shorten training?", is_trained=True),
)

CLAIMS: dict[str, Claim] = {claim.name: claim for claim in _ALL}
"""Every claim by name. `pellucid.lessons.why.claims` has a module for each, with ``measure``."""

_WITH_LONG_FORM = frozenset(
    {"cache", "fixed-size", "heads", "length", "mask", "norm", "padding", "parallel", "position"}
    | {"residual", "scale"}
)
"""The claims whose ``--full`` measures more than sizes: in `pellucid.lessons.why.long`."""


def measure_claim(name: str, setting: Setting | None = None) -> Measurement:
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
    setting = setting or Setting()
    folder = "long" if setting.size == "full" and name in _WITH_LONG_FORM else "claims"
    module = import_module(f"pellucid.lessons.why.{folder}.{name.replace('-', '_')}")
    return cast(Measurement, module.measure(setting))
