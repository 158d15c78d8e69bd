"""The formats of documents by the endings of their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pellucid.documents.escapes import as_utf16
from pellucid.documents.units import How, Source, Unit
from pellucid.errors import DataError, need_library
from pellucid.files import endings

_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""The first bytes of UTF-16."""


def _has_returns(content: bytes) -> bool:
    """Tell whether lines end with a carriage return only."""
    return b"\r" in content and b"\n" not in content and not content.startswith(_WIDE)


@dataclass(frozen=True)
class Format:
    """A format of documents.

    Attributes:
        name: for ``--format``.
        endings: of the names of its files.
        reader: the module and the function that finds its units.
        media_type: for HTTP.
        has_marks: True if it can say that a unit should be looked at.
        has_pairs: True if it holds texts with their translations.
        is_streamed: True if it is read in parts, however large it is.
        is_zip: True for an archive, which is unpacked before it is read.
    """

    name: str
    endings: tuple[str, ...]
    reader: str
    media_type: str
    has_marks: bool = False
    has_pairs: bool = False
    is_streamed: bool = False
    is_zip: bool = False

    def is_packed(self, content: bytes) -> bool:
        """Tell whether the bytes of a file are no UTF-8, or have other line ends: see `unpack`."""
        return self.is_zip or self.encoding(content) != "utf-8" or _has_returns(content)

    def encoding(self, content: bytes) -> str:
        """Name the encoding of a file by its format and first bytes."""
        if self.name == "strings" and content.startswith(_WIDE):
            return "utf-16-le" if content.startswith(_WIDE[0]) else "utf-16-be"
        if self.name == "properties":
            try:
                content.decode()
            except UnicodeDecodeError:
                # What Java reads up to version 8.
                return "latin-1"
        return "utf-8"

    def unpack(self, content: bytes, how: How) -> str:
        """Read a file as the text that `read` takes.

        That is an archive; UTF-16, which Xcode once wrote; Latin-1 of Java; or lines that end with
        a carriage return, as on an old Mac.

        Raises:
            DataError: as for `pellucid.documents.office.zip_files.unpack_document`.
        """
        if self.is_zip:
            from pellucid.documents.office.zip_files import unpack_document

            return unpack_document(content, self.name, how)
        encoding = self.encoding(content)
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError as error:
            name = encoding.upper().removesuffix("-LE").removesuffix("-BE")
            what = f"A text in {name} must be whole, but {how.path} is not: {error.reason}"
            raise DataError(f"{what}. Copy it again.") from None
        return text.replace("\r", "\n") if _has_returns(content) else text

    def pack(self, content: bytes, document: str) -> bytes:
        """Put a document that was unpacked, and translated, back into its form."""
        if self.is_zip:
            from pellucid.documents.office.zip_files import pack_document

            return pack_document(content, document)
        if _has_returns(content):
            document = document.replace("\n", "\r")
        encoding = self.encoding(content)
        if encoding == "latin-1":
            wide = re.compile("[^\0-\xff]")
            document = wide.sub(lambda one: as_utf16(one[0]), document)
        return document.encode(encoding)

    def read(self, text: str | Iterable[str], how: How) -> Iterator[str | Unit]:
        """Read a document as copied strings and units.

        Args:
            text: the document, or its parts.
            how: the way to read it.

        Raises:
            DataError: it is not of this format.
        """
        module, function = self.reader.rsplit(".", 1)
        # Only the reader that is needed, since those of Markdown and YAML load libraries.
        read: Callable[..., Any] = getattr(need_library(f"pellucid.documents.{module}"), function)
        chunks = iter((text,) if isinstance(text, str) else text)
        first = next(chunks, "")
        # The byte order mark is copied, and is no part of the first text.
        if first.startswith("\ufeff"):
            yield "\ufeff"
        chunks = chain((first.removeprefix("\ufeff"),), chunks)
        if self.is_streamed:
            yield from read(chunks, how)
            return
        source = Source("".join(chunks), how)
        found = read(source)
        # These also change what is between their units: the language that they name.
        yield from found if self.name == "html" or self.is_zip else source.cut(found)


def _office(name: str, own_endings: tuple[str, ...], kind: str) -> Format:
    media_type = f"application/vnd.{kind}"
    return Format(name, own_endings, "office.paragraphs.read_office", media_type, is_zip=True)


_ALL = (
    Format("po", (".po", ".pot"), "po.read_po", "text/x-gettext-translation", True, True),
    Format("srt", (".srt",), "subtitles.read_srt", "application/x-subrip"),
    Format("vtt", (".vtt",), "subtitles.read_vtt", "text/vtt"),
    Format(
        "xliff",
        (".xlf", ".xliff", ".sdlxliff", ".mqxliff"),
        "interchange.read_xliff",
        "application/xliff+xml",
        True,
        True,
    ),
    Format("tmx", (".tmx",), "interchange.read_tmx", "application/xml", False, True, True),
    Format("android", (".xml",), "resources.read_android", "application/xml"),
    Format("resx", (".resx",), "resources.read_resx", "application/xml"),
    Format("qt", (".ts",), "resources.read_qt", "application/xml", True),
    Format("fluent", (".ftl",), "fluent.read_fluent", "text/plain"),
    Format("markdown", (".md", ".markdown"), "markdown.read_markdown", "text/markdown"),
    Format("html", (".html", ".htm"), "web.read_html", "text/html"),
    Format("json", (".json", ".arb"), "strings.read_json", "application/json"),
    Format("xcstrings", (".xcstrings",), "strings.read_xcstrings", "application/json", True),
    Format("yaml", (".yaml", ".yml"), "yaml.read_yaml", "application/yaml"),
    Format("properties", (".properties",), "strings.read_properties", "text/plain"),
    Format("strings", (".strings",), "strings.read_strings", "text/plain"),
    Format("csv", (".csv",), "csv_tables.read_csv", "text/csv", is_streamed=True),
    Format("tsv", (".tsv",), "csv_tables.read_tsv", "text/tab-separated-values", is_streamed=True),
    _office("docx", (".docx", ".docm"), "openxmlformats-officedocument.wordprocessingml.document"),
    _office(
        "pptx", (".pptx", ".pptm"), "openxmlformats-officedocument.presentationml.presentation"
    ),
    _office("xlsx", (".xlsx", ".xlsm"), "openxmlformats-officedocument.spreadsheetml.sheet"),
    _office("odt", (".odt",), "oasis.opendocument.text"),
    _office("odp", (".odp",), "oasis.opendocument.presentation"),
    _office("ods", (".ods",), "oasis.opendocument.spreadsheet"),
    Format(
        "epub", (".epub",), "office.paragraphs.read_office", "application/epub+zip", is_zip=True
    ),
)
FORMATS: Mapping[str, Format] = {one.name: one for one in _ALL}
PAIRED: Mapping[str, Format] = {end: one for one in _ALL if one.has_pairs for end in one.endings}
"""Formats of texts with their translations, by the endings of names."""
ENDINGS: Mapping[str, Format] = {ending: one for one in _ALL for ending in one.endings}
ADVICE: Mapping[str, str] = {
    ".pdf": "a PDF, which has no paragraphs to write a translation into. Use the file it was made "
    "from, or convert it to .docx or .odt",
    **dict.fromkeys((".doc", ".dot"), "an old Word file, which cannot be read. Save it as .docx"),
    ".ppt": "an old PowerPoint file, which cannot be read. Save it as .pptx",
    ".xls": "an old Excel file, which cannot be read. Save it as .xlsx",
    ".rtf": "an RTF file, which cannot be read. Save it as .odt or .docx",
    ".mobi": "a Mobipocket book, which cannot be read. Convert it to .epub",
}
"""What a document without a reader is, and what to do with it, by the ending of its name."""


def format_of(name: str) -> Format | None:
    """Return the format of a file by its name; None if the ending is of none."""
    return ENDINGS.get(endings(name).kind)
