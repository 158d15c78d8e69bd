"""Line ends, packed files by content, messages with file and line, and writes that survive."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import shutil
import sys
import tarfile
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from pellucid.errors import DataError, InputFileNotFoundError, OutputError
from pellucid.files import (
    delete_folder,
    endings,
    hash_bytes,
    hash_file,
    new_folder,
    read_bytes,
    tidy_folder,
    write_bytes,
    write_text,
)
from pellucid.text.reading import lines as text_lines
from pellucid.text.reading.lines import (
    decode_line,
    not_a_line,
    not_utf8,
    open_binary,
    read_lines,
)


@pytest.mark.parametrize(
    ("name", "kind", "packing"),
    [
        ("a.tsv", ".tsv", ""),
        ("A.TSV.GZ", ".tsv", ".gz"),
        ("out.GZ", "", ".gz"),
        ("s3://bucket/part-1.jsonl.zst", ".jsonl", ".zst"),
        ("/folder.en/text", "", ""),
        ("a.gz.txt", ".txt", ""),
        ("", "", ""),
    ],
)
def test_endings_of_a_name_are_its_kind_and_its_packing_in_lower_case(
    name: str, kind: str, packing: str
) -> None:
    assert endings(name) == (kind, packing)
    assert endings(Path(name)) == (kind, packing)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(folder: Path, data: bytes, name: str = "text.en") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\nb", ["a", "b"]),
        (b"a\n\nb\n\n", ["a", "", "b", ""]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\r\n", [""]),
        (b"a\r\r\n", ["a\r"]),
        (b"a\rb\n", ["a\rb"]),
        (b" a\t \n", [" a\t "]),
        (b"a\x00b\x1ac\n", ["a\x00b\x1ac"]),
    ],
)
def test_read_lines_ends_a_line_at_newline_only(
    tmp_path: Path, data: bytes, lines: list[str]
) -> None:
    path = write(tmp_path, data)
    assert list(read_lines(path)) == lines


@pytest.mark.parametrize(
    "separator", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\r"]
)
def test_read_lines_keeps_what_others_take_for_line_ends(tmp_path: Path, separator: str) -> None:
    line = f"before{separator}after"
    assert list(read_lines(write(tmp_path, f"{line}\nnext\n".encode()))) == [line, "next"]


@pytest.mark.parametrize(
    "line", ["“Où ?” – l’été", "🙂\u200d🎉", "שלום", "日本語", "a\u0301", "x\ufeffy", "z" * 100_000]
)
def test_read_lines_changes_no_character(tmp_path: Path, line: str) -> None:
    assert list(read_lines(write(tmp_path, f"first\n{line}\n".encode()))) == ["first", line]


def test_read_lines_drops_a_byte_order_mark_at_the_start_only(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    path = write(tmp_path, mark + b"a\n" + mark + b"b\n")
    assert list(read_lines(path)) == ["a", "\ufeffb"]


def pack_lzma(data: bytes) -> bytes:
    return lzma.compress(data, format=lzma.FORMAT_ALONE)


PACKERS = [gzip.compress, lzma.compress, pack_lzma, bz2.compress]


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("name", ["text.en", "text.en.gz", "text.txt"])
def test_read_lines_of_packed_content_unpacks_it_whatever_its_name(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    path = write(tmp_path, pack("é\nb\r\nc".encode()), name)
    assert list(read_lines(path)) == ["é", "b", "c"]


def test_read_lines_of_plain_text_named_gz_reads_it_as_it_is(tmp_path: Path) -> None:
    assert list(read_lines(write(tmp_path, b"a\nb\n", "text.gz"))) == ["a", "b"]


@pytest.mark.parametrize("pack", PACKERS)
def test_read_lines_of_several_packed_streams_reads_them_all(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    # Blocks of zeros may follow a stream on tapes, and within .xz.
    path = write(tmp_path, pack(b"a\nb") + pack(b"") + pack(b"c\nd\n") + bytes(4096))
    if pack is pack_lzma:
        path.write_bytes(pack(b"a\nbc\nd\n"))
    assert list(read_lines(path)) == ["a", "bc", "d"]


@pytest.mark.parametrize("pack", [lzma.compress, bz2.compress])
@pytest.mark.parametrize("end", [12, 20, -1, None])
def test_read_lines_of_other_damaged_packed_files_raises_data_error(
    tmp_path: Path, pack: Callable[[bytes], bytes], end: int | None
) -> None:
    whole = pack(b"".join(b"%d %d\n" % (n, n * n * 7919) for n in range(2000)))
    path = write(tmp_path, whole[:end] if end else whole + b"rubbish")
    with pytest.raises(DataError, match=r"damaged after line \d+: .*\. Copy or compress it again"):
        list(read_lines(path, keeps_damaged=True))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_read_lines_of_a_packed_bomb_stays_small(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = write(tmp_path, pack(bytes(64 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="but has 67,108,864"):
            list(read_lines(path))
        assert tracemalloc.get_traced_memory()[1] < 56 << 20
    finally:
        tracemalloc.stop()


def test_read_lines_of_xz_that_asks_for_much_memory_raises_data_error(tmp_path: Path) -> None:
    packed = bytearray(pack_lzma(b"a\n"))
    packed[1:5] = (1 << 30).to_bytes(4, "little")  # the size of its dictionary
    path = write(tmp_path, bytes(packed))
    with pytest.raises(DataError, match="Memory usage limit exceeded"):
        list(read_lines(path))


class FakeZstandard:
    """A package that unpacks .zst: here the four bytes of its sign, then bzip2."""

    class ZstdDecompressor:
        def decompressobj(self) -> FakeZstandard.ZstdDecompressor:
            self._decoder = bz2.BZ2Decompressor()
            return self

        def decompress(self, data: bytes) -> bytes:
            return self._decoder.decompress(data.removeprefix(ZSTANDARD))

        @property
        def eof(self) -> bool:
            return self._decoder.eof

        @property
        def unused_data(self) -> bytes:
            return self._decoder.unused_data


ZSTANDARD = b"\x28\xb5\x2f\xfd"


def test_read_lines_of_zst_takes_what_is_installed_or_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, (ZSTANDARD + bz2.compress(b"a\nb\n")) * 2, "text.zst")
    monkeypatch.setitem(sys.modules, "compression", None)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(DataError, match=r"text\.zst .* pip install zstandard, or .* zstd -d"):
        list(read_lines(path))
    monkeypatch.setitem(sys.modules, "zstandard", FakeZstandard)
    assert list(read_lines(path)) == ["a", "b", "a", "b"]


def tar(data: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("text.en")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"PK\x03\x04\n\0", "zip"),
        (b"7z\xbc\xaf\x27\x1c\0", "7z"),
        (b"\x04\x22\x4d\x18abc", "lz4"),
        (b"Rar!\x1a\x07\0", "rar"),
        (tar(b"a\n"), "tar"),
        (lzma.compress(tar(b"a\n")), "tar"),
        (gzip.compress(gzip.compress(b"a\n", mtime=0), mtime=0), "gz"),
    ],
)
@pytest.mark.parametrize("keeps_damaged", [True, False])
def test_read_lines_of_an_archive_names_its_kind(
    tmp_path: Path, data: bytes, kind: str, keeps_damaged: bool
) -> None:
    with pytest.raises(DataError, match=rf"holds a \.{kind} file\. Unpack it"):
        list(read_lines(write(tmp_path, data), keeps_damaged=keeps_damaged))


@pytest.mark.parametrize("text", ["BZh9 is a text", "PK", "]", "7z", "Rar!", "LZIP", "x" * 300])
def test_read_lines_of_text_like_an_archive_reads_it(tmp_path: Path, text: str) -> None:
    assert list(read_lines(write(tmp_path, text.encode()))) == [text]


def damaged(kind: str) -> bytes:
    whole = gzip.compress(b"".join(b"%d %d\n" % (n, n * n * 7919) for n in range(20000)))
    middle = len(whole) // 2
    return {
        "cut short": whole[:middle],
        "two bytes": whole[:2],
        "checksum": whole[:-8] + b"\0\0\0\0" + whole[-4:],
        "overwritten": whole[:middle] + b"\xff" * 64 + whole[middle + 64 :],
        "rubbish after it": whole + b"rubbish",
        "header": whole[:2] + b"\x99" + whole[3:],
    }[kind]


@pytest.mark.parametrize(
    "kind", ["cut short", "two bytes", "checksum", "overwritten", "rubbish after it", "header"]
)
def test_read_lines_of_damaged_gzip_raises_data_error_with_file_and_line(
    tmp_path: Path, kind: str
) -> None:
    path = write(tmp_path, damaged(kind), "text.gz")
    with pytest.raises(DataError, match=r"damaged after line \d+") as caught:
        list(read_lines(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_read_lines_of_invalid_utf8_raises_data_error_with_file_line_and_byte(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = write(tmp_path, pack(b"un\ndeux\n" + "l'été\n".encode("latin-1")))
    lines = read_lines(path)
    assert [next(lines), next(lines)] == ["un", "deux"]
    with pytest.raises(DataError, match="byte 3 of the line is 0xe9") as caught:
        next(lines)
    assert f"({path}:3)" in str(caught.value)


def test_read_lines_keeps_damaged_lines_byte_by_byte_where_asked(tmp_path: Path) -> None:
    raw = b"un\n" + "l'été\n".encode("latin-1") + "l'été\r\n".encode()
    path = write(tmp_path, raw)
    lines = list(read_lines(path, keeps_damaged=True))
    assert [line.encode("utf-8", "surrogateescape") for line in lines] == [
        b"un",
        b"l'\xe9t\xe9",
        "l'été".encode(),
    ]
    assert [not_utf8(line) is None for line in lines] == [True, False, True]
    assert "after 2 characters comes byte 0xe9" in (not_utf8(lines[1]) or "")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_read_lines_cuts_a_line_that_is_too_long_where_asked(
    tmp_path: Path, pack: Callable[[bytes], bytes], end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 1009)
    monkeypatch.setattr(text_lines, "_CHUNK", 101)
    raw = b"un\n" + b"b" * 1008 + b"\n" + "é".encode() * 3001 + end
    path = write(tmp_path, pack(raw + (b"dernier\n" if end else b"")))
    lines = list(read_lines(path, keeps_damaged=True))
    assert lines[:2] == ["un", "b" * 1008]
    assert lines[2] == "é" * 40 + "…"
    assert lines[3:] == (["dernier"] if end else [])
    size = 6002 + end.startswith(b"\r")
    said = f"A line must have at most 1,009 bytes, but has {size:,}. Break it into shorter ones."
    assert not_a_line(lines[2]) == said
    assert [not_a_line(line) for line in lines[:2]] == [None, None]
    with pytest.raises(DataError, match=rf"at most 1,009 bytes.*{path.name}:3"):
        list(read_lines(path))


def test_read_lines_takes_little_memory_for_an_endless_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 1 << 20)
    path = tmp_path / "long"
    with path.open("wb") as stream:
        stream.seek(47 << 20)
        stream.write(b"x\nlast\n")
    tracemalloc.start()
    try:
        first, last = read_lines(path, keeps_damaged=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(first), last) == (81, "last")
    assert peak < 7 << 20


def test_read_bytes_of_a_pipe_does_not_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="must be a file, but is a pipe"):
        read_bytes(tmp_path / "pipe")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("kind", ["UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE"])
def test_read_lines_refuses_wide_characters_even_where_damaged_lines_are_kept(
    tmp_path: Path, kind: str, mark: str
) -> None:
    path = write(tmp_path, f"{mark}un\n".encode(kind))
    with pytest.raises(DataError, match=f"iconv -f {kind[:-2] if mark else kind} -t"):
        list(read_lines(path, keeps_damaged=True))


@pytest.mark.parametrize("line", ["a\0b", "\0abc", "\0\0\0\0", "ab\0\0"])
def test_read_lines_takes_a_zero_byte_for_a_character(tmp_path: Path, line: str) -> None:
    assert list(read_lines(write(tmp_path, f"{line}\n".encode()))) == [line]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\ud800", "after 1 character comes U+D800"),
        ("\udcff", "after 0 characters comes byte 0xff"),
    ],
)
def test_not_utf8_names_what_cannot_be_written(text: str, said: str) -> None:
    assert said in (not_utf8(text) or "")


def test_decode_line_of_a_cut_character_raises_data_error() -> None:
    with pytest.raises(DataError, match=r"byte 2 of the line is 0xc3 .*here:7"):
        decode_line(b"a\xc3\n", "here", 7)


def test_read_lines_of_no_file_raises_input_file_not_found_error(tmp_path: Path) -> None:
    missing = tmp_path / "missing.en"
    for read in (lambda: list(read_lines(missing)), lambda: read_bytes(missing)):
        with pytest.raises(InputFileNotFoundError, match=r"missing\.en"):
            read()
    with pytest.raises(FileNotFoundError):
        open_binary(missing)


def test_read_lines_of_a_folder_raises_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=str(tmp_path)):
        list(read_lines(tmp_path))
    with pytest.raises(DataError, match=str(tmp_path)):
        read_bytes(tmp_path)


def test_read_lines_of_a_dash_reads_standard_input_and_leaves_it_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO("a\u2028b\r\nc".encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert list(read_lines("-")) == ["a\u2028b", "c"]
    assert not stdin.buffer.closed


def test_a_file_is_read_where_standard_input_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert list(read_lines(write(tmp_path, b"a\nb\n"))) == ["a", "b"]


def test_a_file_without_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match=r"is a folder\. Name a file in it"):
        write_bytes(Path(), b"x")
    assert not list(tmp_path.iterdir())


def test_hashes_of_a_file_and_of_its_bytes_are_sha256(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5003
    assert hash_bytes(data) == hash_file(write(tmp_path, data)) == hashlib.sha256(data).hexdigest()


def test_write_bytes_replaces_the_content_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = write(tmp_path, b"old")
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["text.en"]


def test_write_text_keeps_newlines_and_writes_utf8(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "é\n\u2028\r\n")
    assert (tmp_path / "a").read_bytes() == "é\n\u2028\r\n".encode()


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_write_bytes_that_fails_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = write(tmp_path, b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if failing == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OutputError, match="No space left on device") as caught:
        write_bytes(path, b"new")
    assert str(path) in str(caught.value)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["text.en"]


def test_write_bytes_where_it_cannot_be_raises_output_error(tmp_path: Path) -> None:
    file = write(tmp_path, b"a file")
    for place in (tmp_path / "no" / "folder", tmp_path, tmp_path / ("n" * 300), file / "in-a-file"):
        with pytest.raises(OutputError):
            write_bytes(place, b"new")
    assert names(tmp_path) == ["text.en"]


def test_new_folder_appears_whole_under_its_name(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "bundle"
    with new_folder(path) as part:
        (part / "weights").write_bytes(b"new")
        assert not path.exists()
    assert (path / "weights").read_bytes() == b"new"
    assert names(path.parent) == ["bundle"]


def test_new_folder_replaces_an_older_one_wholly(tmp_path: Path) -> None:
    path = tmp_path / "bundle"
    for name in ("first", "second", "third"):
        with new_folder(path) as part:
            (part / name).write_bytes(b"")
        assert names(path) == [name]
    assert names(tmp_path) == ["bundle"]


@pytest.mark.parametrize("problem", [KeyboardInterrupt, RuntimeError, OSError, DataError])
def test_new_folder_with_a_failure_inside_leaves_the_older_one(
    tmp_path: Path, problem: type[BaseException]
) -> None:
    path = tmp_path / "bundle"
    with new_folder(path) as part:
        (part / "old").write_bytes(b"old")
    expected = OutputError if problem is OSError else problem

    def fill_and_fail() -> None:
        with new_folder(path) as part:
            (part / "new").write_bytes(b"new")
            raise problem("half way")

    with pytest.raises(expected):
        fill_and_fail()
    assert (path / "old").read_bytes() == b"old"
    assert names(tmp_path) == ["bundle"]


def test_new_folder_whose_last_rename_fails_leaves_the_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bundle"
    with new_folder(path) as part:
        (part / "old").write_bytes(b"old")
    rename = Path.rename

    def fail_for_the_new(self: Path, target: Path) -> Path:
        if self.name.endswith(".part"):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new)
    with pytest.raises(OutputError), new_folder(path) as part:
        (part / "new").write_bytes(b"new")
    assert names(path) == ["old"]
    assert names(tmp_path) == ["bundle"]


def crash(path: Path, *, after: str) -> None:
    """Leave on disk what a loss of power at that moment would leave."""
    with new_folder(path) as part:
        (part / "old").write_bytes(b"old")
    older, part = path.with_name(f".{path.name}.older"), path.with_name(f".{path.name}.part")
    part.mkdir()
    (part / "new").write_bytes(b"new")
    if after in ("first rename", "second rename"):
        path.rename(older)
    if after == "second rename":
        part.rename(path)


@pytest.mark.parametrize("after", ["filling", "first rename", "second rename"])
def test_new_folder_after_a_crash_cleans_up_and_works(tmp_path: Path, after: str) -> None:
    path = tmp_path / "bundle"
    crash(path, after=after)
    with new_folder(path) as part:
        assert names(part) == []
        (part / "newest").write_bytes(b"newest")
    assert names(path) == ["newest"]
    assert names(tmp_path) == ["bundle"]


@pytest.mark.parametrize(
    ("after", "expected"), [("filling", "old"), ("first rename", "old"), ("second rename", "new")]
)
def test_new_folder_after_a_crash_and_a_failure_has_a_whole_folder(
    tmp_path: Path, after: str, expected: str
) -> None:
    path = tmp_path / "bundle"
    crash(path, after=after)
    with pytest.raises(RuntimeError), new_folder(path):
        raise RuntimeError
    assert names(path) == [expected]


@pytest.mark.parametrize(
    ("after", "expected"), [("filling", "old"), ("first rename", "old"), ("second rename", "new")]
)
def test_tidy_folder_after_a_crash_leaves_one_whole_folder(
    tmp_path: Path, after: str, expected: str
) -> None:
    path = tmp_path / "bundle"
    crash(path, after=after)
    tidy_folder(path)
    assert names(path) == [expected]
    assert names(tmp_path) == ["bundle"]


def test_new_folder_that_cannot_put_the_older_one_back_keeps_it_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bundle"
    crash(path, after="first rename")

    def fail(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail)
        with pytest.raises(OutputError, match="Read-only"), new_folder(path):
            pytest.fail("nothing may be filled")
    tidy_folder(path)
    assert names(path) == ["old"]


def test_delete_folder_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bundle"
    crash(path, after="filling")
    delete_folder(path)
    tidy_folder(path)
    assert names(tmp_path) == []


def test_delete_folder_interrupted_leaves_nothing_under_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bundle"
    crash(path, after="filling")
    delete = shutil.rmtree

    def die_half_way(folder: Path, **settings: bool) -> None:
        if folder.name == ".bundle.gone" and folder.exists():
            raise KeyboardInterrupt
        delete(folder, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", die_half_way)
        with pytest.raises(KeyboardInterrupt):
            delete_folder(path)
    assert not path.exists()
    tidy_folder(path)
    assert names(tmp_path) == []


def test_delete_folder_that_may_not_leaves_it_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bundle"
    crash(path, after="filling")

    def fail(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="Read-only"):
        delete_folder(path)
    assert names(path) == ["old"]


def test_write_bytes_interrupted_leaves_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, b"old")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["text.en"]


def test_named_pipe_gives_every_line(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(b"one\ntwo\n"),))
    writer.start()
    assert list(read_lines(pipe)) == ["one", "two"]
    writer.join()
    writer = threading.Thread(target=pipe.write_bytes, args=(b"three\n",))
    writer.start()
    assert list(read_lines(pipe)) == ["three"]
    writer.join()


def test_last_line_without_an_end_keeps_its_carriage_return(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"one\r\ntwo\r")
    assert list(read_lines(tmp_path / "text")) == ["one", "two\r"]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
def test_a_device_is_written_to_and_never_replaced() -> None:
    with pytest.raises(OutputError, match="No space"):
        write_bytes(Path("/dev/full"), b"x" * 100_000)
    assert Path("/dev/full").is_char_device()
    write_bytes(Path("/dev/null"), b"x")
    assert Path("/dev/null").is_char_device()


def test_a_link_stays_one_and_what_it_points_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/text")
    for data in (b"one", b"two"):
        write_bytes(tmp_path / "link", data, follows_link=True)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder" / "text").read_bytes() == data
    assert names(tmp_path) == ["folder", "link"]
    assert names(tmp_path / "folder") == ["text"]


def test_a_link_to_itself_is_replaced_or_refused_but_never_followed_forever(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    write_bytes(tmp_path / "link", b"one")
    assert (tmp_path / "link").read_bytes() == b"one"


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="there is no /dev/fd")
@pytest.mark.parametrize("way", ["named", "linked"])
def test_a_name_for_a_descriptor_is_gone_on_with_and_never_replaced(
    tmp_path: Path, way: str
) -> None:
    with (tmp_path / "text").open("wb", buffering=0) as stream:
        path = Path(f"/dev/fd/{stream.fileno()}")
        if way == "linked":
            (tmp_path / "link").symlink_to(path)
            path = tmp_path / "link"
        stream.write(b"one ")
        write_bytes(path, b"two ", follows_link=True)
        stream.write(b"three")
    assert (tmp_path / "text").read_bytes() == b"one two three"
    assert names(tmp_path) == sorted(["text"] + ["link"] * (way == "linked"))
    with pytest.raises(OutputError, match="Bad file descriptor"):
        write_bytes(path, b"four", follows_link=True)  # closed by now
    assert names(tmp_path) == sorted(["text"] + ["link"] * (way == "linked"))


def test_new_folder_leaves_a_file_or_a_pipe_as_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"one")
    for name in ("file", "pipe"):
        with pytest.raises(OutputError, match="must be a folder"), new_folder(tmp_path / name):
            pass
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "file").read_bytes() == b"one"
    assert names(tmp_path) == ["file", "pipe"]
