"""PO and POT: the messages of gettext, with their plurals, contexts and flags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pellucid.documents.escapes import QUOTED, Strings
from pellucid.documents.markup.placeholder_shapes import codes_of
from pellucid.documents.markup.segments import Piece, Segment
from pellucid.documents.units import Mark, Source, Unit
from pellucid.languages.codes import are_same_language, read_tag
from pellucid.languages.plurals import plural_rule

_LINE = re.compile(
    r"[ \t]*+(?:(?P<comment>#[^\n]*+)"
    r"|(?:(?P<keyword>msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)[ \t]*+)?+"
    r"\"(?P<string>(?:[^\"\\\r\n]|\\[^\r\n])*+)\"[ \t]*+)?+\r?(?:\n|\Z)"
)
_KEYWORD = re.compile(r"\A(?:msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)(?![a-z_])[ \t]*")
_FLAGS = re.compile(r"^#,[ \t]*(.*?)\r?$", re.MULTILINE)
_COMMENT = re.compile(r"^#\.[ \t]?(.*?)\r?$", re.MULTILINE)
_OBSOLETE = re.compile(r"^#~[ \t]*msgid[ \t]", re.MULTILINE)
_MOST_FORMS = 6
"""Forms of a plural in Arabic; no language has more."""
_TEMPLATE = re.compile(r"charset=CHARSET|nplurals=INTEGER|YEAR-MO-DA|FULL NAME <EMAIL")
"""What xgettext and Babel leave open in the header of a template."""
_FIELD = re.compile(r"(?:\A|(?<=\\n))(?:\"[ \t]*\r?\n[ \t]*\")*+(Language|Plural-Forms):")
_STRINGS = Strings(QUOTED, breaks=r"\"[ \t]*\r?\n[ \t]*\"")

Span = tuple[int, int]
Form = tuple[Span, Span]
"""The places of what a form of a message translates, and of the form."""
Texts = dict[str, Span]
"""The places of a message's texts between their first and last quotes, by keyword."""


def read_po(source: Source) -> Iterator[Unit]:
    """Find the messages without a translation, or with ``has_all`` all but obsolete ones.

    Raises:
        DataError: a line cannot be read, a message stands twice or has too few plurals,
            or the header names another encoding than UTF-8.
    """
    num_plurals = 0
    needs_number = False
    is_template = False
    seen: dict[tuple[str | None, str], int] = {}
    for start, spans in _read_entries(source):
        texts = {name: _text(source, span) for name, span in spans.items()}
        place = spans.get("msgid", (start, 0))[0]
        translations = [text for name, text in texts.items() if name.startswith("msgstr")]
        if "msgid" not in texts or not translations:
            source.refuse(
                place, "A message must have msgid and msgstr, but lacks one", "Complete it."
            )
        key = (texts.get("msgctxt"), texts["msgid"])
        if key in seen:
            first = source.line(seen[key])
            what = f"A message must stand once, but is that of line {first} again"
            source.refuse(place, what, "Remove one of them, as msguniq does.")
        seen[key] = place
        # The message without a text is the header.
        if not texts["msgid"] and key[0] is None:
            header = texts.get("msgstr", "")
            if "msgstr" in spans and not source.how.has_pairs:
                filled = _fill_header(source.text[slice(*spans["msgstr"])], source.how.languages[1])
                if filled:
                    is_template = True
                    header = _STRINGS.read(filled)[1].text
                    yield _header(source, start, spans["msgstr"], filled)
            num_plurals, needs_number = _read_header(source, place, header)
            continue
        forms = _forms(source, spans, needs_number=needs_number)
        num_forms = len(forms)
        if is_template and "msgid_plural" in texts:
            num_forms = num_plurals or num_forms
        if len(forms) > _MOST_FORMS:  # Each is as long as the message.
            what = f"A plural must have at most {_MOST_FORMS} forms, but has {len(forms)}"
            source.refuse(place, what, "Remove the others.")
        if "msgid_plural" in texts and num_forms < num_plurals:
            what = f"A plural must have {num_plurals} forms, but has {num_forms}"
            source.refuse(place, what, "Add msgstr[…] for the others, as msgmerge does.")
        if source.how.has_pairs:
            yield from _pairs(source, start, spans, forms)
        elif source.how.has_all or not any(map(str.strip, translations)):
            yield _unit(source, start, spans, forms, num_forms)
        elif _is_fuzzy(source, start, spans):
            source.how.left["fuzzy"] += 1
    for match in _OBSOLETE.finditer(source.text if source.how.has_pairs else ""):
        # The empty segment makes it a unit, so that it is counted among those left out.
        yield Unit("", *match.span(), [Segment()], state="obsolete")


def _pairs(source: Source, start: int, spans: Texts, forms: Sequence[Form]) -> Iterator[Unit]:
    """Yield each form of a message with its translation."""
    state = "fuzzy" if _is_fuzzy(source, start, spans) else ""
    for form in forms:
        own, old = (_STRINGS.pieces(source.text[slice(*span)]) for span in form)
        yield Unit("", *spans["msgid"], own, old=old, state=state)


def _is_fuzzy(source: Source, start: int, spans: Texts) -> bool:
    flags = _FLAGS.search(source.text, start, spans["msgid"][0])
    return flags is not None and "fuzzy" in flags[1]


def _forms(source: Source, spans: Texts, *, needs_number: bool) -> list[Form]:
    """Find each form with what it translates: in some languages the first is that of 21 too."""
    first, *others = (span for name, span in spans.items() if name.startswith("msgstr"))
    one = spans["msgid"]
    other = spans.get("msgid_plural", one)
    codes = [codes_of(source.text[slice(*span)]) for span in (one, other)]
    # `one file` lacks the number of `%d files`, which a form for 1 and 21 must show.
    is_other = not others or (needs_number and codes[0] != codes[1])
    return [(other if is_other else one, first), *((other, form) for form in others)]


def _unit(source: Source, start: int, spans: Texts, forms: Sequence[Form], count: int) -> Unit:
    """Make a unit from the flags of a message to its last form; a template gets so many."""
    text = source.text
    entry = start
    key = spans["msgid"]
    flags = _FLAGS.search(text, start, key[0])
    place = start if flags is None else flags.start(1)
    first = text.rfind("\n", 0, spans.get("msgctxt", key)[0]) + 1
    pieces: list[Piece | Mark] = []
    # If it is marked, a message without flags gets a line of them above its first keyword.
    if flags is None:
        place = first
        newline = "\r\n" if "\r\n" in text[start : forms[0][1][0]] else "\n"
        pieces = [Mark("", f"#, fuzzy{newline}")]
    elif "fuzzy" not in flags[1]:
        pieces = [Mark("", "fuzzy, ")]
    start = place
    newline = "\r\n" if "\r\n" in text[start : forms[0][1][0]] else "\n"
    # With one form for all numbers it is that of the plural.
    owns = [own for own, _ in forms[-count:]]
    owns += owns[-1:] * (count - len(forms))
    for number, own in enumerate(owns):
        before = f'"{newline}msgstr[{number}] "'
        if number < len(forms):
            begin, end = forms[number][1]
            before = text[place:begin]
            place = end
        pieces += [before, *_STRINGS.pieces(text[slice(*own)], source.how.languages[1])]
    place = forms[-1][1][1]
    names = {one: _text(source, spans[one]) for one in ("msgctxt", "msgid") if one in spans}
    unit = Unit("|".join(names.values()), start, place, pieces, source.line(key[0]))
    unit.context = names.get("msgctxt", "")
    unit.comment = "\n".join(_COMMENT.findall(text, entry, key[0]))
    return unit


def _read_entries(source: Source) -> Iterator[tuple[int, Texts]]:
    """Read messages, each with its first place; comments belong to the message after them."""
    start = 0
    texts = Texts()
    last = ""
    place = 0
    while place < len(source.text):
        match = _LINE.match(source.text, place)
        if match is None:
            line = source.text[place:].split("\n", 1)[0].strip()
            what = f"A line must be a keyword with a text in quotes, but {_fault_of(line)}"
            advice = "Correct it; msgfmt -c -o /dev/null FILE lists all faults."
            source.refuse(place, f"{what}: {line[:60]}", advice)
        keyword = match["keyword"]
        span = match.span("string")
        is_start = keyword in ("msgctxt", "msgid") and last.startswith("msgstr")
        if is_start or (match["string"] is None and last.startswith("msgstr")):
            yield start, texts
            start = place
            texts = {}
            last = ""
        if keyword:
            if keyword in texts:
                source.refuse(place, f"A message must have one {keyword}, but has two", "Split it.")
            texts[keyword] = span
            last = keyword
        elif match["string"] is not None:
            if not last:
                source.refuse(place, "A text must follow a keyword, but has none", "Add msgid.")
            texts[last] = (texts[last][0], span[1])
        place = match.end()
    if texts:
        yield start, texts


def _fault_of(line: str) -> str:
    """Say what is wrong with a line that cannot be read."""
    text = _KEYWORD.sub("", line)
    if not text.startswith('"'):
        return "this one is not" if text == line else "the opening quote is missing"
    quotes = len(re.findall(r"(?<!\\)(?:\\\\)*\"", text))
    if quotes == 1:
        return "the closing quote is missing"
    return 'a quote in the text has no backslash before it (\\")'


def _text(source: Source, span: Span) -> str:
    return _STRINGS.read(source.text[slice(*span)])[1].text


def _fill_header(text: str, target: str) -> str:
    """Fill in what a template leaves open for its language, as msginit does; empty without that."""
    language = read_tag(target)
    if not _TEMPLATE.search(text) or not language.language:
        return ""
    name = "_".join(filter(None, (language.language, language.region)))
    rule = plural_rule(target)
    filled = text.replace("charset=CHARSET", "charset=UTF-8")
    filled = re.sub(r"(?<=\"Language:) *(?=\\n)", f" {name}", filled)
    if rule:
        filled = re.sub(r"nplurals=INTEGER;[ \t]*plural=EXPRESSION", lambda _: rule, filled)
    # Babel writes neither, and programs then take the language to be unknown.
    there = {one[1] for one in _FIELD.finditer(filled)}
    newline = "\r\n" if "\r\n" in text else "\n"
    for field, value in (("Language", name), ("Plural-Forms", f"{rule};" if rule else "")):
        if value and field not in there and filled.endswith("\\n"):
            filled += f'"{newline}"{field}: {value}\\n'
    return filled


def _header(source: Source, start: int, span: Span, filled: str) -> Unit:
    """Make a unit of the header of a template, without the flag that says it is one."""
    flags = _FLAGS.search(source.text, start, span[0])
    place = flags.start() if flags and flags[1] == "fuzzy" else span[0]
    after = source.text.find("\n", place) + 1 if flags and place < span[0] else place
    # The empty segment makes it a unit: without one it would be copied.
    return Unit("", place, span[1], [source.text[after : span[0]], filled, Segment()])


def _read_header(source: Source, place: int, header: str) -> tuple[int, bool]:
    """Check the encoding of a header; return its number of plurals, and if 1 and 21 share one."""
    charset = re.search(r"charset=([\w.:-]+)", header)
    # A template has the word CHARSET in the place of an encoding.
    if charset and charset[1].lower() not in ("utf-8", "utf8", "us-ascii", "ascii", "charset"):
        what = f"The encoding must be UTF-8, but the header names {charset[1]}"
        source.refuse(place, what, "Convert the file with msgconv -t UTF-8.")
    language = re.search(r"^Language:[ \t]*([\w@.-]+)", header, re.MULTILINE)
    wanted = source.how.languages[1]
    if language and wanted and not are_same_language(language[1], wanted):
        what = f"The language must be {wanted}, but the header names {language[1]}"
        source.refuse(place, what, "Use a model of these languages, or correct the header.")
    # Nine digits at most: Python refuses to read a number of more than 4,300.
    plurals = re.search(r"nplurals\s*=\s*(\d{1,9}).*", header)
    # A remainder, as in n%10==1, is how a rule gives 1 and 21 the same form.
    return (int(plurals[1]), "%" in plurals[0]) if plurals else (0, False)
