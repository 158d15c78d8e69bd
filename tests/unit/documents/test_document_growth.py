"""Documents of every format are read and written back in time that grows as their size does."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from growing import MOST, exponent, find_growing

from pellucid.documents import po
from pellucid.documents.formats import FORMATS
from pellucid.documents.placeholder_masks import mask
from pellucid.documents.segment_writing import write_segment
from pellucid.documents.units import How, Unit
from pellucid.errors import DataError
from pellucid.text.line_words import line_words

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from documents import Answer

NUM_MOTIFS = 6
HOW = How(languages=("en", "fr"))

XLIFF = '<xliff version="1.2"><file source-language="en"><body>{}</body></file></xliff>'
TMX = '<tmx version="1.4"><header/><body>{}</body></tmx>'
CUE = "00:00:01,000 --> 00:00:02,000\n"
FRAMES = {
    "po": ("{}", 'msgid "a"\nmsgstr "{}"\n', 'msgid "a {} b"\nmsgstr ""\n', "#, {}\n"),
    "srt": ("{}", f"{CUE}a{{}}b\n\n{CUE}c\n", f"{CUE}a.{{}}b\n"),
    "vtt": ("WEBVTT {}", f"WEBVTT\n\n{CUE}a{{}}b\n\n{CUE}c\n", f"WEBVTT\n\n{CUE}{{}}b\n"),
    "xliff": (
        XLIFF.format('<trans-unit id="a"><source>a {} b</source></trans-unit>'),
        XLIFF.format('<trans-unit id="{}"><source>a</source><target></target></trans-unit>'),
        XLIFF.format(
            '<trans-unit id="a"><source>a</source><target {} state=""></target></trans-unit>'
        ),
    ),
    "tmx": (
        TMX.format('<tu><tuv xml:lang="en"><seg>a {} b</seg></tuv></tu>'),
        TMX.format('<tu tuid="{}"><tuv xml:lang="en" {}><seg>a</seg></tuv></tu>'),
    ),
    "android": (
        '<resources><string name="a">a {} b</string></resources>',
        '<resources><string name="{}" {}>a</string></resources>',
    ),
    "resx": (
        '<root><data name="a"><value>a {} b</value></data></root>',
        '<root><data name="{}" {}><value>a</value></data></root>',
    ),
    "qt": (
        "<TS><context><message><source>a {} b</source><translation/></message></context></TS>",
        "<TS><context>{}</context></TS>",
    ),
    "fluent": ("{}", "a = b {} c\n", "a = { $b ->\n  [c] {}\n }\n", "a =\n  b\n{}\n"),
    "markdown": ("{}", "a {} b", "| a | b |\n|---|---|\n| {} | b |\n"),
    "html": ("{}", "<p>a {} b", '<p title="a" {}>b', '<p title="a {} b">'),
    "json": ('{"a": "b {} c"}', '{"{}": "a"}', '{"a": "b"{}}'),
    "xcstrings": (
        '{"strings": {"b {} c": {"comment": "a"}}}',
        '{"strings": {"a": {"localizations": {{}"b": {}}}}}',
    ),
    "yaml": ("{}", "a: b {} c", 'a: "b {} c"', "a: 'b {} c'", "a: |\n  b {} c", "a: >\n  b {} c"),
    "properties": ("{}", "a = b {} c", "{}\\", "a = {0} {}"),
    "strings": ("{}", '"a" = "b {} c";', '"{}" = "a";'),
    "csv": ("{}", "id,text\n1,a {} b\n", 'id,text\n1,"a {} b"\n'),
    "tsv": ("{}", "id\ttext\n1\ta {} b\n", 'id\ttext\n1\t"a {} b"\n'),
    "docx": tuple(
        f"\x1ea\n<w:document xmlns:w='w'>{one}</w:document>"
        for one in (
            "<w:p><w:r><w:t>a {} b</w:t></w:r></w:p>",
            "<w:p><w:r><w:t>a</w:t></w:r>{}<w:r><w:t>b</w:t></w:r></w:p>",
            "<w:p>{}</w:p>",
            "<w:p><w:r><w:rPr {}/><w:t>a</w:t></w:r></w:p>",
        )
    ),
    "pptx": (
        "\x1ea\n<p:sld xmlns:p='p' xmlns:a='a'><a:p><a:r><a:t>a {}</a:t></a:r></a:p></p:sld>",
    ),
    "xlsx": ("\x1ea\n<sst><si><t>a {} b</t></si></sst>", "\x1ea\n<sst><si>{}</si></sst>"),
    **dict.fromkeys(
        ("odt", "odp", "ods"),
        (
            "\x1ea\n<o:document-content xmlns:o='o' xmlns:t='t'><t:p>a {} b</t:p>"
            "</o:document-content>",
        ),
    ),
    "epub": ("\x1ea\n<html><p>a {} b</p></html>", "\x1ea\n<ncx><text>a {} b</text></ncx>"),
}
"""Places of a document of each format that repeated signs take."""
SIGNS = (
    *("a", "b ", " ", "\t", "\n", "\n\n", "\r\n", "\u00a0", "é", "1", ".", ",", ";", ":", "=", "-"),
    *("*", "_", "~", "#", "!", "?", "|", "/", "\\", "`", "'", '"', "(", ")", "[", "]", "{", "}"),
    *("<", ">", "&", "%", "$", "@", "+", "%s", "{0}", "{a, plural, ", "http://", "&amp;", "&#"),
    *("<b>", "</b>", "<x/>", "<g id='1'>", "</g>", "<v ", "<a href='", "<br>", "<code>", "</code>"),
    *("<w:r><w:rPr><w:b/></w:rPr><w:t>a b</w:t></w:r>", "<w:p>", "</w:p>", "<w:hyperlink>"),
    *("<w:r><w:br/><w:t>a</w:t></w:r>", "<t:span>a</t:span>", "<t:s/>", "<w:sdt>", "</w:sdt>"),
    *("<w:r><w:t>a</w:t></w:r><w:x/>", '<w:fldChar w:fldCharType="begin"/>', "</w:hyperlink>"),
    *("<!--", "-->", "<![CDATA[", "]]>", "\\n", "\\u00e9", '\\"', '""', "''", '"\n"', "\\\n"),
    *("\\(", "[b]", "[/b]", "[url=a]", "|{0}", "[1,2]", ": ", "\n: a"),
    *(CUE, f"\n \n{CUE}", "msgid ", '"a":', "title="),
)
"""Signs that some format has a use for."""
FOUND = (
    ("properties", "{}\\", "a", 150),
    ("srt", f"{CUE}a{{}}b\n", " ", 4000),
    ("srt", f"{CUE}a{{}}b\n\n{CUE}c\n", '"', 4000),
    ("srt", f"{CUE}a{{}}", f"\n \n{CUE}b c", 30_000),
    ("srt", f"{CUE}a{{}}\n\nb\nc\n{CUE}d", "\n", 1000),
    ("android", '<resources><string name="a">{}-</string></resources>', "\\n", 4000),
    ("po", "{}x", " ", 8000),
    ("po", 'msgid "a{}b"\nmsgstr ""', '"\n"', 40_000),
    (
        "xliff",
        XLIFF.replace("{}", '<a{}:trans-unit id="a"><source>a</source></a{}:trans-unit>'),
        "a",
        4000,
    ),
    ("xliff", FRAMES["xliff"][0], '<g id="1">a b</g>', 8000),
    ("xliff", FRAMES["xliff"][2], " ", 8000),
    ("yaml", "a: |\n  b{}c", " ", 4000),
    ("html", '<p title="a"{}>', " ", 16_000),
    ("html", "<p>a{}b", "&#32;", 100_000),
    ("json", '{"a": "{{}b c"}', " ", 4000),
    ("json", '{"a": "{} b"}', "{", 20_000),
    ("json", '{"a": "{} b"}', "%", 20_000),
    ("html", "<p>{} b", "{n, plural, =1 {<b>", 20_000),
    ("docx", FRAMES["docx"][2], "<w:r><w:rPr><w:b/></w:rPr><w:t>a b</w:t></w:r><w:x/>", 4000),
    ("docx", FRAMES["docx"][2], "<w:hyperlink><w:r><w:t>a b</w:t></w:r></w:hyperlink>", 4000),
    ("odt", FRAMES["odt"][0], "<t:span>a</t:span>", 16_000),
)
"""Documents that took quadratic time or more, with a size that shows it."""


class _Read:
    """Reads a document and writes it with its own texts and a word more as translations."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, document: str | Iterable[str]) -> None:
        try:
            parts = list(FORMATS[self._name].read(document, HOW))
        except DataError:
            return
        for unit in parts:
            for segment in unit.segments if isinstance(unit, Unit) else ():
                words = line_words(segment.text.strip())
                links = [(k, k) for k in range(len(words))]
                text = f"{segment.text.strip()} x"
                write_segment(segment, [Answer(text, line_words(text), links)], words)
        assert "".join(map(str, parts))


@pytest.mark.parametrize(("name", "frame", "motif", "size"), FOUND)
def test_document_that_took_quadratic_time_takes_linear_time(
    name: str, frame: str, motif: str, size: int
) -> None:
    assert exponent(_Read(name), frame, motif, size) < MOST


@pytest.mark.parametrize("name", FORMATS)
def test_repeated_signs_take_linear_time(name: str) -> None:
    read = _Read(name)
    found = find_growing(read, FRAMES[name], SIGNS, motifs=NUM_MOTIFS, size=2000, seed=name)
    assert not found


def test_guard_quadratic_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(po, "_LINE", re.compile(r"[ \t]*(?:#[^\n]*)?[ \t]*\n"))
    assert exponent(_Read("po"), "{}x", " ", 2000) > MOST


def test_quoted_cell_over_many_chunks_takes_linear_time() -> None:
    def read(document: str) -> None:
        _Read("csv")(document.splitlines(keepends=True))

    assert exponent(read, 'id,text\n1,"{}"\n', "a\n", 2000) < MOST


def test_symbols_of_masks_take_linear_time() -> None:
    symbol = next(iter(mask("a %s b")[1]))
    assert exponent(mask, "{}%s", symbol, 4000) < MOST
