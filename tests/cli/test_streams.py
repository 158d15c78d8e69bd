"""Output files are complete or absent; input is read in windows."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.cli.lines import streams
from pellucid.cli.lines.streams import (
    MAX_CHARACTERS,
    MAX_LINES,
    LineWindow,
    ParallelReader,
    check_readable,
    open_output,
    parallel_windows,
    to_json_line,
)
from pellucid.errors import DataError, InputError, OutputError, speaking_to


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def read(path: Path, max_lines: int = MAX_LINES) -> Iterator[LineWindow]:
    return ParallelReader({"--input": str(path)}).windows(max_lines)


def test_open_output_success_writes_the_file_with_plain_line_ends(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out.txt"), may_overwrite=False) as stream:
        stream.write("four\u00a0!\n")
    assert (tmp_path / "out.txt").read_bytes() == "four\u00a0!\n".encode()
    assert names(tmp_path) == ["out.txt"]


def test_open_output_name_ending_in_gz_is_packed_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a.gz", "B.GZ"):
        with open_output(str(tmp_path / name), may_overwrite=False) as stream:
            stream.write("pizza\n")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"pizza\n"
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "B.GZ").read_bytes()


@pytest.mark.parametrize("failure", [DataError("x"), KeyboardInterrupt(), SystemExit(143)])
def test_open_output_failure_keeps_the_old_file(tmp_path: Path, failure: BaseException) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fail() -> None:
        with open_output(str(path), may_overwrite=True) as stream:
            stream.write("new")
            raise failure

    with pytest.raises(type(failure)):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out.txt"]


@pytest.mark.parametrize(
    ("target", "may_overwrite", "expected"),
    [
        ("there.txt", False, "--overwrite"),
        ("folder", True, "is a folder"),
        ("missing/out.txt", True, "folder must exist"),
    ],
)
def test_open_output_impossible_target_is_refused(
    tmp_path: Path, target: str, may_overwrite: bool, expected: str
) -> None:
    (tmp_path / "there.txt").write_text("old")
    (tmp_path / "folder").mkdir()
    with (
        speaking_to("command"),
        pytest.raises(InputError, match=expected),
        open_output(str(tmp_path / target), may_overwrite=may_overwrite),
    ):
        pass
    assert (tmp_path / "there.txt").read_text() == "old"


def test_open_output_overwriting_replaces_what_a_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with open_output(str(tmp_path / "link.txt"), may_overwrite=True) as stream:
        stream.write("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_open_output_full_device_is_an_output_error() -> None:
    with (
        pytest.raises(OutputError, match="No space left"),
        open_output("/dev/full", may_overwrite=False) as stream,
    ):
        stream.write("pizza\n")


def test_windows_are_bounded_by_lines_and_complete(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{n}\n" for n in range(2 * MAX_LINES + 7)))
    found = list(read(path))
    assert [len(window.columns["--input"]) for window in found] == [MAX_LINES, MAX_LINES, 7]
    assert [window.first for window in found] == [0, MAX_LINES, 2 * MAX_LINES]
    lines = [line for window in found for line in window.columns["--input"]]
    assert lines == [str(n) for n in range(2 * MAX_LINES + 7)]


def test_windows_of_long_lines_are_bounded_by_characters(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    length = MAX_CHARACTERS // 3
    path.write_text(("é" * length + "\n") * 7)
    counts = [len(window.columns["--input"]) for window in read(path)]
    assert counts == [4, 3]  # the line that crosses the bound ends the window


@given(
    lengths=st.lists(st.integers(0, 11), max_size=40),
    max_lines=st.integers(1, 7),
    data=st.data(),
)
def test_windows_from_any_window_on_are_the_same(
    lengths: list[int],
    max_lines: int,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    path.write_text("".join("x" * length + "\n" for length in lengths))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "MAX_CHARACTERS", 23)
        whole = list(read(path, max_lines))
        assert sum(len(window.columns["--input"]) for window in whole) == len(lengths)
        if not whole:
            return
        start = data.draw(st.integers(0, len(whole) - 1))
        readers = ParallelReader({"--input": str(path)})
        readers.skip(whole[start].first)
        assert list(readers.windows(max_lines)) == whole[start:]


def test_windows_before_a_bad_line_are_handed_out_first_and_not_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\ntwo\n\xff\n")
    windows, hashes = read(path), {"--input": hashlib.sha256(b"one\ntwo\n").hexdigest()}
    assert next(windows) == LineWindow(
        0, {"--input": ["one", "two"]}, is_whole=False, hashes=hashes
    )
    with pytest.raises(DataError, match=r"lines\.txt:3"):
        next(windows)


def test_readers_hash_is_of_the_lines_read_so_far_whatever_ends_them(tmp_path: Path) -> None:
    hashes = []
    for name, data in (
        ("plain", b"one\ntwo\nthree\n"),
        ("windows", b"\xef\xbb\xbfone\r\ntwo\r\nfour"),
        ("packed", gzip.compress(b"one\ntwo\n")),
        ("other", b"one\n two\n"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        readers = ParallelReader({"--input": str(path)})
        readers.skip(2)
        hashes.append(readers.hashes()["--input"])
    assert hashes[0] == hashes[1] == hashes[2] != hashes[3]


def test_readers_skip_beyond_the_end_stops_there(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\ntwo")
    readers = ParallelReader({"--input": str(path)})
    readers.skip(5)
    assert readers.num_lines == 2


def test_check_files_counts_lines_and_refuses_other_numbers_of_them(tmp_path: Path) -> None:
    for name, count in (("a", 3), ("b", 3), ("c", 5)):
        (tmp_path / name).write_text("x\n" * count)
    files = {name: str(tmp_path / name) for name in ("a", "b", "c")}
    assert check_readable({name: files[name] for name in "ab"}) == {"a": 3, "b": 3}
    assert check_readable({"a": files["a"], "c": "-"}) == {"a": 3}
    with pytest.raises(DataError, match=r"a .* has 3 and c .* has 5"):
        check_readable({name: files[name] for name in "ac"})


def test_parallel_windows_two_standard_inputs_are_refused() -> None:
    with pytest.raises(InputError, match="Only one file may be standard input"):
        next(parallel_windows({"--source": "-", "--target": "-"}))


def test_to_json_line_infinite_number_becomes_a_string_and_accents_stay() -> None:
    line = to_json_line({"text": "é\n", "values": (-math.inf, 0.5)})
    assert line == '{"text": "é\\n", "values": ["-inf", 0.5]}\n'
    assert json.loads(line)["values"] == ["-inf", 0.5]
