"""Reports on the terms of a glossary in a document: for each text, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pellucid.decode.constraints.terms import UsedTerm, check_terms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pellucid.decode.constraints.glossary import Glossary

_COUNTED = ("forms", "misses")


def find_used(
    glossary: Glossary | None, source: str, written: str, known: Iterable[UsedTerm]
) -> tuple[UsedTerm, ...]:
    """Look for a text's terms in what is written for it.

    Args:
        glossary: the terms; None without one.
        source: the text.
        written: its translation; empty if the source stays.
        known: the terms of the model's best translation, which may be another one; their reasons
            are kept.
    """
    if glossary is None:
        return ()
    used = check_terms(glossary.terms_for(source), written)
    why = {(one.target, one.written): one.reason for one in known}
    return tuple(
        replace(one, reason=why.get((one.target, one.written), one.reason)) for one in used
    )


def doubts_about(used: Iterable[UsedTerm]) -> list[str]:
    """List why a text should be looked at; programs compare what stands before the colon."""
    return [
        f"a term of the glossary is missing: {one.name} ({one.reason})"
        if one.outcome == "miss"
        else f"check a glossary term: “{one.written}” ({one.reason})"
        for one in used
        if one.reason
    ]


def count_terms(used: Iterable[UsedTerm]) -> list[dict[str, Any]]:
    """Count what became of each term: hits, other forms, and misses by their reasons."""
    return join_counts(map(_one_term, used))


def join_counts(counted: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add the counts of several documents."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for one in counted:
        empty: dict[str, Any] = {"hits": 0, **{name: Counter() for name in _COUNTED}}
        row = found.setdefault((one["source"], one["target"]), empty)
        row["hits"] += one["hits"]
        for name in _COUNTED:
            row[name].update(one[name])
    return [{"source": source, "target": target, **row} for (source, target), row in found.items()]


def _one_term(one: UsedTerm) -> dict[str, Any]:
    return {
        "source": one.source,
        "target": one.target,
        "hits": int(one.outcome == "hit"),
        "forms": {one.form: 1} if one.outcome == "form" else {},
        "misses": {one.reason: 1} if one.outcome == "miss" else {},
    }
