"""The probe: an object passed to a forward pass to record its results or to change them."""

from __future__ import annotations

import dis
from functools import lru_cache
from itertools import pairwise
from types import CodeType
from typing import Protocol

from torch import Tensor

from pellucid.attention.checks import fitted


class Probe(Protocol):
    """An object that is handed every intermediate result of a forward pass.

    ``site`` is the place (``encoder.0.self``, ``decoder.1.cross``, ``decoder.1.feed_forward``,
    ``encoder``, ``decoder``). ``stage`` is the result (``query``, ``key``, ``value``, ``scores``,
    ``scaled``, ``masked``, ``weights``, ``context``, ``output``, ``input``, ``residual``,
    ``norm``, ``inner``, ``activated``, ``embedding``, ``positions``, ``logits``).

    A probe may have an attribute ``sites``, a collection of sites. Attention at any other site
    then takes the fast path and shows none of its stages; all other results are shown as usual. An
    attribute ``names``, results such as ``encoder.0.self.weights``, is checked in the same way.
    While a translation is searched for, a probe with names is asked about these results only.

    What it is handed is of one sentence: the first axis has the length 1, and axis -2 has the rows
    of the decoder so far, even if a search computes only the newest row and takes only that row
    back. A method ``begin(pair)`` gets the sentence and rows that come next: ``pair.source_text``,
    ``pair.source_ids`` and ``pair.source_tokens``, and ``pair.read_ids`` and ``pair.read_tokens``,
    one for each row of the decoder, none while the encoder runs. With ``takes_batches = True`` the
    first axis has several sentences of one length, or hypotheses, and `begin` is not called in a
    search.

    Results have the type of the forward pass, which is float64 in a replay (`Translator.look`). A
    replacement is converted to it. Return another tensor instead of changing one in place.
    """

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Take one result. Return a tensor of the same shape to replace it, or None."""
        ...


def tell_probe(probe: Probe | None, pair: object) -> None:
    """Tell a probe which sentence it sees next, if it has a method ``begin``."""
    told = getattr(probe, "begin", None)
    if told is not None:
        told(pair)


def parts_of(probe: Probe) -> set[str]:
    """Name the parts of a model that a probe may change: ``encoder``, ``decoder`` or both."""
    parts = getattr(probe, "parts", None)
    if parts is not None:
        return set(parts)
    names = getattr(probe, "names", None)
    # Without names it may change anything.
    return {name.partition(".")[0] for name in names} if names else {"encoder", "decoder"}


def wants(probe: Probe, site: str, stage: str) -> bool:
    """True if a probe may change a result: it says so itself, or by its names."""
    said = getattr(probe, "wants", None)
    if said is not None:
        return bool(said(site, stage))
    names = getattr(probe, "names", None)
    return not names or f"{site}.{stage}" in names


def is_watched(probe: Probe, site: str) -> bool:
    """True if a probe wants every stage of attention at a site."""
    # Optional, so that any object with `see` is a probe.
    sites = getattr(probe, "sites", None)
    return sites is None or site in sites


def only_observes(probe: Probe) -> bool:
    """True if the method ``see`` of a probe returns nothing, wherever it ends."""
    code = getattr(probe.see, "__code__", None)
    return code is not None and _returns_nothing(code)


@lru_cache(maxsize=64)
def _returns_nothing(code: CodeType) -> bool:
    # Up to Python 3.11 and from 3.14 on, None is loaded first; between them one step does both.
    for before, step in pairwise(dis.get_instructions(code)):
        is_none = before.opname == "LOAD_CONST" and before.argval is None
        # A jump to the return brings another value: `x if … else None`.
        if step.opname == "RETURN_VALUE" and (step.is_jump_target or not is_none):
            return False
        if step.opname == "RETURN_CONST" and step.argval is not None:
            return False
    return True


def show(probe: Probe | None, site: str, stage: str, tensor: Tensor) -> Tensor:
    """Hand a result to the probe, if any; return it or a replacement, which `fitted` checks."""
    replacement = None if probe is None else probe.see(site, stage, tensor)
    return tensor if replacement is None else fitted(replacement, tensor, site, stage)
