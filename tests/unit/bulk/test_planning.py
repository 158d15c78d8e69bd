"""The plan of a job: the same pieces, however many processes read the shards."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from tame_crew import TASK

from pellucid.bulk import planning, shards
from pellucid.bulk.planning import Plan
from pellucid.errors import DataError, PellucidError
from pellucid.machine.processes import Child


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch, forked_children: None) -> None:
    """Let every part be worth a process, and be small."""
    monkeypatch.setattr(planning, "BYTES_A_PROCESS", 1)
    monkeypatch.setattr(shards, "PART_BYTES", 300)


def cut(data: bytes, start: int, piece_bytes: int) -> list[tuple[int, int, str]]:
    """Cut a text, byte by byte."""
    pieces = []
    piece = b""
    for place in range(start, len(data)):
        piece += data[place : place + 1]
        is_full = len(piece) >= piece_bytes and piece.endswith(b"\n")
        if is_full or place + 1 == len(data):
            lines = len(piece.split(b"\n")) - piece.endswith(b"\n")
            pieces.append((len(piece), lines, hashlib.sha256(piece).hexdigest()))
            piece = b""
    return pieces


@pytest.mark.parametrize("piece_bytes", [1, 10, 100, 10_000])
@pytest.mark.parametrize("kind", ["lines", "tsv"])
def test_pieces_are_those_of_the_whole_text_whoever_reads_them(
    tmp_path: Path, many: None, piece_bytes: int, kind: str
) -> None:
    chance = random.Random(piece_bytes)
    lines = ["word " * chance.randint(0, 30) for _ in range(80)]
    names = "text\tother\n" if kind == "tsv" else ""
    text = "\n".join([*lines, "the last line has no end"]).encode()
    texts = {
        "long": f"{names}{'first ' * 60}\n".encode() + text,
        "ends": f"{names}".encode() + text + b"\n",
        "empty": b"",
        "one": f"{names}a".encode(),
        "breaks": f"{names}".encode() + b"\n" * 40,
    }
    paths = []
    for name, data in texts.items():
        for ending, packed in (("", data), (".gz", gzip.compress(data))):
            paths.append(str(tmp_path / f"{name}{ending}"))
            Path(paths[-1]).write_bytes(packed)
    task = TASK | {"kind": kind}
    plans = [Plan(paths, task, piece_bytes).read(number) for number in (1, 3)]
    for found in plans:
        assert [shard.path for shard in found] == paths
        for shard, data in zip(found, (text for text in texts.values() for _ in "ab"), strict=True):
            start = len(names) if data else 0
            assert shard.start == start
            assert list(map(tuple, shard.pieces)) == cut(data, start, piece_bytes)


def test_a_damaged_shard_is_named_as_by_one_process(tmp_path: Path, many: None) -> None:
    for number in range(3):
        packed = gzip.compress(os.urandom(3000).hex().encode() * 40)
        (tmp_path / f"{number}.gz").write_bytes(packed[: len(packed) - 9 * (number == 1)])
    paths = [str(path) for path in sorted(tmp_path.iterdir())]
    said = []
    for processes in (1, 3):
        with pytest.raises(DataError, match=r"1\.gz is damaged") as caught:
            Plan(paths, TASK, 1000).read(processes)
        said.append(caught.value.sentence)
    assert said[0] == said[1]


def test_a_process_that_is_killed_ends_the_plan_with_a_sentence(
    tmp_path: Path, many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.txt").write_bytes(b"a line\n" * 200)
    send = Child.send
    pids = []

    def kill(child: Child, *messages: bytes) -> None:
        pids.append(child.process.pid)
        if len(pids) == 2:
            os.kill(child.process.pid, signal.SIGKILL)
        send(child, *messages)

    monkeypatch.setattr(Child, "send", kill)
    with pytest.raises(PellucidError, match=r"was ended by signal 9.* Give the command again"):
        Plan([str(tmp_path / "in.txt")], TASK, 100).read(3)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(("count", "expected"), [(1, []), (3, [2])])
def test_small_shards_are_worth_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, expected: list[int]
) -> None:
    started: list[int] = []
    (tmp_path / "in.txt").write_bytes(b"a line\n" * 100)
    monkeypatch.setattr(planning, "BYTES_A_PROCESS", 1000)

    def share_out(parts: Any, number: int, _: Any) -> Any:
        started.append(number)
        return [shards.hash_pieces(*part) for part in parts]

    monkeypatch.setattr(planning, "_share_out", share_out)
    Plan([str(tmp_path / "in.txt")] * count, TASK, 100).read(2)
    assert started == expected
