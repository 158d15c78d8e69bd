"""TBX: the terms of concepts in several languages, of its versions 2 and 3."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pellucid.documents.units import How, Source
from pellucid.documents.xml import Node, read_xml
from pellucid.languages.codes import are_same_language, pick_codes

_NO_TEXT = re.compile(r"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[|\]\]>", re.DOTALL)
_GROUPS = ("tig", "ntig", "termSec")

_STATES = ("deprecated", "superseded", "obsolete", "forbidden", "notrecommended")
"""Beginnings of notes on terms that no translation should have, as ``deprecatedTerm-admn-sts``."""


class BaseTerm(NamedTuple):
    """A term of a concept.

    Attributes:
        line: of the file.
        language: its code.
        text: the term.
        rank: 0 if it is preferred, 2 if no translation should have it, 1 for all others.
    """

    line: int
    language: str
    text: str
    rank: int


Concept = Sequence[BaseTerm]


def read_tbx(text: str, path: str) -> list[Concept]:
    """Read the terms of each concept.

    Args:
        text: the file.
        path: its name, for messages.

    Raises:
        DataError: it is not XML, declares entities, has another root than ``martif`` or ``tbx``, or
            holds no terms.

    Source: ISO 30042:2008 and ISO 30042:2019; TBX-Basic.
    """
    source = Source(text, How(path))
    tree = read_xml(source)
    if not any(map(tree.child, ("martif", "tbx"))):
        what = "A TBX glossary must have the root martif or tbx, but has another one"
        source.refuse(0, what, "Export it as TBX, or as CSV.")
    concepts: list[Concept] = [
        [*_terms(source, one)] for one in tree.walk("termEntry", "conceptEntry")
    ]
    if not any(concepts):
        source.refuse(0, "A TBX glossary must hold terms, but has none", "Take another file.")
    return concepts


def _terms(source: Source, concept: Node) -> Iterator[BaseTerm]:
    for section in concept.walk("langSet", "langSec"):
        own = section.attributes
        # MARTIF, from which TBX was made, has the attribute without a namespace.
        language = own.get("xml:lang") or own.get("lang", "")
        for group in section.walk(*_GROUPS):
            for term in group.walk("term"):
                text = _text(term)
                line = source.line(term.start)
                if "|" in text:
                    what = f"A term must have no |, which separates forms, but is {text!r}"
                    source.refuse(term.start, what, "Write it without.")
                if text:
                    yield BaseTerm(line, language, text, _rank(group))


def _text(node: Node) -> str:
    """Return what an element says, without the tags and comments in it."""
    parts = []
    for one in node.walk(""):
        is_plain = not one.raw.startswith("<")
        parts.append(html.unescape(one.raw) if is_plain else _NO_TEXT.sub("", one.raw))
    return " ".join("".join(parts).split())


def _rank(group: Node) -> int:
    # Notes are elements of several names, or with a type, as the dialect has it.
    notes = [_text(one).lower().replace(" ", "") for one in group.nodes if one.name != "term"]
    notes += [_text(one).lower() for one in group.walk("termNote")]
    if any(one.startswith(_STATES) for one in notes):
        return 2
    return 0 if any(one.startswith("preferred") for one in notes) else 1


def choose_terms(
    concepts: Sequence[Concept], languages: tuple[str, str]
) -> dict[str, tuple[str, ...]]:
    """List the translations of each term of the source, the preferred ones first.

    A term of several concepts has the translations of all.

    Args:
        concepts: of a term base.
        languages: codes of source and target; regions need not be equal, but the nearest counts.
    """
    found: dict[str, dict[str, None]] = {}
    source, target = languages
    for concept in concepts:
        codes = pick_codes(target, dict.fromkeys(one.language for one in concept))
        own = [one for one in concept if one.language in codes and one.rank < 2]
        targets = [one.text for one in sorted(own, key=lambda one: one.rank)]
        for one in concept if targets else ():
            if are_same_language(one.language, source):
                found.setdefault(one.text, {}).update(dict.fromkeys(targets))
    return {term: tuple(targets) for term, targets in found.items()}
