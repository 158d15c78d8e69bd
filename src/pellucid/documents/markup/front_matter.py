"""Front matter of Markdown: the titles and descriptions in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pellucid.documents.escapes import QUOTED, Strings
from pellucid.documents.units import Source, Unit
from pellucid.errors import DataError

FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n((?:.*?\n)??)\1[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_NAMES = "title linkTitle subtitle description summary excerpt tagline sidebar_label"
_SHOWN = frozenset(_NAMES.split())
"""Keys of front matter whose values readers see; all others are copied."""
_TOML = re.compile(r"^([A-Za-z_]+)[ \t]*=[ \t]*\"((?:[^\"\\\n]|\\.)+)\"[ \t]*\r?$", re.MULTILINE)
NOT_READ = "this block of Markdown cannot be read, so that it stays"
_STRINGS = Strings(QUOTED)


def read_front_matter(source: Source) -> Iterator[Unit]:
    """Find the texts in front matter: YAML, or strings of TOML."""
    front = FRONT_MATTER.match(source.text)
    if front is None:
        return
    start = front.start(2)
    if front[1] == "+++":
        for line in _TOML.finditer(front[2]):
            if line[1] in _SHOWN:
                first, last = (start + place for place in line.span(2))
                yield Unit(line[1], first, last, _STRINGS.pieces(line[2]))
        return
    from pellucid.documents.yaml import read_yaml

    inner = Source(front[2], source.how)
    try:
        units = [*read_yaml(inner)]
    except DataError:
        # A generator may read it in its own way.
        yield Unit("front matter", start, front.end(2), [front[2]], fault=NOT_READ)
        return
    for unit in units:
        if unit.key in _SHOWN:
            unit.start += start
            unit.end += start
            yield unit
