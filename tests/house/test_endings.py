"""Endings of file names are compared in one place, whatever their case."""

from __future__ import annotations

import re
from pathlib import Path

KINDS = "gz xz bz2 zst tsv csv jsonl ndjson json parquet arrow po xlf tmx svg png pdf html npz toml"
_ENDING = rf"\.(?:{KINDS.replace(' ', '|')})"
COMPARED = re.compile(
    r"\.suffix(?:es)?\b(?:\.lower\(\))?\s*(?:==|!=|in\b|not in\b)"
    r"|(?:\[|get\(|match |==\s*)[\w.()]*\.suffix\b"
    r"|splitext\("
    rf"|(?:glob|fnmatch|match)\([^)\n]*[\"']\*?{_ENDING}[\"']"
    rf"|[\"'][^\"'\n]*\\{_ENDING}\$"
    rf"|(?:endswith|removesuffix)\(\(?\s*r?[\"'](?:\.\w+)*{_ENDING}[\"']"
)
"""Code that compares the ending of a file's name itself."""

ALLOWED = {"pellucid.inside.record.trace_files": 1, "pellucid.formats.marian_folder": 2}
"""Modules that cut an ending off a name in lower case, or look for files that Marian writes."""


def test_endings_of_names_are_compared_in_one_place(modules: dict[str, Path]) -> None:
    found = {
        module: len(COMPARED.findall(path.read_text(encoding="utf-8")))
        for module, path in modules.items()
        if module != "pellucid.files"
    }
    found = {module: count for module, count in found.items() if count}
    assert found == ALLOWED, "use pellucid.files.endings"


def test_guard_comparisons_of_endings_are_found() -> None:
    for code in (
        'if path.suffix == ".gz":',
        'path.suffix.lower() not in (".yml",)',
        "name.endswith('.tsv')",
        'name.lower().endswith((".jsonl", ".ndjson"))',
        'name.removesuffix(".json.gz")',
        "readers[path.suffix]",
        "readers.get(Path(name).suffix)",
        "match path.suffix:",
        "os.path.splitext(name)[1]",
        'folder.glob("*.tsv")',
        'fnmatch(name, "*.gz")',
        're.search(r"\\.gz$", name)',
    ):
        assert COMPARED.search(code), code


def test_guard_other_endings_are_fine() -> None:
    for code in ('name.endswith(".weights")', "path.with_suffix('')", 'line.endswith(".")'):
        assert not COMPARED.search(code), code
