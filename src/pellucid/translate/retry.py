"""A second search for translations that look wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pellucid.translate.line_results import RETRIED
from pellucid.translate.results import Translation


def retry_flagged(
    translations: list[Translation], search: Callable[[Sequence[int]], list[Translation]]
) -> list[Translation]:
    """Search again for flagged translations, and keep what has fewer flags.

    Args:
        translations: of some texts.
        search: translates the texts of these places again.
    """
    again = [
        index
        for index, one in enumerate(translations)
        if one.error is None and not RETRIED.isdisjoint(one.notes.flags)
    ]
    found = list(translations)
    if not again:
        return found
    for index, other in zip(again, search(again), strict=True):
        if other.error is None and len(other.notes.flags) < len(found[index].notes.flags):
            found[index] = replace(other, notes=replace(other.notes, retried=True))
    return found
