"""Small office files and books, made by hand: each has a text in the place of ``§``."""

from __future__ import annotations

import io
from collections.abc import Mapping
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
)
WORD = f"<w:document {W}><w:body>{{}}</w:body></w:document>"
PARAGRAPH = '<w:p><w:r><w:t xml:space="preserve">§</w:t></w:r></w:p>'
TEXT = f"<office:document-content {ODF}><office:body>{{}}</office:body></office:document-content>"
FIRST: Mapping[str, tuple[str, str]] = {
    "docx": ("word/document.xml", WORD.format(PARAGRAPH)),
    "pptx": (
        "ppt/slides/slide1.xml",
        f"<p:sld {A} xmlns:p='p'><a:p><a:r><a:t>§</a:t></a:r></a:p></p:sld>",
    ),
    "xlsx": ("xl/sharedStrings.xml", f"<sst {S}><si><t>§</t></si></sst>"),
    **dict.fromkeys(("odt", "odp", "ods"), ("content.xml", TEXT.format("<text:p>§</text:p>"))),
    "epub": (
        "EPUB/a.xhtml",
        '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>§</p></body></html>',
    ),
}
"""The part with the text, and what is in it."""

_BEFORE: Mapping[str, Mapping[str, str]] = {
    "docx": {"[Content_Types].xml": "<Types/>"},
    "pptx": {"[Content_Types].xml": "<Types/>", "ppt/presentation.xml": "<p/>"},
    "xlsx": {"[Content_Types].xml": "<Types/>", "xl/workbook.xml": "<w/>"},
    "odt": {"mimetype": "application/vnd.oasis.opendocument.text"},
    "odp": {"mimetype": "application/vnd.oasis.opendocument.presentation"},
    "ods": {"mimetype": "application/vnd.oasis.opendocument.spreadsheet"},
    "epub": {"mimetype": "application/epub+zip", "META-INF/container.xml": "<container/>"},
}


def make_zip(name: str, text: str = "", parts: Mapping[str, str] | None = None) -> bytes:
    """Make a file of a format.

    Args:
        name: of the format.
        text: stands in the place of ``§``.
        parts: further parts, or other ones.
    """
    first, content = FIRST[name]
    written = io.BytesIO()
    with ZipFile(written, "w") as archive:
        for path, own in {
            **_BEFORE[name],
            first: content.replace("§", text),
            **(parts or {}),
        }.items():
            kind = ZIP_STORED if path == "mimetype" else ZIP_DEFLATED
            archive.writestr(path, own, kind)
    return written.getvalue()


def read_zip(content: bytes) -> dict[str, bytes]:
    """Return the parts of an archive, in order."""
    with ZipFile(io.BytesIO(content)) as archive:
        return {one.filename: archive.read(one) for one in archive.infolist()}
