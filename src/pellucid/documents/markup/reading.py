"""From a document to the sentences in it: what is copied, and where the inline tags are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from pellucid.documents.markup.lexing import (
    RAISED,
    Token,
    TokenKind,
    cut_html,
    match_tags,
    unescape,
)
from pellucid.documents.markup.segments import QUOTED, Maker, Piece, Segment
from pellucid.documents.markup.split_messages import find_split_messages
from pellucid.documents.markup.template_blocks import as_block
from pellucid.documents.placeholders import add_html_text
from pellucid.languages.codes import are_same_language, read_tag
from pellucid.languages.letters import is_unspaced

# All other elements are inline, as in browsers, also those that HTML does not know.
_BLOCK_NAMES = (
    "address article aside base blockquote body br caption center col colgroup dd details dialog "
    "dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head "
    "header hgroup hr html legend li listing main menu nav ol optgroup option p plaintext pre "
    "search section summary table tbody td tfoot th thead title tr ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_BOX_NAMES = (
    "audio button canvas datalist map meter noscript object picture progress select slot template "
    "video"
)
_BOXES = frozenset(_BOX_NAMES.split())
_COPIED = frozenset(("code", "kbd", "samp"))
_HIDDEN_NAMES = "svg math script style textarea xmp iframe noembed noframes rt rp rtc"
_HIDDEN = frozenset(_HIDDEN_NAMES.split())
_FEW_TOKENS = 8
"""Tokens of a footnote's mark or an index, with its tags."""

_MOST_BOXES = 16
"""Boxes and parts that are not translated, inside each other; deeper ones are treated plainly."""

_LABEL_NAMES = (
    "alt title placeholder aria-label aria-description aria-placeholder aria-roledescription "
    "aria-valuetext"
)
_LABELS = frozenset(_LABEL_NAMES.split())
_DESCRIPTION_NAMES = (
    "description og:title og:description og:image:alt twitter:title twitter:description"
)
_DESCRIPTIONS = frozenset(_DESCRIPTION_NAMES.split())
_BUTTON_TYPES = frozenset(("submit", "reset", "button"))
_HAS_LABEL = re.compile(r"alt|title|placeholder|aria-|label|value|content|lang", re.IGNORECASE)
_BREAKS = frozenset(".:;!?)]…»”")
_SPACES = re.compile(r"[ \t\n\r\f]+")

Role = Literal["copy", "point", "block", "box"]


def read_segments(document: str, languages: tuple[str, str] = ("", "")) -> list[str | Segment]:
    """Cut a document into what is copied and what is translated, in order.

    Block tags and ``<br>`` end a segment, and so does an inline element that touches the next one.
    ``code``, ``kbd``, ``samp`` and elements with ``translate="no"`` are copied.

    Args:
        document: a fragment or a whole document.
        languages: codes of the source and the target, for ``lang`` of what is translated.
    """
    return _Reader(_join_messages(list(cut_html(document))), languages).read()


def _join_messages(tokens: list[Token]) -> list[Token]:
    """Make one token of each message of ICU that tags cut."""
    texts = [one.raw if one.kind == "text" else None for one in tokens]
    # From the last one on, so that the numbers of the others stay.
    for first, start, last, end in reversed(find_split_messages(texts)):
        before, after = (tokens[number].raw for number in (first, last))
        inner = "".join(one.raw for one in tokens[first + 1 : last])
        raw = f"{before[start:]}{inner}{after[:end]}"
        parts: tuple[tuple[TokenKind, str], ...] = (
            ("text", before[:start]),
            ("copy", raw),
            ("text", after[end:]),
        )
        tokens[first : last + 1] = [Token(kind, raw) for kind, raw in parts if raw]
    return tokens


def visible_text(document: str) -> str:
    """Return a document's text without tags, scripts and comments."""
    return _text_of(list(cut_html(document)))


def _text_of(tokens: Sequence[Token]) -> str:
    parts = [
        unescape(token.raw) if token.kind == "text" else " " if token.name in _BLOCKS else ""
        for token in tokens
    ]
    return _SPACES.sub(" ", "".join(parts))


def _is_box(name: str) -> bool:
    """Tell whether an element holds its own text, next to the sentence that it stands in."""
    # A name with a hyphen is that of a custom element, which may show anything.
    return name in _BOXES or "-" in name


def _is_translated(token: Token) -> bool | None:
    """Tell whether a tag says that its content is translated; None if it says nothing."""
    # Nearly every tag ends here, before its attributes are read.
    if "translat" not in token.raw.lower():
        return None
    values = {name: _value(found).lower() for name, found in token.attributes().items()}
    if values.get("translate") == "no" or "notranslate" in values.get("class", "").split():
        return False
    return True if values.get("translate") in ("yes", "") else None


def _value(attribute: re.Match[str]) -> str:
    return unescape((attribute[2] or "").strip("\"'"))


def _read_tag(token: Token, languages: tuple[str, str]) -> list[Piece]:
    """Cut a tag at the values of attributes that readers see."""
    if not _HAS_LABEL.search(token.raw) or _is_translated(token) is False:
        return [token.raw]
    found = token.attributes()
    values = {name: _value(match).lower() for name, match in found.items()}
    shown = set(_LABELS)
    if token.name == "input" and values.get("type") in _BUTTON_TYPES:
        shown.add("value")
    # Components of MDX begin with a capital: of tabs and cards it is the title.
    if token.name in ("option", "optgroup", "track") or token.raw[1:2].isupper():
        shown.add("label")
    if token.name == "meta" and not _DESCRIPTIONS.isdisjoint(map(values.get, ("name", "property"))):
        shown.add("content")
    pieces: list[Piece] = []
    place = 0
    for name, match in found.items():
        raw = match[2] or ""
        quote = raw[0] if raw[:1] in ("'", '"') and raw[-1:] == raw[0] and len(raw) > 1 else ""
        start = match.start(2) + len(quote)
        end = match.end(2) - len(quote)
        if name in ("lang", "xml:lang"):
            if all(languages) and are_same_language(_value(match), languages[0]):
                pieces += [token.raw[place:start], str(read_tag(languages[1]))]
                place = end
        elif name in shown and raw:
            maker = Maker(QUOTED[quote or "="])
            add_html_text(maker, token.raw[start:end])
            pieces += [token.raw[place:start], maker.take()]
            place = end
    return [*pieces, token.raw[place:]]


@dataclass
class _Frame:
    """A part of a document that is read by itself: all of it, a box, or what is copied.

    Attributes:
        stop: the place of its last token.
        role: the part it plays in what is around it; only a box is translated.
        start: the place of its first token.
        pieces: what was read.
        maker: the segment that is being read.
        tags: the tags since its last text, with what they begin.
    """

    stop: int
    role: Role
    start: int = 0
    pieces: list[Piece] = field(default_factory=list)
    maker: Maker = field(default_factory=Maker)
    tags: list[tuple[Token, list[Piece]]] = field(default_factory=list)

    def add_tags(self, following: str = "") -> None:
        """Add the tags before some text to the segment, or to two if elements touch there."""
        cut = self._find_cut(following)
        for number, (token, pieces) in enumerate(self.tags):
            if number == cut:
                self._take()
            if token.kind == "end" and token.name == "a" and self.maker.link_start < 0:
                self._take()  # Of a link around breaks: what follows must not move into it.
                self.pieces += pieces
            else:
                self.maker.add_tag(token, pieces)
        self.tags.clear()

    def _find_cut(self, following: str) -> int | None:
        """Find the start tag that begins a segment: it touches the element before it."""
        last = self.maker.last
        if not following.strip() or not last.strip() or self.maker.link_start > 0:
            return None
        closed = ""
        opened = list[tuple[str, int]]()
        is_raised = False
        for number, (token, _) in enumerate(self.tags):
            is_raised = is_raised or token.name in RAISED
            if token.kind == "start":
                opened.append((token.name, number))
            elif token.kind == "end" and opened and opened[-1][0] == token.name:
                opened.pop()
            elif token.kind == "end":
                closed = token.name
                opened = []
        if not closed or not opened:
            return None
        name, number = opened[0]
        touches = following.isalnum() and (last.isalnum() or last in _BREAKS) and not is_raised
        # In scripts without spaces words always touch.
        is_within = is_unspaced(last) and is_unspaced(following)
        return number if closed == name == "a" or (touches and not is_within) else None

    def add_text(self, raw: str) -> None:
        """Add text."""
        if raw:
            # No named reference is longer than 40 characters, and only the first one counts.
            self.add_tags(unescape(raw[:40])[:1])
            add_html_text(self.maker, raw)

    def end(self, pieces: Sequence[Piece] = ()) -> None:
        """End the segment, and add what follows it."""
        self.add_tags()
        self._take()
        self.pieces += pieces

    def _take(self) -> None:
        segment = self.maker.take()
        self.maker = Maker()
        if segment.pieces:
            self.pieces.append(segment)


class _Reader:
    """Reads the tokens of a document.

    Args:
        tokens: the tokens.
        languages: as for `read_segments`.
    """

    def __init__(self, tokens: list[Token], languages: tuple[str, str]) -> None:
        self._tokens = tokens
        self._languages = languages
        self._pairs = match_tags(tokens)
        self._frames = [_Frame(-1, "box")]
        self._num_pre = 0
        # Counted up to each token, so that blocks in a link are found without looking through it.
        self._breaks = list(accumulate(one.name in _BLOCKS for one in tokens))

    def read(self) -> list[Piece]:
        """Return the document as parts."""
        for place, token in enumerate(self._tokens):
            frame = self._frames[-1]
            if frame.role != "box":
                self._copy(frame, token, place)
            elif place != frame.stop:
                self._read(frame, token, place)
            while self._frames[-1].stop == place:
                self._leave(token)
        self._frames[0].end()
        return self._frames[0].pieces

    def _copy(self, frame: _Frame, token: Token, place: int) -> None:
        """Read a token of a part that is not translated."""
        # `translate="yes"` may stand within what is not translated.
        if self._stop(frame, place) is not None and _is_translated(token):
            self._enter("box", place)
        else:
            frame.pieces.append(token.raw)

    def _read(self, frame: _Frame, token: Token, place: int) -> None:
        """Read a token of a part that is translated."""
        if token.kind == "text":
            # In `pre` each line is a separate text.
            for number, line in enumerate(token.raw.split("\n") if self._num_pre else [token.raw]):
                if number:
                    frame.end(["\n"])
                frame.add_text(line)
            return
        if token.kind == "copy":
            frame.add_tags()
            frame.maker.add_copy([token.raw], _text_of([*cut_html(token.raw)]), "")
            return
        stop = self._stop(frame, place)
        role = None if stop is None else self._role(frame, place, stop)
        if role is not None:
            self._enter(role, place)
            return
        has_labels = token.kind in ("start", "void")
        pieces: list[Piece] = _read_tag(token, self._languages) if has_labels else [token.raw]
        has_breaks = self._num_pre or (stop and self._breaks[stop] > self._breaks[place])
        is_around = token.name == "a" and token.kind == "start" and has_breaks
        if token.name in _BLOCKS or is_around or (_is_box(token.name) and token.kind != "void"):
            frame.end(pieces)
            if token.name == "pre":
                self._num_pre = max(0, self._num_pre + (1 if token.kind == "start" else -1))
        else:
            frame.tags.append((as_block(token), pieces))

    def _stop(self, frame: _Frame, place: int) -> int | None:
        """Find the last token of an element that may be read by itself."""
        stop = self._pairs.get(place)
        is_inside = stop is not None and (frame.stop < 0 or stop < frame.stop)
        return stop if is_inside and len(self._frames) < _MOST_BOXES else None

    def _role(self, frame: _Frame, place: int, stop: int) -> Role | None:
        """Find the part that an element plays if it is not an inline element or a block."""
        token = self._tokens[place]
        is_translated = _is_translated(token)
        if token.name in _HIDDEN:
            return "point"
        if is_translated is False or (token.name in _COPIED and is_translated is None):
            return "block" if token.name in _BLOCKS else "point" if _is_box(token.name) else "copy"
        if self._is_mark(place, stop):
            following = self._tokens[stop + 1].raw[:1] if stop + 1 < len(self._tokens) else ""
            is_inside = frame.maker.last.isalnum() and not frame.tags and following.isalnum()
            return "copy" if is_inside else "point"
        return "box" if _is_box(token.name) and frame.maker.has_letters else None

    def _is_mark(self, place: int, stop: int) -> bool:
        """Tell whether an element is a footnote's mark or an index: it has no letters."""
        if stop - place > _FEW_TOKENS or self._tokens[place].name not in ("sup", "sub", "a"):
            return False
        text = _text_of(self._tokens[place : stop + 1]).strip()
        is_raised = self._tokens[place].name in RAISED or text.startswith("[")
        return is_raised and bool(text) and not any(map(str.isalpha, text))

    def _enter(self, role: Role, place: int) -> None:
        languages = self._languages if role == "box" else ("", "")  # a copy keeps its language
        pieces = _read_tag(self._tokens[place], languages)
        self._frames.append(_Frame(self._pairs[place], role, place, pieces))

    def _leave(self, token: Token) -> None:
        """End a part, and add it to what is around it."""
        frame = self._frames.pop()
        outer = self._frames[-1]
        name = self._tokens[frame.start].name
        if frame.role == "box":
            frame.end([token.raw])
        if outer.role != "box":
            outer.pieces += frame.pieces
        elif frame.role == "block":
            outer.end(frame.pieces)
        elif frame.role == "copy":
            text = _text_of(self._tokens[frame.start : frame.stop + 1])
            outer.add_tags(text.strip()[:1])
            outer.maker.add_copy(frame.pieces, text, name)
        else:
            outer.tags.append((Token("void", "", name), frame.pieces))
