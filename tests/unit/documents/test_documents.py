"""Documents of every format: copied byte by byte, and with their codes under any translator."""

from __future__ import annotations

import csv
import io
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from lxml import etree

from pellucid.documents.formats import FORMATS, format_of
from pellucid.documents.markup.placeholder_shapes import find_placeholders
from pellucid.documents.segment_writing import write_segment
from pellucid.documents.units import How, Unit
from pellucid.errors import DataError
from pellucid.text.line_words import line_words

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from documents import (
    HOW,
    TRANSLATORS,
    Answer,
    Maker,
    change_case,
    check_hostile,
    copy,
    find_faults,
    translate,
)

COUNT = 4


@pytest.mark.parametrize("name", FORMATS)
def test_generated_documents_come_back_equal_or_with_their_codes(name: str) -> None:
    for seed in range(1, COUNT + 1):
        document, expected = Maker(seed).make(name)
        for translator in TRANSLATORS:
            answer, segments = translate(name, document, translator, seed)
            assert not find_faults(name, document, answer, segments), f"{document}\n{answer}"
            if translator is copy:
                assert answer == expected


def test_guard_lost_code_is_found() -> None:
    document, _ = Maker(1).make("json")
    answer, segments = translate("json", document, copy)
    for segment in segments:
        segment.written = ""
    assert find_faults("json", document, answer, segments)


def units_of(name: str, document: str, how: How | None = None) -> list[Unit]:
    """List the units of a document."""
    parts = FORMATS[name].read(document, how or How(languages=("en", "fr")))
    return [one for one in parts if isinstance(one, Unit)]


def answered(document: str, answers: Sequence[str], name: str = "json") -> tuple[str, str]:
    """Translate the only segment of a document; return it as written, and why to look at it."""
    (unit,) = units_of(name, document)
    (segment,) = unit.segments
    write_segment(segment, [Answer(text, (), None) for text in answers])  # type: ignore[arg-type]
    return str(unit), segment.reason


@pytest.mark.parametrize(
    ("text", "copies"),
    [
        ("Read %d of %(name)s", ["%d", "%(name)s"]),
        ("%1$s: %2$-5.2f%%", ["%1$s", "%2$-5.2f", "%%"]),
        ("for %dm and 100 % sure", ["%d"]),
        ("{} {0} {name!r:>10} ${x} $HOME", ["{}", "{0}", "{name!r:>10}", "${x}", "$HOME"]),
        ("{{ user.name }} %1 %L2 %n files", ["{{ user.name }}", "%1", "%L2", "%n"]),
        (
            "{n, plural, one {# day} other {# days}} left",
            ["{n, plural, one {# day} other {# days}}"],
        ),
        ("{ $count } of { -brand-name }", ["{ $count }", "{ -brand-name }"]),
        ("See https://a.b/c?d=e, or me@x.org.", ["https://a.b/c?d=e", "me@x.org"]),
        ("use --dry-run or --output=FILE, non--option", ["--dry-run", "--output=FILE"]),
        ("open <file> as <b>text</b>", ["<file>"]),
        (
            "%{count} dogs, $t(app.dog), :count of :smile:",
            ["%{count}", "$t(app.dog)", ":count", ":smile:"],
        ),
        ("<0>All</0> of <1/>", ["<1/>"]),
        ("a note[^1] and [^b-2].", ["[^1]", "[^b-2]"]),
        (
            "@string/dog2 ?attr/title @+id/foo @null",
            ["@string/dog2", "?attr/title", "@+id/foo", "@null"],
        ),
        ("as $x_1 + y_1$ says", ["$x_1 + y_1$"]),
        ("{see below}, 5 < 6 & 7 > 3, $5 and $6, at 10:30, why?see/that, std::x", []),
    ],
)
def test_placeholders_are_found_as_the_table_says(text: str, copies: list[str]) -> None:
    assert [one.text for one in find_placeholders(text) if one.token is None] == copies


def test_placeholders_choose_the_first_hypothesis_that_keeps_them() -> None:
    written, reason = answered('{"a": "Read %s and {n}"}', ["Lire {n}", "Lire {n} et %s"])
    assert (written, reason) == ("Lire {n} et %s", "")


def test_placeholders_that_are_lost_come_back_and_too_many_go() -> None:
    written, reason = answered('{"a": "Read %s now"}', ["Lire %d maintenant %s et %s"])
    assert written == "Lire maintenant %s et"
    assert "placeholders were lost" in reason
    assert answered('{"a": "Read %s now"}', ["Lire maintenant"])[0].count("%s") == 1


@pytest.mark.parametrize(
    "text", ["git clone git@gitlab.com:procps-ng/procps.git", "RULE:^CN=(.*?)$/$1@example.com/,DEF"]
)
def test_what_looks_like_a_placeholder_next_to_one_is_text(text: str) -> None:
    assert answered(f'{{"a": "{text}"}}', [text]) == (text, "")


def test_placeholders_of_other_kinds_keep_their_order_unless_they_have_numbers() -> None:
    assert answered('{"a": "%s has %d"}', ["%d de %s"]) == (
        "%s de %d",
        "placeholders were lost, and stand after the word before them",
    )
    assert answered('{"a": "%s has %d"}', ["%d de %s", "%s a %d"]) == ("%s a %d", "")
    assert answered('{"a": "%s has %d"}', ["%d"])[0].split()[0] == "%s"
    for text in ("%1$s has %2$d", "%(a)s has %(b)d", "{a} has {b}"):
        first, second = text.split(" has ")
        found = answered(f'{{"a": "{text}"}}', [f"{second} de {first}"])
        assert found == (f"{second} de {first}", "")


@pytest.mark.parametrize(
    ("text", "answer", "written"),
    [
        ("Check & Repair", "C% & Repair", "C & Repair"),
        ("read half of it", "en lire 50 %", "en lire 50 %"),
        ("100 % sure", "s% 100 %", "s% 100 %"),
        ("corrupt %<PRIu64>!", "long <PRIu64> %", "long %<PRIu64>!"),
    ],
)
def test_percent_that_the_source_has_not_goes(text: str, answer: str, written: str) -> None:
    assert answered(f'{{"a": "{text}"}}', [answer])[0] == written


def test_empty_translation_keeps_its_source() -> None:
    written, reason = answered('{"a": "Read \\u00e9 now"}', [" "])
    assert written == "Read \\u00e9 now"
    assert "empty" in reason


@pytest.mark.parametrize(
    ("source", "translation", "written"),
    [
        ("&File", "Fichier", "&Fichier"),
        ("Save &as", "Enregistrer sous", "Enregistrer &sous"),
        ("_Open", "Ouvrir", "_Ouvrir"),
        ("AT&T and R&D", "AT&T et R&D", "AT&T et R&D"),
        ("Cut & paste", "Couper & coller", "Couper & coller"),
    ],
)
def test_accelerator_stands_before_a_letter_of_the_translation(
    source: str, translation: str, written: str
) -> None:
    entry = f'msgid "{source}"\nmsgstr ""\n'
    (unit,) = units_of("po", entry)
    (segment,) = unit.segments
    assert "&F" not in segment.text
    write_segment(segment, [Answer(translation, (), [])])
    found = re.search('msgstr "(.*)', str(unit))
    assert found is not None
    if source == "Save &as":
        written = "&Enregistrer sous"  # No word begins with the same letter.
    assert found[1] == written


PO = r"""# Head
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#. note
#, c-format
msgctxt "menu"
msgid "Open %s\n"
"now"
msgstr ""

msgid "One file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#, fuzzy
msgid "Old"
msgstr "Vieux"

msgid "Done"
msgstr "Fini"

#~ msgid "gone"
#~ msgstr "parti"
"""


def write_po(document: str, how: How | None = None) -> str:
    """Translate a catalog into capitals, and mark everything."""
    rng = random.Random(1)
    parts = list(FORMATS["po"].read(document, how or How()))
    for unit in parts:
        if isinstance(unit, Unit):
            unit.is_marked = True
            for segment in unit.segments:
                words = line_words(segment.text.strip())
                write_segment(segment, [change_case(words, segment.text.strip(), rng)], words)
    return "".join(map(str, parts))


def test_po_gets_translations_plurals_and_flags_and_nothing_else_changes() -> None:
    expected = PO.replace("#, c-format\nmsgctxt", "#, fuzzy, c-format\nmsgctxt")
    expected = expected.replace('"now"\nmsgstr ""', '"now"\nmsgstr "oPEN %s\\n"\n"NOW"')
    expected = expected.replace('msgid "One file"', '#, fuzzy\nmsgid "One file"')
    expected = expected.replace('msgstr[0] ""', 'msgstr[0] "oNE FILE"')
    expected = expected.replace('msgstr[1] ""', 'msgstr[1] "%d FILES"')
    assert write_po(PO) == expected
    all_of_it = write_po(PO, How(has_all=True))
    assert '#, fuzzy\nmsgid "Done"\nmsgstr "dONE"' in all_of_it
    assert all_of_it.count("fuzzy") == 4
    assert all_of_it.endswith('#~ msgid "gone"\n#~ msgstr "parti"\n')


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
def test_po_is_accepted_by_msgfmt(tmp_path: Path) -> None:
    path = tmp_path / "a.po"
    documents = [Maker(seed).make("po")[0] for seed in range(1, 6)]
    for document in (PO, *documents):
        head = "" if document is PO else PO.split("#. note")[0]
        path.write_text(head + write_po(document), encoding="utf-8", newline="")
        done = subprocess.run(
            ["msgfmt", "-c", "--use-fuzzy", "-o", "/dev/null", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        faults = [one for one in done.stderr.splitlines() if "error" in one and "header" not in one]
        assert not faults, f"{faults}\n{path.read_text()}"


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        ("nplurals=1; plural=0", "%d FILES"),
        ("nplurals=2; plural=n!=1", "ONE FILE"),
        ("nplurals=2; plural=n%10!=1", "%d FILES"),
        ("nplurals=3; plural=n%10==1 ? 0 : n%10==2 ? 1 : 2", "%d FILES"),
        ("nplurals=3; plural=n==1 ? 0 : n==2 ? 1 : 2", "ONE FILE"),
    ],
)
def test_first_plural_has_the_number_if_it_is_that_of_21(rule: str, first: str) -> None:
    document, count = f'msgid ""\nmsgstr "Plural-Forms: {rule};\\n"\n\n', int(rule[9])
    document += '#, c-format\nmsgid "one file"\nmsgid_plural "%d files"\n'
    document += "".join(f'msgstr[{number}] ""\n' for number in range(count))
    (unit,) = units_of("po", document)
    for segment in unit.segments:
        write_segment(segment, [Answer(segment.text.upper().replace("%D", "%d"), (), [])])
    assert f'msgstr[0] "{first}' in str(unit)


def test_polib_reads_the_same_messages() -> None:
    polib = pytest.importorskip("polib")
    for entry in polib.pofile(write_po(PO)):
        if entry.msgid == "One file":
            assert entry.msgstr_plural == {0: "oNE FILE", 1: "%d FILES"}
        elif not entry.obsolete and entry.msgid not in ("Old", "Done"):
            assert (entry.msgid, entry.msgstr) == ("Open %s\nnow", "oPEN %s\nNOW")


def test_subtitles_are_the_same_cues_for_pysubs2() -> None:
    pysubs2 = pytest.importorskip("pysubs2")
    for seed in range(1, 6):
        document, _ = Maker(seed).make("srt")
        answer, _ = translate("srt", document, TRANSLATORS[2], seed)
        before, after = (pysubs2.SSAFile.from_string(one) for one in (document, answer))
        assert [(one.start, one.end) for one in before] == [(one.start, one.end) for one in after]


def test_sentence_over_two_cues_is_one_segment_and_speakers_are_two() -> None:
    document = (
        "1\n00:00:01,000 --> 00:00:02,000\nThe cat that\nI saw\n\n"
        "2\n00:00:02,000 --> 00:00:03,000\nwas big.\n\n"
        "3\n00:00:03,000 --> 00:00:04,000\n- Hello.\n- And you?\n"
    )
    first, second = units_of("srt", document)
    assert [one.text for one in first.segments] == ["The cat that I saw was big."]
    assert [one.text for one in second.segments] == ["Hello.", "And you?"]


def test_xliff_of_both_versions_gets_targets_and_states() -> None:
    first = (
        '<xliff version="1.2"><file source-language="en" target-language="fr"><body>'
        '<trans-unit id="a"><source>Red <g id="1">cat</g></source></trans-unit>'
        '<trans-unit id="b"><source>x y</source><target state="new"/></trans-unit>'
        '<trans-unit id="c"><source>x</source><target>z</target></trans-unit>'
        '<trans-unit id="d" translate="no"><source>x</source></trans-unit>'
        "</body></file></xliff>"
    )
    second = (
        '<xliff version="2.0" srcLang="en" trgLang="fr"><file id="f"><unit id="u">'
        '<segment id="s" state="initial"><source>Red <pc id="1">cat</pc></source></segment>'
        "</unit></file></xliff>"
    )
    for document, num_units, state in (
        (first, 2, "needs-review-translation"),
        (second, 1, "initial"),
    ):
        parts = list(FORMATS["xliff"].read(document, How(languages=("en", "fr"))))
        units = [one for one in parts if isinstance(one, Unit)]
        assert len(units) == num_units
        for unit in units:
            unit.is_marked = True
            for segment in unit.segments:
                words = line_words(segment.text)
                write_segment(segment, [copy(words, segment.text, random.Random())], words)
        tree = etree.fromstring("".join(map(str, parts)).encode())
        for source, target in zip(tree.iter("source"), tree.iter("target"), strict=False):
            inner = etree.tostring(source, with_tail=False)[8:-9]
            assert inner in etree.tostring(target) or target.text == "z"
        assert f'state="{state}"'.encode() in etree.tostring(tree)


def test_markdown_copies_what_is_no_text() -> None:
    document = (
        "---\ntitle: A cat\n---\n# The *red* cat\n\n> [!NOTE]\n> A dog, see [x][].\n\n"
        "```\nthe cat\n```\n\n- [x] a cat\n\n| a | b |\n|---|---|\n| cat `x` | dog |\n\n"
        "<p>a <b>bird</b></p>\n\n[x]: http://a.b\n"
    )
    answer, segments = translate("markdown", document, change_case)
    assert [one.text for one in segments] == [
        "A cat", "The red cat", "A dog, see [x][].", "a cat", "a", "b", "cat x", "dog", "a bird",
    ]  # fmt: skip
    assert "# tHE *RED* CAT" in answer
    assert "> [!NOTE]\n> a DOG, SEE [x][].\n" in answer
    assert "| CAT `x` | DOG |" in answer
    assert "<p>A <b>BIRD</b></p>" in answer


def test_markdown_text_that_would_be_markup_is_escaped_or_left() -> None:
    (unit,) = units_of("markdown", "Some text here\n")
    (segment,) = unit.segments
    write_segment(segment, [Answer("1. *a* # b", (), [])])
    assert segment.written == "1\\. \\*a\\* \\# b"


def test_markdown_text_that_ends_in_a_backslash_keeps_the_break_after_it() -> None:
    parts = list(FORMATS["markdown"].read("some text  \nmore text\n", HOW))
    for unit in filter_units(parts):
        for segment in unit.segments:
            write_segment(segment, [Answer("a \\", (), [])])
    assert "".join(map(str, parts)) == "a \\\\  \na \\\\\n"


@pytest.mark.parametrize("name", ["json", "yaml"])
def test_long_path_is_not_kept_whole_for_each_of_its_texts(name: str) -> None:
    texts = ", ".join(f'"t{n}": "A cat."' for n in range(50))
    long = "k" * 900
    document = f'{{"{long}": {{"{long}": {{"{long}": {{{texts}}}}}}}}}\n'
    units = units_of(name, document)
    assert [unit.key.rpartition(".")[2] for unit in units] == [f"t{n}" for n in range(50)]
    assert max(len(unit.key) for unit in units) < 2000
    (unit,) = units_of(name, '{"menu": {"file": ["Open it."]}}\n')
    assert unit.key == "menu.file.0"


def test_yaml_keys_that_are_lists_are_copied() -> None:
    (unit,) = units_of("yaml", "? [the cat, a dog]\n: the house\n")
    assert str(unit) == "the house"


def test_html_lines_are_those_of_the_page_after_languages_changed() -> None:
    page = '<p lang="en-GB">a cat</p><p lang="en-GB">a dog</p>\n<p>a house</p>\n'
    assert [one.line for one in units_of("html", page) if one.segments] == [1, 1, 2]


def test_yaml_text_gets_quotes_if_it_needs_them() -> None:
    (unit,) = units_of("yaml", "a: some text\n")
    (segment,) = unit.segments
    write_segment(segment, [Answer("un: texte", (), [])])
    assert str(unit) == '"un: texte"'


@pytest.mark.parametrize("text", ["2001-99-99", "0x_", "9" * 5000, "[" * 2000])
def test_yaml_text_that_python_cannot_read_as_a_value_gets_quotes(text: str) -> None:
    (unit,) = units_of("yaml", "a: some text\n")
    (segment,) = unit.segments
    write_segment(segment, [Answer(text, (), [])])
    assert str(unit) == f'"{text}"'


NESTED = 5000


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("tmx", '<tmx><body><tu><tuv xml:lang="en"><seg>{}</seg></tuv></tu></body></tmx>'),
        (
            "xliff",
            '<xliff version="1.2"><file source-language="en"><body><trans-unit id="a">'
            "<source>{}</source></trans-unit></body></file></xliff>",
        ),
        ("android", '<resources><string name="a">{}</string></resources>'),
        ("resx", '<root><data name="a"><value>{}</value></data></root>'),
    ],
)
@pytest.mark.parametrize(("opening", "closing"), [("<hi>", "</hi>"), ("<ph><sub>", "</sub></ph>")])
def test_deeply_nested_tags_are_read_and_written(
    name: str, document: str, opening: str, closing: str
) -> None:
    content = f"a {opening * NESTED}dog{closing * NESTED}"
    answer, _ = translate(name, document.replace("{}", content), copy)
    assert content in answer


def test_csv_cell_gets_quotes_if_it_needs_them_and_another_column_takes_it() -> None:
    document = 'id,en,fr\n1,some text,\n2,"a ""b""",\n3,x y,deja\n'
    parts = list(FORMATS["csv"].read(document, How(column="en", into="fr")))
    for unit in parts:
        for segment in unit.segments if isinstance(unit, Unit) else ():
            write_segment(segment, [Answer(f"un, {segment.text}", (), [])])
    rows = list(csv.reader(io.StringIO("".join(map(str, parts)))))
    assert rows[1:] == [
        ["1", "some text", "un, some text"],
        ["2", 'a "b"', 'un, a "b"'],
        ["3", "x y", "deja"],
    ]


def test_file_of_escapes_only_gets_escapes_and_another_does_not() -> None:
    assert answered('{"a": "caf\\u00e9 x"}', ["été"])[0] == "\\u00e9t\\u00e9"
    assert answered('{"a": "café x"}', ["été"])[0] == "été"


@pytest.mark.parametrize(
    ("text", "answer", "written"),
    [
        ("The dog''s {0}.", "L'os du chien {0}.", "L''os du chien {0}."),
        ("The dog {0}.", "L'os {0}.", "L''os {0}."),
        ("The dog's {0}.", "L'os {0}.", "L'os {0}."),
        ("The dog.", "L'os.", "L'os."),
    ],
)
def test_message_of_java_doubles_apostrophes(text: str, answer: str, written: str) -> None:
    assert answered(f"a={text}\n", [answer], "properties") == (written, "")


def test_language_of_arb_becomes_that_of_the_translation() -> None:
    (locale, unit) = units_of("json", '{"@@locale": "en_GB", "a": "A dog", "@a": {"b": "c"}}')
    assert (str(locale), locale.segments, str(unit)) == ("fr", [], "A dog")
    (unit,) = units_of("json", '{"@@locale": "de", "a": "A dog"}')
    assert str(unit) == "A dog"


def test_column_is_found_by_a_code_without_a_name_and_only_if_no_other_is_called_so() -> None:
    (unit,) = units_of("csv", "id,xzz\n1,a dog\n", How(languages=("xzz", "fr")))
    assert unit.segments[0].text == "a dog"


def test_quote_in_a_tsv_is_a_character_unless_the_whole_cell_is_quoted() -> None:
    document = 'text\tb\n"A" dog\t"\n"A ""dog"""\t2\n'
    units = units_of("tsv", document)
    assert [one.segments[0].text for one in units] == ['"A" dog', 'A "dog"']
    assert translate("tsv", document, copy)[0] == document
    for unit in units:
        write_segment(unit.segments[0], [Answer('Un "chien"', (), ())], ())
    assert [str(one) for one in units] == ['Un "chien"', '"Un ""chien"""']


def test_unit_after_a_byte_order_mark_keeps_it() -> None:
    for name in ("po", "json", "srt", "csv"):
        document, expected = Maker(2).make(name)
        assert translate(name, "\ufeff" + document, copy)[0] == "\ufeff" + expected


HEAD = '<xliff version="1.2"><file source-language="de" target-language="fr"><body>'
BAD = [
    ("po", 'msgid "a"\nmsgstr "\n', ":2", 'quotes, but the closing quote is missing: msgstr "'),
    ("po", 'msgid a"\nmsgstr ""\n', ":1", "but the opening quote is missing: msgid a"),
    ("po", 'msgid "a "b" c"\nmsgstr ""\n', ":1", "a quote in the text has no backslash"),
    ("po", 'msgid "a\\"\nmsgstr ""\n', ":1", "the closing quote is missing"),
    ("po", 'msgit "a"\nmsgstr ""\n', ":1", "quotes, but this one is not: msgit"),
    ("po", 'msgid "a"\nmsgstr ""\n\nmsgid "a"\nmsgstr ""\n', ":4", "that of line 1 again"),
    ("po", 'msgid "a"\n', ":1", "must have msgid and msgstr"),
    (
        "po",
        'msgid ""\nmsgstr "nplurals=3;"\n\nmsgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n',
        ":4",
        "must have 3 forms, but has 1",
    ),
    ("po", 'msgid ""\nmsgstr "charset=ISO-8859-1\\n"\n', ":1", "names ISO-8859-1"),
    ("po", 'msgid ""\nmsgstr "Language: de_AT\\n"\n', ":1", "must be fr, but the header names de"),
    ("xliff", "<xliff>\n<file>\n</xliff>", ":3", "well-formed"),
    ("xliff", '<!DOCTYPE x [\n<!ENTITY a "b">]>\n<x/>', ":2", "must not declare entities"),
    ("xliff", '<!DOCTYPE x SYSTEM "x.dtd">\n<xliff>&foo;</xliff>', ":2", "other files"),
    ("xliff", '<?xml version="1.0" encoding="latin-1"?><xliff/>', ":1", "names latin-1"),
    ("xliff", f"{HEAD}</body></file></xliff>", ":1", "(source-language) must be en"),
    ("tmx", '<tmx><tu><tuv xml:lang="de"><seg>x</seg></tuv></tu></tmx>', ":1", "languages are de"),
    ("srt", "1\nHello\n", ":1", "must have a line with its times"),
    ("vtt", "1\nHello\n", ":1", "must begin with WEBVTT"),
    ("json", '{\n"a": "x",\n"a": "y"}', ":3", "'a' stands twice"),
    ("json", '{"a": \n}', ":2", "well-formed"),
    ("json", '{"a": "x", "b": "y}', ":1", "is not: Unterminated string starting at column 17"),
    ("json", "[" * 100_000, ":1", "nested so deeply"),
    ("yaml", "a: b\nc: &x d\n", ":2", "no anchors and aliases"),
    ("yaml", "a: !x d\n", ":1", "no tags"),
    ("yaml", "a: b\na: c\n", ":2", "'a' stands twice"),
    ("yaml", "a: [b\n", ":2", "well-formed"),
    ("yaml", "- " * 500 + "b\n", ":1", "nested so deeply"),
    ("yaml", "a: b\nc: " + "[{a: " * 1000, ":2", "nested so deeply"),
    ("strings", '"a" = "b";\n"c" = d\n', ":2", 'must be "key" = "text";'),
    ("csv", "a,b\n1,2\n", ":1", "column of the text, but has 'a', 'b'"),
    ("csv", "text,text\n1,2\n", ":1", "two are called 'text'"),
    ("csv", "", ":1", "but has none (f:1). Add it."),
    ("csv", 'text,b\n"x,2\n', ":2", "must end with a quote"),
    ("android", "<x/>", ":1", "root resources"),
    (
        "po",
        'msgid "a"\nmsgid_plural "b"\n' + "".join(f'msgstr[{k}] ""\n' for k in range(7)),
        ":1",
        "at most 6 forms, but has 7",
    ),
]


@pytest.mark.parametrize(("name", "document", "place", "words"), BAD)
def test_bad_document_is_one_sentence_with_its_line(
    name: str, document: str, place: str, words: str
) -> None:
    with pytest.raises(DataError) as caught:
        list(FORMATS[name].read(document, How("f", ("en", "fr"))))
    assert words in str(caught.value)
    assert f"(f{place})" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("json", '{{"a": {}, "b": "c"}}'),
        ("html", "<p title='&#{0};'>b &#{0}; <code>&#{0};</code></p>"),
        ("vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\na &#{}; b\n"),
        ("po", 'msgid ""\nmsgstr "Plural-Forms: nplurals={}; plural=0;\\n"\n\n'),
    ],
)
def test_number_of_more_digits_than_python_reads_is_copied(name: str, document: str) -> None:
    written = document.format("9" * 5000)
    assert "".join(map(str, FORMATS[name].read(written, How(languages=("en", "fr"))))) == written


@pytest.mark.parametrize(("zeros", "shown"), [(0, "b A"), (5000, "b A")])
def test_reference_with_zeros_is_its_character(zeros: int, shown: str) -> None:
    units = units_of("html", f"<p>b &#{'0' * zeros}65;</p>")
    assert units[0].segments[0].text == shown


@pytest.mark.parametrize("name", FORMATS)
def test_hostile_document_ends_in_a_sentence_or_is_copied(name: str) -> None:
    found = check_hostile(name, range(1, 31))
    assert (found["documents"], found["faulty"]) == (30, 0)


def test_formats_are_known_by_the_endings_of_names() -> None:
    found = {name: format_of(name) for name in ("a.PO", "x/b.xlf", "c.markdown", "d.docx", "e")}
    assert [one and one.name for one in found.values()] == ["po", "xliff", "markdown", "docx", None]


@pytest.mark.parametrize("name", ["csv", "tsv", "tmx"])
@pytest.mark.parametrize("size", [1, 7, 200])
def test_document_in_pieces_is_read_as_a_whole_one(name: str, size: int) -> None:
    for seed in range(1, 5):
        document, _ = Maker(seed).make(name)
        document = document.replace("the cat", "the «cät»")
        pieces = [document[start : start + size] for start in range(0, len(document), size)]
        how = How(languages=("en", "fr"))
        whole, parts = (list(FORMATS[name].read(one, how)) for one in (document, iter(pieces)))
        assert "".join(map(str, parts)) == "".join(map(str, whole))
        for one, other in zip(units_of(name, document), filter_units(parts), strict=True):
            assert (one.line, one.key, str(one)) == (other.line, other.key, str(other))


def filter_units(parts: Sequence[str | Unit]) -> list[Unit]:
    return [one for one in parts if isinstance(one, Unit)]


def test_fault_in_a_later_piece_names_its_line() -> None:
    text = "a,b\n" + "1,2\n" * 9 + '"1,2\n'
    with pytest.raises(DataError, match=r"table\.csv:11"):
        list(FORMATS["csv"].read(iter(text), How("table.csv", column="a")))
    text = "<tmx><body>\n" + '<tu><tuv xml:lang="en"><seg>a</seg></tuv></tu>\n' * 9 + "</tmx>"
    with pytest.raises(DataError, match=r"m\.tmx:11"):
        list(FORMATS["tmx"].read(iter(text), How("m.tmx", ("en", "fr"))))


def test_commented_unit_of_a_memory_is_copied() -> None:
    unit = '<tu><tuv xml:lang="en"><seg>a cat</seg></tuv></tu>\n'
    document = f"<tmx><body>{unit}<!-- {unit} -->{unit}</body></tmx>"
    assert len(units_of("tmx", document)) == 2
    parts = list(FORMATS["tmx"].read(iter(document), How(languages=("en", "fr"))))
    assert len(filter_units(parts)) == 2
