"""Endings of file names are compared in one place, whatever their case."""

from __future__ import annotations

import re
from pathlib import Path

KINDS = "gz xz bz2 zst tsv csv jsonl ndjson json parquet arrow po xlf tmx svg png pdf html npz toml"
COMPARED = re.compile(
    r"\.suffix(?:es)?\b(?:\.lower\(\))?\s*(?:==|!=|in\b|not in\b)"
    r"|(?:endswith|removesuffix)\(\(?\s*r?[\"'](?:\.\w+)*\.(?:"
    + KINDS.replace(" ", "|")
    + r")[\"']"
)
"""Code that compares the ending of a file's name itself."""

ALLOWED = {"pellucid.inside.record.trace_files": 1}
"""Modules that cut an ending off a name."""


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
    ):
        assert COMPARED.search(code), code


def test_guard_other_endings_are_fine() -> None:
    for code in ('name.endswith(".weights")', "path.with_suffix('')", 'line.endswith(".")'):
        assert not COMPARED.search(code), code
