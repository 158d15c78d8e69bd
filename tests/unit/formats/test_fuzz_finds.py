"""Inputs that a long run of ``benchmarks/fuzz.py`` found, each as one small case."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from of_subwords import SUBWORDS

import pellucid
from pellucid.errors import BundleError
from pellucid.formats.safe_reading import list_tokens, read_arrays
from pellucid.text.token_words import words_of_tokens


@pytest.mark.parametrize("text", ["9" * 5000, 10**30, "-1", "1.5", ""])
def test_an_id_that_is_no_number_of_the_model_is_one_sentence(text: str | int) -> None:
    with pytest.raises(BundleError, match="Every id must be a number below the 7 of the model"):
        list_tokens({"a": text}, 7, "vocab.json")  # type: ignore[dict-item]


@pytest.mark.parametrize("header", ["{'descr': '<f4', 'shape': (2,", "{'shape': ((((", "("])
def test_an_array_whose_header_is_cut_is_one_sentence(header: str, tmp_path: Path) -> None:
    padded = header.ljust(117) + "\n"
    data = b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()
    with zipfile.ZipFile(tmp_path / "model.npz", "w") as archive:
        archive.writestr("weight.npy", data)

    with pytest.raises(BundleError):
        read_arrays(tmp_path / "model.npz")


def test_a_line_without_letters_has_tokens_without_words() -> None:
    tokenizer = pellucid.load(SUBWORDS).tokenizer
    ids = [*tokenizer.encode_target("a b"), tokenizer.config.eos_id]

    found = words_of_tokens(tokenizer, "target", "", ids, [])

    assert found == [range(0)] * (len(ids) - 1)
