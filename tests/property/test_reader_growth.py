"""Everything that reads a stranger's text takes time that grows as its size does.

Documents and requests have their own tests: `tests/unit/documents/test_document_growth.py` and
`tests/serve/test_request_growth.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from growing import MOST, exponent, find_growing

from pellucid.bundle import load_bundle, read_json_object, resolve_model
from pellucid.by_hand.matrix_files import read_matrix_file
from pellucid.by_hand.quiz_questions import read_answer
from pellucid.check.characters import anchors, main_script, normalized_words, oddities
from pellucid.check.counting import count_words
from pellucid.check.lost_parts import not_kept
from pellucid.check.tags import ends_of
from pellucid.config import DataConfig, apply_overrides, load_recipe
from pellucid.decode.constraints.glossary_files import load_glossary
from pellucid.documents.placeholder_masks import mask
from pellucid.errors import PellucidError
from pellucid.evaluation.word_links import parse_links
from pellucid.formats.safe_reading import read_arrays, read_sentencepiece, read_yaml_mapping
from pellucid.inside.changes.change import parse_change
from pellucid.inside.changes.place import parse_place
from pellucid.inside.record.trace_files import read_trace
from pellucid.languages.codes import short_code
from pellucid.serve.settings import Keys
from pellucid.text.cleaning import is_space
from pellucid.text.line_words import line_words
from pellucid.text.normalization import normalize
from pellucid.text.reading.joining import CUT_KINDS
from pellucid.text.reading.lines import read_lines
from pellucid.text.reading.row_sides import read_object
from pellucid.text.reading.sentence_pairs import BadLines, read_pairs, read_pairs_of_file
from pellucid.text.sentences import split_sentences
from pellucid.text.token_words import split_pieces
from pellucid.text.tokenizers.tokenizer import Tokenizer, read_tokens
from pellucid.text.tokenizers.whole_words import split_words
from pellucid.text.word_forms import base_forms
from pellucid.training.report.run_history import read_run

NUM_MOTIFS = 5
SIZE = 20_000
SIGNS = (
    *("a", "B ", " ", "\t", "\n", "\n\n", "\r\n", "\r", "\u00a0", "é", "e\u0301", "猫", "ก", "1"),
    *(".", ",", ";", ":", "=", "-", "*", "_", "~", "#", "!", "?", "|", "/", "\\", "`", "'", '"'),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "&",
        "%",
        "$",
        "@",
        "+",
        "%s",
        "{0}",
        "{a, ",
        "<%",
        ":a",
        "0-0 ",
        "1p2 ",
    ),
    *("@@ ", " ##", "\u2581", "\uffed", ">>fr<<", "<b>", "</b>", "&amp;", "&#", "http://a", "a@b."),
    *(
        "1,000",
        "1.",
        "\\n",
        "\\u00e9",
        '\\"',
        '""',
        "''",
        '"""',
        "'''",
        ',"',
        '",',
        "\tb\n",
        ",b\n",
    ),
    *(
        '{"source":',
        '"target":',
        "},",
        "- ",
        "a: ",
        "[a]\n",
        "a = 1\n",
        "[[a]]\n",
        "a.",
        "cut ",
        "word ",
    ),
    *("decoder.", "0.", "\x00", "\u2028", "\ufeff", "\ud800", "𝒳", "ﬁ", "مرحبا", "1e9", "nan", "∞"),
)
"""Signs that some reader has a use for."""


@cache
def _tokenizer() -> Tokenizer:
    return load_bundle(resolve_model("demo")).tokenizer


def _pairs(path: Path) -> None:
    data = DataConfig.model_validate(
        {
            "train": path.name,
            "validation": path.name,
            "source_language": "en",
            "target_language": "fr",
            "on_bad_line": "skip",
        }
    )
    list(read_pairs(data, "train", path.parent))


def _memory(path: Path) -> None:
    list(read_pairs_of_file(str(path), ("en", "fr"), BadLines()))


def _check(line: str) -> None:
    for function in (oddities, anchors, main_script, normalized_words, count_words, ends_of):
        function(line)
    not_kept(line, line[1:])


def _run(path: Path) -> None:
    read_run(path.parent)


TMX = (
    '<tmx><body><tu><tuv xml:lang="en"><seg>{}</seg></tuv>{}<tuv xml:lang="fr"/></tu></body></tmx>'
)
XLIFF = (
    '<xliff version="1.2"><file source-language="en"><body><trans-unit id="a"><source>{}</source>'
    "<target>{}</target></trans-unit></body></file></xliff>"
)

FILES: Mapping[str, tuple[str, Callable[[Path], object], tuple[str, ...]]] = {
    "training text, tsv": ("a.tsv", _pairs, ("{}", "a {}\tb\n", "en\tfr\n{}\tb\n")),
    "training text, csv": (
        "a.csv",
        _pairs,
        ("{}", "en,fr\na,{}\n", 'en,fr\na,"{}"\n', "{},fr\na,b\n"),
    ),
    "training text, jsonl": (
        "a.jsonl",
        _pairs,
        ("{}", '{"en": "{}", "fr": "a"}\n', '{"translation": {"en": "a", {}}}\n'),
    ),
    "training text, parquet": (
        "a.parquet",
        _pairs,
        ("{}", "PAR1{}PAR1", "PAR1{}\x15\x02\x19\x3cPAR1"),
    ),
    "training text, tmx": ("a.tmx", _pairs, (TMX,)),
    "extract, tmx": ("b.tmx", _memory, ("{}", TMX)),
    "extract, xliff": ("b.xlf", _memory, ("{}", XLIFF)),
    "extract, po": (
        "b.po",
        _memory,
        ("{}", 'msgid "{}"\nmsgstr "{}"\n', '#, {}\nmsgid "a"\nmsgstr "b"\n'),
    ),
    "memory, tsv": ("m.tsv", _memory, ("a {}\tb\n",)),
    "lines": ("a.txt", lambda path: list(read_lines(path, keeps_damaged=True)), ("{}",)),
    "glossary": ("g.tsv", load_glossary, ("{}", "a {}\tb\n", "# {}\n", "a\tb{}\n")),
    "recipe": (
        "r.toml",
        load_recipe,
        ("{}", '[data]\ntrain = "{}"\n', "[data]\n{}", "a = [{}]", "a = {{}}", "a.{} = 1"),
    ),
    "matrices, toml": (
        "x.toml",
        read_matrix_file,
        ("{}", "q = [[1, 0]{}]\n", 'title = "{}"\n', "q = [[{}]]"),
    ),
    "matrices, csv": ("x.csv", read_matrix_file, ("{}", "[q]\n1, 0\n{}", "[{}]\n1\n")),
    "keys of the service": ("keys", Keys.read, ("{}", "0" * 64 + " {}\n", "# {}\n")),
    "trace, json": ("t.json", read_trace, ("{}", '{"format": "{}"}', '{"{}": 1}', '{"a": [{}]}')),
    "trace, npz": ("t.npz", read_trace, ("{}", "PK\x03\x04{}", "PK\x05\x06{}")),
    "weights of Marian": ("m.npz", read_arrays, ("{}", "PK\x03\x04{}", "PK\x05\x06{}")),
    "pieces of Marian": ("source.spm", read_sentencepiece, ("{}", "\n{}", "\n\x05\n\x01a\x15{}")),
    "bundle": ("config.json", read_json_object, ("{}", '{"{}": 1}', '{"a": "{}"}', '{"a": [{}]}')),
    "metrics of a run": ("metrics.jsonl", _run, ("{}", '{"kind": "train", "step": 1}\n{}')),
    "recipe of a run": ("recipe.toml", _run, ("{}", "[data]\n{}")),
}
"""Readers of files: the name, the function, and frames for repeated signs."""

LINES: Mapping[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "options of Marian": (
        lambda text: read_yaml_mapping(text.encode("utf-8", "replace"), "f"),
        ("{}", "a: {}", "a: [{}]", 'a: "{}"'),
    ),
    "vocabulary": (
        lambda text: read_tokens({"v": text.encode("utf-8", "replace")}, "v", "f"),
        ("{}", '{"a": 0, {}}', '["{}"]'),
    ),
    "object": (
        lambda text: read_object(text, "f:1", "{}"),
        ("{}", '{"text": "{}"}', '{"a": [{}]}'),
    ),
    "override": (
        lambda text: apply_overrides({}, [text]),
        ("{}", "data.{}=1", "data.train={}", "data.train=[{}]"),
    ),
    "links": (lambda text: parse_links(text, "f:1"), ("{}", "0-0 {}", "1{}-1")),
    "place": (parse_place, ("{}", "decoder.{}", "decoder.0.cross.{}")),
    "change": (parse_change, ("{}", "cut {}", "cut decoder.0.{}", "scale {} by 2")),
    "answer to a quiz": (read_answer, ("{}", "1{}", "-{}%")),
    "language": (short_code, ("{}", "zh-{}")),
    "sentences": (split_sentences, ("{}", "A cat {} eats. B")),
    "words of a line": (line_words, ("{}", "a {} b")),
    "pieces of a line": (split_pieces, ("{}",)),
    "words": (split_words, ("{}", "a{}b")),
    "base forms, en": (lambda text: base_forms(text, "en", "forms"), ("{}",)),
    "base forms, ar": (lambda text: base_forms(text, "ar", "forms"), ("{}", "ال{}")),
    "base forms, ko": (lambda text: base_forms(text, "ko", "forms"), ("{}",)),
    "normalization": (lambda text: [normalize(text, form) for form in ("nfc", "nfkc")], ("{}",)),
    "spaces": (lambda text: [*map(is_space, text)], ("{}",)),
    "placeholders": (mask, ("{}", "a {} b")),
    "check of a line": (_check, ("{}", "a {} b")),
    "cut text": (lambda text: [kind.join(text) for kind in CUT_KINDS.values()], ("{}", "a {} b")),
    "tokens": (lambda text: _tokenizer().encode_source(text), ("{}", "A {} b.")),
}
"""Readers of texts."""


def _reading(read: Callable[[Any], object], path: Path | None = None) -> Callable[[str], None]:
    def work(text: str) -> None:
        with suppress(PellucidError, ValueError):
            if path is None:
                read(text)
            else:
                path.write_bytes(text.encode("utf-8", "surrogatepass"))
                read(path)

    return work


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_in_time_by_their_size(name: str, tmp_path: Path) -> None:
    file, read, frames = FILES[name]
    (tmp_path / "recipe.toml").touch()
    work = _reading(read, tmp_path / file)
    assert not find_growing(work, frames, SIGNS, motifs=NUM_MOTIFS, size=SIZE, seed=name)


@pytest.mark.parametrize("name", LINES)
def test_texts_are_read_in_time_by_their_size(name: str) -> None:
    read, frames = LINES[name]
    assert not find_growing(_reading(read), frames, SIGNS, motifs=NUM_MOTIFS, size=SIZE, seed=name)


def test_guard_reader_of_quadratic_time_is_found(tmp_path: Path) -> None:
    def read(path: Path) -> None:
        text = path.read_text()
        for place in range(len(text)):
            text[place:].isspace()

    assert exponent(_reading(read, tmp_path / "f"), "{}a", " ", 4000) > MOST
