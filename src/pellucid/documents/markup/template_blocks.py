"""Blocks of templates, such as ``{% if x %}…{% else %}…{% endif %}``: which tag opens or closes.

Their tags are read by shape, whatever language of templates they are of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pellucid.documents.markup.lexing import Token
from pellucid.documents.markup.segments import MIDDLE

_MIDDLES = frozenset(
    [
        "else",
        "elif",
        "elsif",
        "elseif",
        "elseunless",
        "empty",
        "plural",
        "pluralize",
        "when",
        "case",
        "catch",
        "rescue",
        "then",
    ]
)
_OPENERS = frozenset(
    [
        "if",
        "unless",
        "for",
        "foreach",
        "each",
        "while",
        "until",
        "with",
        "range",
        "block",
        "define",
        "switch",
        "case",
        "begin",
        "try",
        "filter",
        "wrapper",
    ]
)
_ENDS = {"{%": "%}", "<%": "%>", "[%": "%]", "<?": "?>", "{{": "}}", "{": "}"}
_FRAME = re.compile(r"(?:\{%|<%|\[%|<\?(?:php\b)?|\{\{|\{)[-+~]?", re.IGNORECASE)
_WORD = re.compile(r"([#/^:]?)\s*([A-Za-z_][\w.-]*|)")
_OPENS = re.compile(r"(?:[{:]|\bdo(?:\s*\|[^|]{0,80}\|)?)\Z")


def block_tag(text: str) -> Token | None:
    """Read a placeholder as a tag of a template.

    Returns:
        A tag, with a name that starts with a bracket, so that no element has it; ``end`` without a
        start for what is between or shows nothing. None if it is shown.
    """
    frame = _FRAME.match(text)
    if frame is None:
        return None
    family = next(one for one in _ENDS if text.startswith(one))
    inside = text[frame.end() : -len(_ENDS[family])].strip(" \t\r\n-+~;")
    match = _WORD.match(inside)
    sign, word = (match[1], match[2].lower()) if match else ("", "")
    if family in ("{{", "{"):
        return _braces(text, family, sign, word, inside)
    if inside.startswith("=") or (family == "<?" and word in ("echo", "print")):
        return None
    if inside.startswith("}"):
        return Token("end", text, MIDDLE if _OPENS.search(inside) else family)
    if word in _MIDDLES and not (word == "case" and family != "{%" and _OPENS.search(inside)):
        return Token("end", text, MIDDLE)
    if family == "{%":
        is_end = word.startswith("end") and len(word) > 3
        return Token("end" if is_end else "start", text, f"{{%{word[3:] if is_end else word}")
    if word.startswith("end"):
        return Token("end", text, family)
    if word in _OPENERS or (family != "[%" and _OPENS.search(inside)):
        return Token("start", text, family)
    # A template of this kind shows what is no directive, whose names are in capitals.
    return None if family == "[%" and not inside[:2].isupper() else Token("end", text, MIDDLE)


def as_block(token: Token) -> Token:
    """Read a token of HTML that is a part of a program in PHP as a tag of a template."""
    is_program = token.kind == "other" and token.raw.startswith("<?")
    return (block_tag(token.raw) if is_program else None) or token


def _braces(text: str, family: str, sign: str, word: str, inside: str) -> Token | None:
    if family == "{{":
        if inside == "^" or (word == "else" and sign in ("", "^")):
            return Token("end", text, MIDDLE)
        if sign and sign != ":" and word:
            return Token("end" if sign == "/" else "start", text, f"{{{{{word}")
        if not sign and (word == "end" == inside or (word in _OPENERS and word != inside)):
            return Token("end" if word == "end" else "start", text, family)
    elif sign == ":" and word in _MIDDLES:
        return Token("end", text, MIDDLE)
    elif sign == "/" and word:
        return Token("end", text, f"{{{word}")
    elif sign == "#" and word in _OPENERS:
        return Token("start", text, f"{{{word}")
    elif (sign == "#" and word and not inside.endswith("#")) or (
        not sign and word and word == inside.lower()
    ):
        return Token("void", text, f"{{{word}")
    return None


def block_tags(texts: Sequence[str]) -> list[Token | None]:
    """Read placeholders of a text: of ``{b}`` and ``{{ end }}`` a partner tells what they are."""
    found = [block_tag(one) for one in texts]
    opened = Counter[str]()
    for place, token in enumerate(found):
        if token is not None and token.name == "{{":
            opened["{{"] += 1 if token.kind == "start" else -1
            if opened["{{"] < 0:
                opened["{{"] = 0
                found[place] = None
    closers = Counter[str]()
    for place in range(len(found) - 1, -1, -1):
        token = found[place]
        if token is not None and token.kind == "void":
            is_opener = closers[token.name] > 0
            closers[token.name] -= is_opener
            found[place] = Token("start", token.raw, token.name) if is_opener else None
        elif token is not None:
            closers[token.name] += 1 if token.kind == "end" else 0
    return found
