"""Files as other programs write them: what they leave open, and where they put texts."""

from __future__ import annotations

import json
import re

import capitals
import pytest

from pellucid.documents.formats import FORMATS, format_of
from pellucid.documents.markup.segments import Segment
from pellucid.documents.segment_writing import GivenTranslation, write_segment
from pellucid.documents.units import How, Unit
from pellucid.errors import DataError

HEAD = '<xliff version="1.2"><file source-language="en" target-language="fr"><body>'
FOOT = "</body></file></xliff>"
SEGMENTED = (
    '<trans-unit id="1"><source>A cat. A dog.</source><seg-source><mrk mtype="seg" mid="1">A cat.'
    '</mrk> <mrk mtype="seg" mid="2">A dog.</mrk></seg-source>{}</trans-unit>'
)
PREPARED = '<target><mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2"/></target>'
BEGUN = '<target><mrk mtype="seg" mid="1">Un chat.</mrk> <mrk mtype="seg" mid="2"/></target>'
WRITTEN = (
    '<target state="translated"><mrk mtype="seg" mid="1">{}</mrk> '
    '<mrk mtype="seg" mid="2">A DOG.</mrk></target>'
)
SOURCE = "<source>b</source>"
TARGET = '<target state="translated">B</target>'
GROUP = (
    '<group translate="no"><trans-unit id="1"><source>a</source></trans-unit>'
    f'<trans-unit translate="yes">{SOURCE}</trans-unit></group>'
)
OPEN_HEAD = HEAD.replace(' target-language="fr"', "")
ANGULAR = (
    f'<xliff version="2.0" srcLang="en-US"><file><unit id="a"><segment>{SOURCE}</segment></unit>'
    "</file></xliff>"
)
ANGULAR_IN_FRENCH = (
    '<xliff version="2.0" srcLang="en-US" trgLang="fr"><file><unit id="a">'
    f'<segment state="translated">{SOURCE}<target>B</target></segment></unit></file></xliff>'
)
CUES = "1\n00:00:01,000-->00:00:02,000\n{}\n\n{}\n\n2\n00:00:03,000 --> 00:00:04,000\n{}\n"
TEMPLATE = (
    '# A title\n#, fuzzy\nmsgid ""\nmsgstr ""\n"Language: \\n"\n'
    '"Content-Type: text/plain; charset=CHARSET\\n"\n'
    '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\nmsgid "a cat"\nmsgstr ""\n'
)


def _upper(segment: Segment) -> str:
    text = segment.text.strip().upper()
    for copied in segment.copies:
        text = text.replace(copied.upper(), copied)
    return text


def translate(name: str, document: str, column: str = "") -> str:
    """Translate a document into capitals."""
    how = How("f", ("en", "fr"), column=column)
    parts = list(FORMATS[name].read(document, how))
    for unit in parts:
        for segment in unit.segments if isinstance(unit, Unit) else ():
            write_segment(segment, [GivenTranslation(_upper(segment), (), [])])
    return "".join(map(str, parts))


@pytest.mark.parametrize(
    ("name", "document", "expected"),
    [
        # Segments that SDL Trados, memoQ and MateCat have marked.
        (
            "xliff",
            HEAD + SEGMENTED.format(PREPARED) + FOOT,
            HEAD + SEGMENTED.format(WRITTEN.format("A CAT.")) + FOOT,
        ),
        (
            "xliff",
            HEAD + SEGMENTED.format("") + FOOT,
            HEAD + SEGMENTED.format(WRITTEN.format("A CAT.")) + FOOT,
        ),
        (
            "xliff",
            HEAD + SEGMENTED.format(BEGUN) + FOOT,
            HEAD + SEGMENTED.format(WRITTEN.format("Un chat.")) + FOOT,
        ),
        # What must not be translated is inherited.
        ("xliff", f"{HEAD}{GROUP}{FOOT}", f"{HEAD}{GROUP.replace(SOURCE, SOURCE + TARGET)}{FOOT}"),
        # Angular names no language of targets.
        ("xliff", ANGULAR, ANGULAR_IN_FRENCH),
        (
            "xliff",
            f"{OPEN_HEAD}<trans-unit>{SOURCE}</trans-unit>{FOOT}",
            f"{HEAD}<trans-unit>{SOURCE}{TARGET}</trans-unit>{FOOT}",
        ),
        # A template of gettext, as msginit fills it.
        (
            "po",
            TEMPLATE,
            TEMPLATE.replace("#, fuzzy\n", "")
            .replace("Language: ", "Language: fr")
            .replace("CHARSET", "UTF-8")
            .replace("INTEGER", "2")
            .replace("EXPRESSION", "(n > 1)")
            .replace('"a cat"\nmsgstr ""', '"a cat"\nmsgstr "A CAT"'),
        ),
        # Rails finds a language by the root.
        ("yaml", "en:\n  a: a cat\n", "fr:\n  a: A CAT\n"),
        ("yaml", '"en":\n  a: a cat\n', '"fr":\n  a: A CAT\n'),
        ("yaml", "en: a cat\nother: a dog\n", "en: A CAT\nother: A DOG\n"),
        # Java reads a file in ASCII as Latin-1, too.
        ("properties", "a = a cat of é\n", "a = A CAT OF É\n"),
        # Weblate's tables have a column for translations.
        (
            "csv",
            "source,target,fuzzy\na cat,,True\na dog,UN,\n",
            "source,target,fuzzy\na cat,A CAT,True\na dog,UN,\n",
        ),
        ("csv", "sep=;\r\nid;text\r\n1;a cat\r\n", "sep=;\r\nid;text\r\n1;A CAT\r\n"),
        # Subtitles of other programs.
        ("srt", CUES.format("a cat", "eats", "it"), CUES.format("A CAT", "EATS", "IT")),
        # Blocks of MkDocs, MDX, MyST, Hugo and Docusaurus.
        ("markdown", '!!! note "a cat"\n    a dog\n', '!!! note "A CAT"\n    A DOG\n'),
        ("markdown", "??? warning\n    a dog\n", "??? warning\n    A DOG\n"),
        ("markdown", "{{< tip >}}\na dog\n{{< /tip >}}\n", "{{< tip >}}\nA DOG\n{{< /tip >}}\n"),
        ("markdown", ":::{note}\na dog\n:::\n", ":::{note}\nA DOG\n:::\n"),
        (
            "markdown",
            "import A from './a'\n\nexport const b = 1\n\n{/* c */}\n",
            "import A from './a'\n\nexport const b = 1\n\n{/* c */}\n",
        ),
        ("markdown", "% a comment\n\n% of it\n", "% a comment\n\n% of it\n"),
        # Definition lists of PHP Markdown Extra and Pandoc.
        (
            "markdown",
            "a cat\n: an animal\n  of mine\n:   a pet\n\na dog\n\n: a friend: yes\n",
            "A CAT\n: AN ANIMAL\n  OF MINE\n:   A PET\n\nA DOG\n\n: A FRIEND: YES\n",
        ),
        ("markdown", "a dog \\\nand a cat\n", "A DOG \\\nAND A CAT\n"),
        (
            "markdown",
            "export the dog, import the cat!!! 5 % of it\n",
            "EXPORT THE DOG, IMPORT THE CAT!!! 5 % OF IT\n",
        ),
    ],
)
def test_file_of_another_program_gets_its_translations_where_it_looks_for_them(
    name: str, document: str, expected: str
) -> None:
    assert translate(name, document) == expected


QT = (
    '<TS language="fr_FR"><context><name>W</name>{}<message><source>a</source><translation>b'
    '</translation></message><message><source>a</source><translation type="vanished"/></message>'
    "</context></TS>"
)
MESSAGE = "<message><source>&amp;Open it</source><translation{}</translation></message>"
FORMS = ">" + 2 * "<numerusform>{}</numerusform>"
FLUENT = """# a note
-brand = a name
hello = {}
    .title = {} {{ -brand }}
mails = {} {{ $n ->
    [one] {}
   *[other] {{ $n }} {}
}}
"""


def test_messages_of_qt_and_fluent_are_read_and_the_rest_is_copied() -> None:
    open_message = MESSAGE.format(' type="unfinished">')
    made = MESSAGE.format(">&amp;OPEN IT")
    assert translate("qt", QT.format(open_message)) == QT.format(made)
    forms = MESSAGE.format(' type="unfinished"' + FORMS.format("", ""))
    made = MESSAGE.format(FORMS.format("&amp;OPEN IT", "&amp;OPEN IT"))
    assert translate("qt", QT.format(forms)) == QT.format(made)
    texts = ("a dog\n    of it", "a title", "you have", "a mail", "mails")
    written = FLUENT.format(*(one.upper() for one in texts))
    # French has a form for millions.
    many = "   *[other] { $n } MAILS"
    written = written.replace(many, f"    [many] {{ $n }} MAILS\n{many}")
    assert translate("fluent", FLUENT.format(*texts)) == written
    with pytest.raises(DataError, match=r"\(language\) must be fr, but is de"):
        translate("qt", '<TS language="de"></TS>')


def test_file_in_ascii_stays_in_ascii_where_java_reads_latin_1() -> None:
    parts = list(FORMATS["properties"].read("a = a cat\n", How("f", ("en", "fr"))))
    (segment,) = (one for unit in parts if isinstance(unit, Unit) for one in unit.segments)
    write_segment(segment, [GivenTranslation("été", (), [])])
    assert "".join(map(str, parts)) == "a = \\u00e9t\\u00e9\n"


def test_table_without_names_has_numbered_columns() -> None:
    assert translate("csv", "1,a cat\n2,a dog\n", "2") == "1,A CAT\n2,A DOG\n"
    with pytest.raises(DataError, match="must have the column 3, but has 2 columns"):
        translate("csv", "1,a cat\n", "3")


def test_cue_whose_times_cannot_be_read_is_no_text() -> None:
    with pytest.raises(DataError, match="must have a line with its times"):
        translate("srt", "1\n00:00:01,000 --> 00:00:02,000\na\n\n2\n00:03 --> later\nb\n")


def test_endings_of_other_translation_tools_are_xliff() -> None:
    assert format_of("a.sdlxliff") is format_of("a.mqxliff") is FORMATS["xliff"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('say "a  cat" now', "SAY A  CAT NOW"),
        ('"a cat" and "a dog"', '"A CAT AND A DOG"'),
        ('"it\'s a cat"', '"IT\'S A CAT"'),
        (r"it\'s \"red\"", r"IT\'S \"RED\""),
    ],
)
def test_quotes_of_android_stay_pairs(text: str, expected: str) -> None:
    frame = '<resources><string name="a">{}</string></resources>'
    assert capitals.translate("android", frame.format(text)) == (frame.format(expected), {})


@pytest.mark.parametrize("sign", ["?", "@"])
def test_translation_is_no_reference_of_android(sign: str) -> None:
    document = '<resources><string name="a">a cat</string></resources>'
    parts = list(FORMATS["android"].read(document, How("f", ("en", "fr"))))
    (segment,) = (one for unit in parts if isinstance(unit, Unit) for one in unit.segments)
    write_segment(segment, [GivenTranslation(f"{sign} chat", (), [])])
    assert f">\\{sign} chat<" in "".join(map(str, parts))


def test_bbcode_is_tags_and_an_index_is_text() -> None:
    document = '{"a": "[b]a cat[/b] of [url=http://a.b/c d=e]mine[/url] at [i]"}'
    written, reasons = capitals.translate("json", document)
    assert written == '{"a": "[b]A CAT[/b] OF [url=http://a.b/c d=e]MINE[/url] AT [I]"}'
    assert not reasons
    page = "<p>[b]a cat[/b] of <i>mine</i></p>"
    assert capitals.translate("html", page)[0] == "<p>[b]A CAT[/b] OF <i>MINE</i></p>"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("properties", b"a = a caf\xe9\n", b"a = A CAF\xc9\n"),
        # What Latin-1 lacks is escaped, as Java reads it.
        ("properties", b"a = \xff\n", b"a = \\u0178\n"),
        ("srt", b"1\r00:00:01,000 --> 00:00:02,000\ra cat\r", None),
        ("vtt", b"WEBVTT\r\r00:01.000 --> 00:02.000\ra cat\r", None),
        ("markdown", b"# a\r\ra cat\r\r```\ra\r```\r", b"# A\r\rA CAT\r\r```\ra\r```\r"),
        ("strings", '\ufeff"a" = "a cat";\n'.encode("utf-16-le"), None),
        ("strings", '\ufeff"a" = "a cat";\n'.encode("utf-16-be"), None),
    ],
)
def test_bytes_and_line_ends_of_a_file_stay(
    name: str, content: bytes, expected: bytes | None
) -> None:
    kind = FORMATS[name]
    assert kind.is_packed(content)
    text = kind.unpack(content, How("f"))
    written = kind.pack(content, capitals.translate(name, text)[0])
    if expected is None:
        wide = name == "strings"
        words = ("a cat", "A CAT")
        old, new = (one.encode(kind.encoding(content)) if wide else one.encode() for one in words)
        expected = content.replace(old, new)
    assert written == expected


def test_ragged_rows_of_a_table_are_copied_and_reported() -> None:
    table = "text,note\na cat,x\na dog, red,y,z\na bird\na fish,b,,\n"
    written, reasons = capitals.translate("csv", table)
    # Empty cells may be missing or too many, as spreadsheets write them.
    assert written == "text,note\nA CAT,x\na dog, red,y,z\nA BIRD\nA FISH,b,,\n"
    assert [*reasons] == ["row 3"]
    assert "the row has 4 columns and the first 2" in reasons["row 3"]
    written, reasons = capitals.translate("csv", "source,target\na cat\na dog,\n")
    assert written == "source,target\na cat\na dog,A DOG\n"
    assert [*reasons] == ["row 2"]


CATALOGUE = {
    "": {},
    "a cat": {},
    "Keep": {"shouldTranslate": False},
    "done": {"localizations": {"fr": {"stringUnit": {"state": "translated", "value": "x"}}}},
    "n": {
        "comment": "How many",
        "localizations": {
            "en": {
                "variations": {
                    "plural": {
                        "one": {"stringUnit": {"state": "new", "value": "%lld dog"}},
                        "other": {"stringUnit": {"state": "new", "value": "%lld dogs"}},
                    }
                }
            }
        },
    },
}


@pytest.mark.parametrize(("marked", "state"), [(False, "translated"), (True, "needs_review")])
def test_string_catalogue_of_xcode_gets_a_localization(marked: bool, state: str) -> None:
    document = {"sourceLanguage": "en", "strings": CATALOGUE, "version": "1.0"}
    given = json.dumps(document, indent=2, separators=(",", " : "))
    written, reasons = capitals.translate("xcstrings", given, marked=marked)
    assert not reasons
    found = json.loads(written)["strings"]
    unit = {"state": state, "value": "A CAT"}
    assert found["a cat"] == {"localizations": {"fr": {"stringUnit": unit}}}
    plural = found["n"]["localizations"]["fr"]["variations"]["plural"]
    values = {name: one["stringUnit"]["value"] for name, one in plural.items()}
    assert values == {"one": "%lld DOG", "other": "%lld DOGS", "many": "%lld DOGS"}
    assert {one["stringUnit"]["state"] for one in plural.values()} == {state}
    for name in ("", "Keep", "done"):
        assert found[name] == CATALOGUE[name]
    assert found["n"]["localizations"]["en"] == CATALOGUE["n"]["localizations"]["en"]
    # A second run finds nothing to do.
    assert capitals.translate("xcstrings", written)[0] == written


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ('{"sourceLanguage": "de", "strings": {}}', "must be en, but is de"),
        ('{"a": "b"}', "must have strings, but has none"),
        ("[1]", "must have strings, but has none"),
        ("{", "must be well-formed"),
        ('{"strings": "a"}', None),
        ('{"strings": {"a": "b", "c": [{}], "d": null}}', None),
    ],
)
def test_odd_string_catalogue_is_refused_or_copied(document: str, words: str | None) -> None:
    if words is None:
        assert "strings" in capitals.translate("xcstrings", document)[0]
        return
    with pytest.raises(DataError, match=re.escape(words)):
        capitals.translate("xcstrings", document)


def test_words_that_are_copied_keep_their_tags() -> None:
    # A model that knows none of these signs copies the whole as one unknown word.
    parts = list(FORMATS["json"].read('{"a": "猫<b>是</b>红"}', How("f", ("zh", "fr"))))
    (segment,) = (one for unit in parts if isinstance(unit, Unit) for one in unit.segments)
    write_segment(segment, [GivenTranslation("猫是红", ["猫是红"], [(0, 0)])], ["猫是红"])
    assert "".join(map(str, parts)) == '{"a": "猫<b>是</b>红"}'


def test_equal_keys_are_translated_and_reported() -> None:
    written, reasons = capitals.translate("properties", "a=one\nb=two\na = three\n")
    assert written == "a=ONE\nb=TWO\na = THREE\n"
    assert reasons == {"a": "its key stands twice: also in line 1"}
    written, reasons = capitals.translate("strings", '"a" = "one";\n"a" = "two";\n')
    assert written == '"a" = "ONE";\n"a" = "TWO";\n'
    assert reasons == {"a": "its key stands twice: also in line 1"}


def test_names_that_swift_fills_in_are_kept() -> None:
    document = r'"a" = "Hi \(name), \(list.map(f).count) of \"all\" \(";' + "\n"
    written, reasons = capitals.translate("strings", document)
    assert written == r'"a" = "HI \(name), \(list.map(f).count) OF \"ALL\" \(";' + "\n"
    assert not reasons


BLOCKS = {
    "MkDocs": """---
title: A dog
icon: material/dog
---

# A house { #house .big }

!!! note "A title"
    A fish.

    - A bird

        ```py
        dog = 1
        ```

    === "C++"

        A tab.

Not in it.

--8<-- "includes/dog.md"

::: package.module.dog
    options:
      show_source: false

/// admonition | A caption
A text.
///

*[HTML]: A language
*[CSS]: A style

A key ++ctrl+alt+c++, ^^A word^^, ==A mark==; 1 == 2.
""",
    "MDX": """import {Dog} from './dog'

<Tabs groupId="os">
<TabItem value="win" label="A house">

A text.

</TabItem>
</Tabs>

<Card
  title="A card"
  href="/dog"
  values={[{label: 'A tab', value: 'x'}]}
>
  A fish.
</Card>

:::note[A title]

A bird.

:::

:::tip A tip

{/* not shown */}
""",
    "MyST": """(target-label)=
# A dog

```{note}
A text.
```

````{admonition} A title
:class: tip
A fish.

```{code-block} python
dog = 1
```
````

```{figure} dog.png
---
name: dog
---
A caption.
```

:::{warning}
A bird.
:::

```{toctree}
index
```
""",
    "Hugo": """+++
title = "A \\"dog\\""
weight = "ten"
+++

{{< figure src="dog.jpg" title="A fish" >}}

{{% notice tip %}}
A text.
{{% /notice %}}

{{< tabs >}}{{< tab x >}}
A bird {{< ref "page.md" >}}
{{< tab "x" >}}A tab{{< /tab >}}
""",
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_site_generators_are_read_and_their_code_is_copied(name: str) -> None:
    document = BLOCKS[name]
    wanted = re.sub(
        r'(?<![\w])(?:A \\"dog\\"|A [a-z]+|Not in it)', lambda one: one[0].upper(), document
    )
    written, reasons = capitals.translate("markdown", document)
    assert written == wanted
    assert not reasons


def test_block_of_markdown_that_cannot_be_read_is_reported() -> None:
    document = "- <div>a dog\n  in a list</div>\n\na cat\n\n- <hr>\n"
    written, reasons = capitals.translate("markdown", document)
    assert written == document.replace("a cat", "A CAT")
    assert reasons == {"line 1": "this block of Markdown cannot be read, so that it stays"}
