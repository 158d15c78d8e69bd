"""The probe: an object passed to a forward pass to record its results or to change them."""

from __future__ import annotations

import dis
from itertools import pairwise
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

    Results have the type of the forward pass, which is float64 in a replay (`Translator.look`). A
    replacement is converted to it. Return another tensor instead of changing one in place.
    """

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Take one result. Return a tensor of the same shape to replace it, or None."""
        ...


def is_watched(probe: Probe, site: str) -> bool:
    """True if a probe wants every stage of attention at a site."""
    # Optional, so that any object with `see` is a probe.
    sites = getattr(probe, "sites", None)
    return sites is None or site in sites


def only_observes(probe: Probe) -> bool:
    """True if the method ``see`` of a probe returns nothing, wherever it ends."""
    code = getattr(probe.see, "__code__", None)
    if code is None:
        return False
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
