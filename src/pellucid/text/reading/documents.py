"""Kinds of files whose lines are not text to translate, known by the ends of their names."""

from __future__ import annotations

from pathlib import Path

_KINDS = {
    "a gettext catalog": "po pot gmo",
    "a file of translation units": "xlf xliff sdlxliff mqxliff mxliff xlz tmx tbx ttx",
    "a file of an interface's texts": "arb ftl properties resx strings stringsdict xcstrings",
    "subtitles": "srt vtt ass ssa sub sbv smi ttml dfxp",
    "a page with markup": "htm html xhtml mhtml xml svg",
    "text with markup": "md markdown mdx rst adoc asciidoc tex latex textile",
    "a table": "csv tsv xls xlsx xlsm ods parquet",
    "a file of data": "json jsonl ndjson geojson yaml yml toml ini",
    "a document with a layout": "doc docx docm dotx odt ott rtf pdf epub mobi",
    "slides": "ppt pptx pptm odp",
    "an archive": "zip tar tgz bz2 xz zst 7z rar",
}
# Codes of languages are left out, since corpora are named so: ``ts`` is Tsonga, ``mo`` Moldavian.
_BY_ENDING = {ending: kind for kind, endings in _KINDS.items() for ending in endings.split()}


def kind_of_document(name: str) -> str | None:
    """Describe the kind of a file that is not plain lines, or return None.

    Args:
        name: the file's name or path; ``.gz`` at its end is not looked at.
    """
    ending = Path(name.lower().removesuffix(".gz")).suffix
    return _BY_ENDING.get(ending.removeprefix("."))
