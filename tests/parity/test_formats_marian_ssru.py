"""Models in the form of Firefox Translations give the scores and translations that Marian gives.

``marian_ssru`` holds a tiny model that Marian trained, in each form of weights that its converter
writes, and what Marian's decoder writes greedily; ``marian_archive/make.py`` made it. Int8 has
another code in Bergamot's fork, which stores tables of embeddings in int8 too: such a file is
written here, in the form in which the format is published.
"""

from __future__ import annotations

import json
import math
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

import pellucid
from pellucid.bundle import Bundle, load_bundle
from pellucid.errors import BundleError
from pellucid.formats.from_marian import import_marian
from pellucid.formats.marian_folder import read_marian_binary

HERE = Path(__file__).parent / "marian_ssru"
FLOATS = ("model.npz", "model.bin")
BYTES = ("model.intgemm8.bin", "model.intgemm.alphas.bin")
GREEDY = {"beam": 1, "length_penalty": "none"}


@pytest.fixture(scope="module")
def scored() -> list[tuple[str, str, list[float]]]:
    """Sources, what Marian wrote greedily, and the log-probability of each token and the end."""
    lines = (HERE / "scores.jsonl").read_text("utf-8").splitlines()
    return [tuple(json.loads(line)) for line in lines]


def folder_with(folder: Path, weights: str) -> Path:
    folder.mkdir()
    for name in (weights, "vocab.spm"):
        shutil.copy(HERE / name, folder / name)
    return folder


def converted(tmp_path: Path, weights: str) -> Bundle:
    import_marian(folder_with(tmp_path / "theirs", weights)).save(tmp_path / "bundle")
    return load_bundle(tmp_path / "bundle")


def write_binary(
    path: Path, arrays: Mapping[str, np.ndarray], code: int = 0x4101, *, tables: bool = True
) -> None:
    """Write a file as Bergamot's converter does: matrices, and tables if asked, in int8."""
    items = []
    for name, array in arrays.items():
        is_table = "Wemb" in name
        if name.startswith("special:"):
            items.append((name, 0x101, array.shape, array.tobytes()))
        elif (is_table and tables) or "_W" in name[-3:]:
            multiplier = np.float32(127 / np.abs(array).max())
            rounded = np.rint(array * multiplier).astype(np.int8)
            stored = rounded if is_table else np.ascontiguousarray(rounded.T)
            items.append((name, code, array.shape, stored.tobytes() + multiplier.tobytes()))
        else:
            items.append((name, 0x404, array.shape, array.astype(np.float32).tobytes()))
    # Behind the data of an array are whatever bytes memory held, up to a multiple of 256.
    data = [one + b"\x7f" * (-len(one) % 256) for *_, one in items]
    head = struct.pack("<QQ", 1, len(items))
    for (name, kind, shape, _), one in zip(items, data, strict=True):
        head += struct.pack("<QQQQ", len(name) + 1, kind, len(shape), len(one))
    head += b"".join(name.encode() + b"\0" for name, *_ in items)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    padding = -(len(head) + 8) % 256
    path.write_bytes(head + struct.pack("<Q", padding) + bytes(padding) + b"".join(data))


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    with np.load(HERE / "model.npz") as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.parametrize("weights", FLOATS)
def test_scores_and_all_greedy_translations_are_marians(
    weights: str, scored: list[tuple[str, str, list[float]]], tmp_path: Path
) -> None:
    bundle = converted(tmp_path, weights)
    assert bundle.config.model.decoder == "ssru"
    found = pellucid.load(bundle.folder, **GREEDY).translate([source for source, _, _ in scored])
    largest = 0.0
    for (_, text, scores), ours in zip(scored, found, strict=True):
        assert ours.text == text
        logs = ours.best.token_log_probabilities
        assert len(logs) == len(scores)
        largest = max(largest, *(abs(a - b) for a, b in zip(logs, scores, strict=True)))
    # Marian prints five digits behind the point.
    assert len(scored) == 300
    assert largest < 1e-4


@pytest.mark.parametrize("weights", BYTES)
def test_bytes_are_read_as_what_they_stand_for(weights: str, arrays: dict[str, np.ndarray]) -> None:
    """Marian's converter wrote them; every number is the float32 model's, rounded once."""
    found = read_marian_binary(HERE / weights)
    for name, array in arrays.items():
        if name.startswith("special:"):
            continue
        unit = np.abs(array).max() / 127 if "_W" in name[-3:] else 0
        assert np.abs(found[name] - array).max() <= unit * 0.5001, name


@pytest.mark.parametrize("weights", BYTES)
def test_bytes_translate_nearly_as_the_floats(
    weights: str, scored: list[tuple[str, str, list[float]]], tmp_path: Path
) -> None:
    some = scored[:60]
    bundle = converted(tmp_path, weights)
    found = pellucid.load(bundle.folder, **GREEDY).translate([source for source, _, _ in some])
    same = sum(ours.text == text for (_, text, _), ours in zip(some, found, strict=True))
    assert same >= 57


def test_bergamots_code_and_its_tables_of_bytes_are_read(
    arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    write_binary(tmp_path / "model.intgemm.alphas.bin", arrays)
    found = read_marian_binary(tmp_path / "model.intgemm.alphas.bin")
    for name in ("Wemb", "decoder_l1_rnn_Wf", "decoder_l2_ffn_W1"):
        unit = np.abs(arrays[name]).max() / 127
        assert 0 < np.abs(found[name] - arrays[name]).max() <= unit * 0.5001, name
    # Marian's own file of the same numbers says the same.
    theirs = read_marian_binary(HERE / "model.intgemm8.bin")
    assert np.array_equal(found["decoder_l2_ffn_W1"], theirs["decoder_l2_ffn_W1"])


def test_separate_vocabularies_as_firefox_names_them(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "theirs", "model.bin")
    shutil.copy(folder / "vocab.spm", folder / "trgvocab.enfr.spm")
    (folder / "vocab.spm").rename(folder / "srcvocab.enfr.spm")
    import_marian(folder).save(tmp_path / "bundle")
    assert load_bundle(tmp_path / "bundle").config.tokenizer.sharing == "separate"


def test_shortlist_and_word_penalty_are_named_as_left_out(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "theirs", "model.intgemm8.bin")
    (folder / "lex.50.50.enfr.s2t.bin").write_bytes(b"\xf5\x17\x34\x01")
    settings = "models: [model.intgemm8.bin]\nvocabs: [vocab.spm, vocab.spm]\nbeam-size: 1\n"
    (folder / "config.yml").write_text(settings + "word-penalty: 0.5\n")
    found = import_marian(folder)
    assert found.dropped == ("word-penalty = 0.5", "shortlist = lex.50.50.enfr.s2t.bin")
    assert found.decoding.beam == 1


def spoil_code(data: bytes) -> bytes:
    place = data.index(struct.pack("<Q", 0x10001))
    return data[:place] + struct.pack("<Q", 0x11001) + data[place + 8 :]


def spoil_multiplier(data: bytes) -> bytes:
    at = 16 + 32 * struct.unpack_from("<Q", data, 8)[0]
    start = data.index(b"decoder_l1_context_Wk")
    assert start > at
    headers = [struct.unpack_from("<QQQQ", data, 16 + 32 * n) for n in range(2)]
    total = struct.unpack_from("<Q", data, 8)[0]
    ends = [struct.unpack_from("<QQQQ", data, 16 + 32 * n) for n in range(total)]
    first = len(data) - sum(one[3] for one in ends) + sum(one[3] for one in headers)
    return data[: first + 1024] + struct.pack("<f", math.nan) + data[first + 1028 :]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda data: data[:-300], "is damaged or cut off"),
        (lambda data: data[:100], "is damaged or cut off"),
        (lambda data: data[:8] + b"\xff" * 8 + data[16:], "is damaged or cut off"),
        (spoil_code, "decoder_l1_context_Wk is packed in another way"),
        (spoil_multiplier, "is damaged or cut off"),
        (
            lambda data: data.replace(b"dec-cell: ssru", b"dec-cell: lstm"),
            "dec-cell must be 'ssru'",
        ),
    ],
)
def test_damaged_and_unknown_files_are_refused_and_leave_nothing(
    spoil: object, said: str, tmp_path: Path
) -> None:
    folder = folder_with(tmp_path / "theirs", "model.intgemm8.bin")
    path = folder / "model.intgemm8.bin"
    path.write_bytes(spoil(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(BundleError, match=said):
        pellucid.convert(folder, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_folder_with_two_models_or_no_vocabulary_is_refused(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "theirs", "model.bin")
    shutil.copy(HERE / "model.npz", folder / "model.npz")
    with pytest.raises(BundleError, match=r"must hold one file of weights, but .* holds 2"):
        import_marian(folder)
    (folder / "model.npz").unlink()
    (folder / "vocab.spm").unlink()
    with pytest.raises(BundleError, match=r"must hold one decoder\.yml"):
        import_marian(folder)


def test_state_of_a_translation_is_shown_in_a_trace(tmp_path: Path) -> None:
    bundle = converted(tmp_path, "model.bin")
    trace = pellucid.load(bundle.folder).look("the black cat eats", everything=True)
    assert trace.problems == ()
    state_TD = torch.tensor(trace["decoder.1.recurrent.state"])
    output_TD = torch.tensor(trace["decoder.1.recurrent.output"])
    assert torch.equal(output_TD, state_TD.relu())
