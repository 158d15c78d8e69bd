"""The token store: round trip, types, interruption, damage, sentences of errors."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import Forked

from pellucid.data import TokenStore, build_store
from pellucid.errors import DataError, InputFileNotFoundError, OutputError

Pair = tuple[list[int], list[int]]
PAIRS: list[Pair] = [([5, 7, 3], [11, 3]), ([3], [13, 12, 10, 9, 3]), ([8, 3], [6, 3])]


def build(
    folder: Path, pairs: list[Pair] = PAIRS, *, source: int = 17, target: int = 19
) -> TokenStore:
    return build_store(folder, pairs, source_vocabulary_size=source, target_vocabulary_size=target)


def many_pairs(count: int) -> Iterator[Pair]:
    for index in range(count):
        yield [index % 13 + 4] * (index % 29 + 1), [index % 11 + 4] * (index % 31 + 1)


def test_store_of_three_pairs_gives_them_back(tmp_path: Path) -> None:
    store = build(tmp_path / "store")
    assert len(store) == 3
    assert [(list(store.source(i)), list(store.target(i))) for i in range(3)] == PAIRS
    assert store.source_lengths.tolist() == [3, 1, 2]
    assert store.target_lengths.tolist() == [2, 5, 2]
    assert store.source_lengths.dtype == store.target_lengths.dtype == np.int32


def test_store_larger_than_the_buffer_gives_pairs_back(tmp_path: Path) -> None:
    pairs = list(many_pairs(9001))
    assert sum(len(source) for source, _ in pairs) > 2 * 65_536
    store = build(tmp_path / "store", pairs)
    assert all(
        store.source(i).tolist() == source and store.target(i).tolist() == target
        for i, (source, target) in enumerate(pairs)
    )


def test_store_takes_an_iterator_one_by_one(tmp_path: Path) -> None:
    pairs = (pair for pair in PAIRS)
    store = build_store(
        tmp_path / "store", pairs, source_vocabulary_size=17, target_vocabulary_size=19
    )
    assert len(store) == 3


@pytest.mark.parametrize(("size", "width"), [(65_535, 2), (65_536, 4)])
def test_store_vocabulary_size_chooses_the_type(tmp_path: Path, size: int, width: int) -> None:
    store = build(tmp_path / "store", [([size - 1, 3], [4, 3])], source=size)
    assert store.source(0).tolist() == [size - 1, 3]
    assert store.source(0).itemsize == width
    assert store.target(0).itemsize == 2
    assert (tmp_path / "store" / "source.tokens").stat().st_size == 2 * width


def test_store_files_are_flat_little_endian(tmp_path: Path) -> None:
    build(tmp_path / "store")
    tokens = np.fromfile(tmp_path / "store" / "source.tokens", dtype="<u2")
    offsets = np.fromfile(tmp_path / "store" / "source.offsets", dtype="<u8")
    assert tokens.tolist() == [5, 7, 3, 3, 8, 3]
    assert offsets.tolist() == [0, 3, 4, 6]


def test_store_fingerprint_is_that_of_the_tokens(tmp_path: Path) -> None:
    first = build(tmp_path / "a").fingerprint
    assert build(tmp_path / "b").fingerprint == first
    # The same tokens in a row, but cut elsewhere; and one id different.
    moved: list[Pair] = [([5, 7], [11, 3]), ([3, 3], [13, 12, 10, 9, 3]), ([8, 3], [6, 3])]
    changed: list[Pair] = [*PAIRS[:2], ([8, 3], [7, 3])]
    assert build(tmp_path / "c", moved).fingerprint != first
    assert build(tmp_path / "d", changed).fingerprint != first


def test_store_reopened_is_the_same(tmp_path: Path) -> None:
    built = build(tmp_path / "store")
    opened = TokenStore.open(tmp_path / "store")
    assert opened.fingerprint == built.fingerprint
    assert opened.target(1).tolist() == PAIRS[1][1]


def test_store_dropped_counts_are_read_after_the_last_pair(tmp_path: Path) -> None:
    dropped: Counter[str] = Counter()

    def pairs() -> Iterator[Pair]:
        yield PAIRS[0]
        dropped["too long"] += 7

    store = build_store(
        tmp_path / "store",
        pairs(),
        source_vocabulary_size=17,
        target_vocabulary_size=19,
        dropped=dropped,
    )
    assert store.dropped == {"too long": 7}
    assert TokenStore.open(tmp_path / "store").dropped == {"too long": 7}


def test_store_gather_gives_sequences_in_the_order_asked(tmp_path: Path) -> None:
    store = build(tmp_path / "store")
    tokens, lengths = store.gather_targets(np.array([2, 0, 2]))
    assert tokens.tolist() == [6, 3, 11, 3, 6, 3]
    assert lengths.tolist() == [2, 2, 2]


@pytest.mark.parametrize("index", [-1, 3])
def test_store_index_outside_is_refused(tmp_path: Path, index: int) -> None:
    with pytest.raises(IndexError):
        build(tmp_path / "store").source(index)


def test_store_tokens_are_read_only(tmp_path: Path) -> None:
    store = build(tmp_path / "store")
    with pytest.raises(ValueError, match="read-only"):
        store.source(0)[0] = 1


def test_build_without_pairs_is_refused_with_the_reasons(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"at least one pair.*too long: 5"):
        build_store(
            tmp_path / "store",
            [],
            source_vocabulary_size=17,
            target_vocabulary_size=19,
            dropped={"too long": 5},
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (([], [3]), r"Every source must have at least one token.*pair 3"),
        (([3], []), r"Every target must have at least one token.*pair 3"),
        (([17, 3], [3]), r"Every source id must be in 0 to 16, but one is 17"),
        (([3], [-1, 3]), r"Every target id must be in 0 to 18, but one is -1"),
    ],
)
def test_build_with_an_impossible_pair_is_refused(tmp_path: Path, pair: Pair, message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(tmp_path / "store", [*PAIRS, pair])
    assert list(tmp_path.iterdir()) == []


def test_build_interrupted_by_the_reader_leaves_nothing(tmp_path: Path) -> None:
    def pairs() -> Iterator[Pair]:
        yield from many_pairs(9001)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_store(
            tmp_path / "store", pairs(), source_vocabulary_size=17, target_vocabulary_size=19
        )
    assert list(tmp_path.iterdir()) == []


def test_build_killed_leaves_no_store_and_can_be_repeated(
    tmp_path: Path, run_python: Callable[..., Any]
) -> None:
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from pellucid.data import build_store\n"
        "def pairs():\n"
        "    for _ in range(70_000):\n"
        "        yield [4, 3], [5, 3]\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "build_store(Path(sys.argv[1]), pairs(),"
        " source_vocabulary_size=17, target_vocabulary_size=19)\n"
    )
    folder = tmp_path / "store"
    killed = run_python("-c", program, str(folder), kind=Forked)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / ".store.part" / "source.tokens").stat().st_size > 0
    for place in (folder, tmp_path / ".store.part"):
        with pytest.raises(InputFileNotFoundError, match=r"store\.json"):
            TokenStore.open(place)
    assert len(build(folder)) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_build_on_a_full_disk_is_an_output_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match=r"must be writable.*No space left on device"):
        build(tmp_path / "store")
    assert list(tmp_path.iterdir()) == []


def test_build_below_a_file_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match=r"must be writable, but .*file/store is not"):
        build(tmp_path / "file" / "store")


def test_build_keeps_the_readers_own_error(tmp_path: Path) -> None:
    def pairs() -> Iterator[Pair]:
        yield PAIRS[0]
        raise InputFileNotFoundError("The file must exist, but x does not.")

    with pytest.raises(InputFileNotFoundError, match="but x does not"):
        build_store(
            tmp_path / "store", pairs(), source_vocabulary_size=17, target_vocabulary_size=19
        )


def test_build_into_a_folder_in_use_is_refused_and_keeps_it(tmp_path: Path) -> None:
    fingerprint = build(tmp_path / "store").fingerprint
    with pytest.raises(OutputError, match="must be empty"):
        build(tmp_path / "store", PAIRS[:1])
    assert TokenStore.open(tmp_path / "store").fingerprint == fingerprint


@pytest.mark.parametrize(
    "name", ["source.tokens", "source.offsets", "target.tokens", "target.offsets"]
)
@pytest.mark.parametrize("change", ["cut", "grown", "gone"])
def test_open_with_a_damaged_file_names_it(tmp_path: Path, name: str, change: str) -> None:
    build(tmp_path / "store")
    path = tmp_path / "store" / name
    if change == "gone":
        path.unlink()
    else:
        data = path.read_bytes()
        path.write_bytes(data[:-1] if change == "cut" else data + b"\0")
    with pytest.raises(DataError, match=rf"{name}.*build it again"):
        TokenStore.open(tmp_path / "store")


@pytest.mark.parametrize("offsets", [[0, 4, 3, 6], [1, 3, 4, 6], [0, 3, 4, 5], [0, 3, 3, 6]])
def test_open_with_impossible_offsets_is_refused(tmp_path: Path, offsets: list[int]) -> None:
    build(tmp_path / "store")
    (tmp_path / "store" / "source.offsets").write_bytes(np.array(offsets, "<u8").tobytes())
    with pytest.raises(DataError, match=r"offsets.*must rise from 0 to 6"):
        TokenStore.open(tmp_path / "store")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format"),
        ({"num_pairs": 0}, "num_pairs"),
        ({"surprise": 1}, "surprise"),
        ({"source": {"dtype": "object", "num_tokens": 6, "vocabulary_size": 17}}, "source.dtype"),
    ],
)
def test_open_with_a_strange_description_names_the_field(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    build(tmp_path / "store")
    path = tmp_path / "store" / "store.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataError, match=message):
        TokenStore.open(tmp_path / "store")


def test_open_with_a_description_that_is_no_json_is_refused(tmp_path: Path) -> None:
    build(tmp_path / "store")
    (tmp_path / "store" / "store.json").write_bytes(b"\xff{")
    with pytest.raises(DataError, match=r"store\.json does not \(the whole file"):
        TokenStore.open(tmp_path / "store")
