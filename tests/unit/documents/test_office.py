"""Office files and books: their texts change, and nothing else."""

from __future__ import annotations

import io
import re
import zlib
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from lxml import etree
from zip_documents import FIRST, ODF, TEXT, WORD, A, S, W, make_zip, read_zip

from pellucid.documents.formats import FORMATS, format_of
from pellucid.documents.segment_writing import GivenTranslation, write_segment
from pellucid.documents.units import How, Unit
from pellucid.errors import DataError
from pellucid.text.line_words import line_words

HOW = How("a file", ("en", "fr"))
BOLD = "<w:rPr><w:b/></w:rPr>"


def run(text: str, properties: str = "") -> str:
    """Write a run of Word."""
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def field(code: str, shown: str) -> str:
    """Write a field of Word."""
    mark = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    return (
        f"{mark.format('begin')}<w:r><w:instrText>{code}</w:instrText></w:r>"
        f"{mark.format('separate')}{run(shown)}{mark.format('end')}"
    )


def translate(name: str, content: bytes, *, reverses: bool = False) -> tuple[bytes, list[str]]:
    """Translate into capitals, or turn the order of words; return also the texts."""
    kind = FORMATS[name]
    parts = list(kind.read(kind.unpack(content, HOW), HOW))
    texts = []
    for unit in parts:
        for segment in unit.segments if isinstance(unit, Unit) else ():
            text = segment.text.strip()
            texts.append(text)
            words = line_words(text)
            last = len(words) - 1
            links = [(k, last - k if reverses else k) for k in range(len(words))]
            made = words[::-1] if reverses else [one.upper() for one in words]
            answer = " ".join(made) if reverses else text.upper()
            write_segment(segment, [GivenTranslation(answer, made, links)], words)
    return kind.pack(content, "".join(map(str, parts))), texts


def translated(name: str, part: str, *, reverses: bool = False) -> tuple[str, list[str]]:
    """Translate a file with a part; return the part, and the texts."""
    path = FIRST[name][0]
    written, texts = translate(name, make_zip(name, parts={path: part}), reverses=reverses)
    found = read_zip(written)[path].decode()
    etree.fromstring(found)
    return found, texts


def paragraph(inner: str, *, reverses: bool = False) -> tuple[str, list[str]]:
    """Translate a paragraph of Word; return what is in it."""
    found, texts = translated("docx", WORD.format(f"<w:p>{inner}</w:p>"), reverses=reverses)
    (written,) = re.findall("<w:p>(.*)</w:p>", found)
    return written, texts


def test_runs_are_one_text_whose_formatting_follows_its_words() -> None:
    runs = run("The ") + run("old dog", BOLD) + run(" ea") + run("ts.")
    assert paragraph(runs) == (
        run("THE ") + run("OLD DOG", BOLD) + run(" EATS."),
        ["The old dog eats."],
    )
    written, _ = paragraph(run("The ") + run("old dog", BOLD) + run(" eats"), reverses=True)
    assert written == run("eats ") + run("dog old", BOLD) + run(" The")


def test_placeholder_over_two_runs_of_equal_formatting_is_one() -> None:
    noise = '<w:proofErr w:type="spellStart"/>'
    written, texts = paragraph(run("the {na") + noise + run("me} of %s"))
    assert (written, texts) == (run("THE {name} OF %s"), ["the {name} of %s"])


@pytest.mark.parametrize(
    ("inner", "texts", "written"),
    [
        (
            f"{run('one')}<w:r><w:br/><w:t>two</w:t><w:tab/><w:t>three</w:t></w:r>",
            ["one", "two", "three"],
            "onetwothree",
        ),
        (
            f"{run('a ')}<w:hyperlink r:id='x'>{run('red', BOLD)}</w:hyperlink>{run(' cat')}",
            ["a red cat"],
            "a red cat",
        ),
        (f"{run('page ')}{field(' PAGE ', '3')}{run(' of it')}", ["page 3 of it"], "page 3 of it"),
        (
            f"{run('see ')}{field('HYPERLINK x', 'the dog')}{run(' there')}",
            ["see the dog there"],
            "see the dog there",
        ),
        (f"{run('a')}<w:del>{run('gone')}</w:del><w:ins>{run(' cat')}</w:ins>", ["a cat"], "a cat"),
        (f"{run('a')}<w:r><w:footnoteReference w:id='2'/></w:r>{run(' cat')}", ["a cat"], "a cat"),
        (
            f"{run('a cat ')}<w:sdt><w:sdtPr/><w:sdtContent>{run('a dog')}</w:sdtContent></w:sdt>",
            ["a cat", "a dog"],
            "a cat a dog",
        ),
        (f"{run('12.5')}", [], "12.5"),
    ],
)
def test_parts_of_a_paragraph_are_text_ends_or_kept(
    inner: str, texts: list[str], written: str
) -> None:
    inner = inner.replace("r:id", "w:id")
    found, own = paragraph(inner)
    assert own == texts
    tags = re.compile(r"<w:(?:del|ins|footnoteReference|instrText|fldChar|hyperlink|br|tab|sdt)\b")
    assert tags.findall(found) == tags.findall(inner)
    hidden = re.compile("<w:(del|instrText)>.*?</w:(del|instrText)>")
    assert re.sub("<[^>]*>", "", hidden.sub("", found)) == written.upper()


def test_text_boxes_in_a_sentence_are_read_and_the_sentence_stays_whole() -> None:
    box = f"<w:r><w:pict><w:txbxContent><w:p>{run('a box')}</w:p></w:txbxContent></w:pict></w:r>"
    found, texts = translated("docx", WORD.format(f"<w:p>{run('a ')}{box}{run('cat')}</w:p>"))
    assert texts == ["a box", "a cat"]
    assert "A BOX" in found
    assert re.sub("<[^>]*>", "", found) == "A A BOXCAT"


def test_other_parts_stay_equal_and_in_their_order() -> None:
    for name in FIRST:
        content = make_zip(name, "a cat", {"media/image.png": "\x89PNG", "macros.bin": "Sub a()"})
        written, texts = translate(name, content)
        before, after = read_zip(content), read_zip(written)
        assert texts == ["a cat"]
        assert [*before] == [*after]
        assert {one for one in before if before[one] != after[one]} == {FIRST[name][0]}
        with ZipFile(io.BytesIO(content)) as old, ZipFile(io.BytesIO(written)) as new:
            kinds = [[one.compress_type for one in each.infolist()] for each in (old, new)]
            assert kinds[0] == kinds[1]


def test_text_that_is_not_changed_comes_back_as_it_was_written() -> None:
    inner = f"{run('A')}<w:r w:rsidR='1'><w:t>B</w:t></w:r>{run(' C', BOLD)}"
    assert paragraph(inner)[0] == inner


def test_headers_notes_and_slide_notes_are_read_and_comments_are_not() -> None:
    part = f"<w:x {W}><w:p>{run('a cat')}</w:p></w:x>"
    names = ["header1", "footer2", "footnotes", "endnotes", "comments"]
    content = make_zip("docx", "", {f"word/{one}.xml": part for one in names})
    assert len(translate("docx", content)[1]) == 4
    notes = f"<n {A}><a:p><a:r><a:t>a note</a:t></a:r></a:p></n>"
    assert translate("pptx", make_zip("pptx", "", {"ppt/notesSlides/notesSlide1.xml": notes}))[
        1
    ] == ["a note"]


def test_sheet_keeps_numbers_formulas_and_names_of_columns() -> None:
    shared = f"<sst {S}><si><t>a cat</t></si><si><t>Name</t></si><si><t>12</t></si></sst>"
    sheet = (
        f'<worksheet {S}><c t="s"><v>0</v></c><c><f>IF(A1="a cat",1)</f><v>1</v></c>'
        '<c t="str"><f>A1</f><v>a cat</v></c><c t="inlineStr"><is><t>one\ntwo</t></is></c>'
        "</worksheet>"
    )
    table = '<table><tableColumn id="1" name="Name"/></table>'
    content = make_zip(
        "xlsx",
        parts={
            "xl/sharedStrings.xml": shared,
            "xl/worksheets/sheet1.xml": sheet,
            "xl/tables/table1.xml": table,
        },
    )
    written, texts = translate("xlsx", content)
    assert texts == ["a cat", "one", "two"]
    parts = read_zip(written)
    assert parts["xl/sharedStrings.xml"].decode() == shared.replace("a cat", "A CAT")
    assert parts["xl/worksheets/sheet1.xml"].decode() == sheet.replace("one\ntwo", "ONE\nTWO")


def test_open_document_keeps_spaces_notes_and_computed_cells() -> None:
    inner = (
        'a <text:span text:style-name="b">red<text:s/>cat</text:span> eats<text:note>'
        "<text:note-body><text:p>a note</text:p></text:note-body></text:note> it"
        "<text:line-break/>a dog"
    )
    found, texts = translated("odt", TEXT.format(f"<text:p>{inner}</text:p>"))
    assert texts == ["a note", "a red cat eats it", "a dog"]
    assert re.sub("<[^>]*>", "", found) == "A REDCAT EATSA NOTE ITA DOG"
    assert "RED<text:s/>CAT</text:span>" in found
    cells = (
        '<table:table-cell office:value-type="string"><text:p>a cat</text:p></table:table-cell>'
        '<table:table-cell office:value-type="date"><text:p>2 May</text:p></table:table-cell>'
        '<table:table-cell table:formula="of:=A1" office:value-type="string"><text:p>a cat</text:p>'
        "</table:table-cell>"
    )
    assert translated("ods", TEXT.format(cells))[1] == ["a cat"]
    kept = "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
    assert translated("odt", TEXT.format(kept))[1] == []


def test_book_has_its_title_contents_and_language_translated() -> None:
    parts = {
        "a.opf": '<package xmlns:dc="d"><dc:title>a cat</dc:title><dc:language>en</dc:language>'
        "<dc:creator>a dog</dc:creator></package>",
        "toc.ncx": "<ncx><navLabel><text>one</text></navLabel></ncx>",
        "nav.xhtml": '<html lang="en"><nav><a href="a.xhtml">two</a></nav></html>',
    }
    written, texts = translate("epub", make_zip("epub", "a red cat", parts))
    assert texts == ["a red cat", "a cat", "one", "two"]
    found = {name: content.decode() for name, content in read_zip(written).items()}
    assert "<dc:language>fr<" in found["a.opf"]
    assert "a dog" in found["a.opf"]
    assert '<html lang="fr">' in found["nav.xhtml"]


def test_settings_for_spelling_name_the_new_language() -> None:
    lang = '<w:rPr><w:lang w:val="{}"/></w:rPr>'
    other = run("ein Hund", lang.format("de-DE"))
    written, _ = paragraph(run("a cat", lang.format("en-US")) + other)
    assert 'w:val="fr"' in written
    assert 'w:val="de-DE"' in written
    style = f'<office:document-styles {ODF} xmlns:fo="f"><s fo:language="en" fo:country="US"/>'
    content = make_zip("odt", "", {"styles.xml": f"{style}</office:document-styles>"})
    changed = read_zip(translate("odt", content)[0])["styles.xml"].decode()
    assert 'fo:language="fr" fo:country="none"' in changed


@pytest.mark.parametrize(
    ("name", "path"),
    [("docx", "docProps/core.xml"), ("odt", "meta.xml"), ("xlsx", "docProps/core.xml")],
)
def test_language_of_the_document_becomes_the_new_one(name: str, path: str) -> None:
    part = (
        '<c:coreProperties xmlns:c="c" xmlns:dc="d"><dc:title>a cat</dc:title>{}</c:coreProperties>'
    )
    language = "<dc:language>{}</dc:language>"
    content = make_zip(name, "a", {path: part.format(language.format("en-US"))})
    changed = read_zip(translate(name, content)[0])[path].decode()
    # Other programs search by the title, so that it stays.
    assert changed == part.format(language.format("fr"))
    german = make_zip(name, "a", {path: part.format(language.format("de-DE"))})
    assert read_zip(translate(name, german)[0])[path] == read_zip(german)[path]


def zeros(name: str) -> bytes:
    """Make an archive of 20 MB of zeros."""
    written = io.BytesIO(make_zip(name, "a"))
    with ZipFile(written, "a", ZIP_DEFLATED) as archive, archive.open("zeros", "w") as member:
        for _ in range(20):
            member.write(bytes(2**20))
    return written.getvalue()


def encrypted() -> bytes:
    """Set the flag of encryption in an archive."""
    content = bytearray(make_zip("docx", "a cat"))
    for found in re.finditer(b"PK\x01\x02", bytes(content)):
        content[found.start() + 8] |= 1
    return bytes(content)


OF_BOOK = {"META-INF/encryption.xml": '<e><r URI="EPUB/a.xhtml"/></e>'}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("docx", b"", "whole zip archive"),
        ("docx", make_zip("docx", "a cat")[:-40], "whole zip archive"),
        ("docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "protected by a password"),
        ("docx", encrypted(), "must not be encrypted"),
        ("epub", make_zip("epub", "a", OF_BOOK), "must not be encrypted"),
        (
            "odt",
            make_zip("odt", "a", {"META-INF/manifest.xml": "<m:encryption-data/>"}),
            "must not be encrypted",
        ),
        ("xlsx", zeros("xlsx"), "must be small enough to unpack"),
        ("odt", make_zip("docx", "a"), "holds something else"),
        ("docx", make_zip("odt", "a"), "holds something else"),
        ("docx", make_zip("docx", parts={"word/document.xml": "<w:p>"}), "XML must be well-formed"),
        (
            "docx",
            make_zip("docx", parts={"word/document.xml": "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"}),
            "must not declare entities",
        ),
        (
            "docx",
            make_zip("docx", "a").replace(zlib.compress(b"<Types/>", 6)[2:-4], b"\0" * 10, 1),
            "whole zip archive",
        ),
    ],
)
def test_damaged_encrypted_and_huge_files_are_refused_in_a_sentence(
    name: str, content: bytes, words: str
) -> None:
    with pytest.raises(DataError, match=re.escape(words)) as caught:
        translate(name, content)
    assert "\n" not in str(caught.value)


def test_macros_are_no_reason_to_refuse() -> None:
    kind = format_of(str(Path("a.DOCM")))
    assert kind is FORMATS["docx"]
