"""Lines of Markdown's dialects, made plain for a parser that knows only CommonMark.

MkDocs indents what belongs to a title, MyST writes text into fences, and MDX has tags over several
lines. Each line stays one line, so that all places are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pellucid.documents.markup.segments import Spelled, Syntax
from pellucid.documents.placeholders import make_segment
from pellucid.documents.units import Unit

# Containers, formulas and shortcodes of site generators; comments and code of MyST and MDX.
COPIED_BLOCK = re.compile(
    r"\$\$|\{%|%(?= )|\{/\*|import\s[^\n]*from\s*[\"']|import\s+[\"']"
    r"|export\s+(?:const|default|function|let)\b"
)
# Lines of such blocks: MkDocs' admonitions and tabs, of which the title is a text.
COPIED_LINE = re.compile(
    r"\s*(?::{3,}[ \t]*(?:\w+(?:\[(?P<label>[^\]\n]+)\]|[ \t]+(?P<name>[^\n{]*[^\s{]))?)?[^\n]*\s*"
    r"|(?:\{\{[%<](?:(?!\}\})[^\n])*+(?:\}\}[ \t]*|(?=\n|\Z)))++\s*"
    r"|\*\[[^\]\n]+\]:[ \t]*(?P<abbreviated>[^\n]*\S)\s*"
    r"|///[ \t]*[\w-]+[ \t]*\|[ \t]*(?P<caption>[^\n]*\S)\s*"
    r"|(?:\([\w:.-]+\)=|--8<--|;--8<--|///)[^\n]*\s*"
    r"|(?:!!!|\?\?\?\+?|===[!+]?)(?:[ \t]+[\w-]+){0,2}[ \t]*(?:\"(?P<title>[^\"]*)\")?\s*)"
)
TITLES = ("label", "name", "caption", "abbreviated", "title")
# Keys and marked words, as MkDocs and Obsidian have them.
MARKS = re.compile(
    r"(?P<keys>(?<!\S)\+\+[\w-]+(?:\+[\w-]+)*+\+\+)"
    r"|(?P<sign>(?<![=^])(?:==|\^\^))(?=[^\s=^])[^=^]{1,400}(?<!\s)(?P=sign)(?![=^])"
)
# Containers of MkDocs, whose text is indented by four spaces.
_CONTAINER = re.compile(r"(?:!!!|\?\?\?\+?|===[!+]?)[ \t]+\S")
_INDENT = 4
_FENCE = re.compile(
    r"[ \t]*(?P<fence>`{3,}|~{3,}|:{3,})[ \t]*(?:\{(?P<name>[\w:-]+)\})?[ \t]*(?P<rest>.*)"
)
_DIRECTIVES = frozenset(
    (
        *("note", "warning", "tip", "hint", "important", "caution", "danger", "attention", "error"),
        *("seealso", "admonition", "versionadded", "versionchanged", "deprecated", "topic"),
        *("sidebar", "dropdown", "card", "grid", "grid-item", "tab-set", "tab-item", "figure"),
        *("margin", "epigraph", "exercise", "solution", "prf:theorem", "prf:proof"),
    )
)
"""Directives of MyST that hold Markdown; all others are code."""
_TITLED = frozenset(("admonition", "topic", "sidebar", "dropdown", "card", "tab-item"))
_OPTION = re.compile(r"[ \t]*:[\w-]+:(?:[ \t].*)?")
_TAG = re.compile(r"[ \t]*<[A-Z][\w.]*(?:[ \t]+[^<>]*)?")
_TAG_END = re.compile(r".*>[ \t]*")
_LABEL = Syntax({'"': "&quot;"})
_CODE = Syntax({'"': '\\"', "'": "\\'"})
_MODULE = re.compile(r":::[ \t]+[\w.]+\.\w+[ \t]*")
"""What mkdocstrings writes documentation for; its options are indented."""
_LABELS = re.compile(
    r"\b(?:title|label|alt|caption|description|placeholder)"
    r"(?:=\"([^\"{}<>\n]+)\"|:[ \t]*(?:\"([^\"\\\n]+)\"|'([^'\\\n]+)'))"
)


def labels_in(line: str) -> list[tuple[int, int]]:
    """Find the places of texts that a tag, also in its code, or a shortcode has, as its title."""
    return [one.span(one.lastindex or 0) for one in _LABELS.finditer(line)]


def read_labels(text: str, places: Sequence[int], are_tags: Sequence[bool]) -> Iterator[Unit]:
    """Find the texts in tags over several lines.

    Args:
        text: the document.
        places: the beginning of each line, and one more.
        are_tags: for each line, whether it belongs to such a tag.
    """
    for number, is_tag in enumerate(are_tags):
        place = places[number]
        line = text[place : places[number + 1]]
        for first, last in labels_in(line) if is_tag else ():
            is_code = line[first - 2] != "="
            label = make_segment(Spelled(line[first:last]), _CODE if is_code else _LABEL)
            yield Unit(f"line {number + 1}", place + first, place + last, [label])


def plain_lines(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line as CommonMark reads it, and whether it is of a tag over several lines.

    Args:
        lines: of a document, without their ends.
    """
    indents = [0]
    fences: list[str] = []
    is_code = is_options = has_yaml = is_tag = is_module = False
    for line in lines:
        body = line
        if line.strip():
            while not line.startswith(" " * indents[-1]):
                indents.pop()
            body = line[indents[-1] :]
        is_module &= not body.strip() or body[:1] in " \t"
        if is_options and body.strip() == "---":
            # Options as YAML stand between two such lines, and the text follows.
            is_options = not has_yaml
            has_yaml = not has_yaml
            yield "", False
            continue
        is_options &= has_yaml or _OPTION.fullmatch(body) is not None
        fence = None if is_tag or is_module else _FENCE.fullmatch(body)
        if is_tag:
            is_tag = _TAG_END.fullmatch(body) is None
            yield "", True
        elif is_module or is_options:
            yield "", False
        elif fence and fences and not fence["name"] and not fence["rest"] and _ends(fence, fences):
            fences.pop()
            yield (body if is_code else ""), False
            is_code = False
        elif is_code or not fence or (fence["fence"][0] == ":" and not fence["name"]):
            is_module = not is_code and _MODULE.fullmatch(body) is not None
            is_tag = not is_code and _TAG.fullmatch(body) is not None
            if not is_code and _CONTAINER.match(body):
                indents.append(indents[-1] + _INDENT)
            yield ("" if is_tag else body), is_tag
        else:
            fences.append(fence["fence"])
            is_options = fence["name"] in _DIRECTIVES
            is_code = not is_options
            title = fence["rest"] if fence["name"] in _TITLED else ""
            # As a heading it is not joined with what follows.
            yield (body if is_code else f"# {title}" if title else ""), False


def _ends(fence: re.Match[str], fences: list[str]) -> bool:
    return fence["fence"][0] == fences[-1][0] and len(fence["fence"]) >= len(fences[-1])
