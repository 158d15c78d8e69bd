"""Output files are whole or not there; input comes in windows."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest

from pellucid.cli.streams import WINDOW, open_output, parallel_windows, to_json_line, windows
from pellucid.errors import DataError, InputError, OutputError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_open_output_success_writes_the_file_with_plain_line_ends(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out.txt"), may_overwrite=False) as stream:
        stream.write("four\u00a0!\n")
    assert (tmp_path / "out.txt").read_bytes() == "four\u00a0!\n".encode()
    assert names(tmp_path) == ["out.txt"]


def test_open_output_name_ending_in_gz_is_packed_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with open_output(str(tmp_path / name), may_overwrite=False) as stream:
            stream.write("pizza\n")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"pizza\n"
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


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


def test_windows_are_bounded_and_complete(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{n}\n" for n in range(2 * WINDOW + 7)))
    found = list(windows(str(path)))
    assert [len(window) for window in found] == [WINDOW, WINDOW, 7]
    assert [line for window in found for line in window] == [str(n) for n in range(2 * WINDOW + 7)]


def test_windows_before_a_bad_line_are_handed_out_first(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\ntwo\n\xff\n")
    reader = windows(str(path))
    assert next(reader) == ["one", "two"]
    with pytest.raises(DataError, match=r"lines\.txt:3"):
        next(reader)


def test_parallel_windows_two_standard_inputs_are_refused() -> None:
    with pytest.raises(InputError, match="Only one file may be standard input"):
        next(parallel_windows({"--source": "-", "--target": "-"}))


def test_to_json_line_infinite_number_becomes_a_string_and_accents_stay() -> None:
    line = to_json_line({"text": "é\n", "values": (-math.inf, 0.5)})
    assert line == '{"text": "é\\n", "values": ["-inf", 0.5]}\n'
    assert json.loads(line)["values"] == ["-inf", 0.5]
