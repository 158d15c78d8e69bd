"""Files that the package names itself: no link in their place is ever followed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pellucid.errors import OutputError
from pellucid.files import create_file, new_folder, open_own, tidy_folder, write_bytes
from pellucid.inside.record.trace_files import NpzWriter

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A file that must stay as it is."""
    path = tmp_path / "elsewhere" / "victim"
    path.parent.mkdir()
    path.write_text("precious")
    yield path
    assert path.read_text() == "precious"


def test_create_file_replaces_whatever_has_the_name(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "link").symlink_to(victim)
    (tmp_path / "hard").hardlink_to(victim)
    (tmp_path / "left").write_text("by a crash")
    os.mkfifo(tmp_path / "pipe")
    for name in ("dangling", "link", "hard", "left", "pipe", "new"):
        with create_file(tmp_path / name) as stream:
            stream.write(b"new")
        assert not (tmp_path / name).is_symlink()
        assert (tmp_path / name).read_bytes() == b"new"
    assert not (tmp_path / "nowhere").exists()


def test_open_own_takes_a_plain_file_and_nothing_else(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "link").symlink_to(victim)
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "hard").hardlink_to(victim)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "dangling", "hard", "pipe"):
        with pytest.raises(OutputError, match=f"{name} must be a file of its own"):
            open_own(tmp_path / name, os.O_WRONLY | os.O_APPEND)
    for word in ("one ", "two"):
        with open(tmp_path / "own", "a", opener=open_own) as stream:
            stream.write(word)
    assert (tmp_path / "own").read_text() == "one two"


@pytest.mark.parametrize("follows_link", [True, False])
def test_write_bytes_never_follows_a_link_in_place_of_its_part(
    tmp_path: Path, victim: Path, follows_link: bool
) -> None:
    (tmp_path / "page.html.part").symlink_to(victim)
    write_bytes(tmp_path / "page.html", b"new", follows_link=follows_link)
    assert (tmp_path / "page.html").read_bytes() == b"new"
    assert not (tmp_path / "page.html").is_symlink()
    assert not (tmp_path / "page.html.part").is_symlink()


def test_write_bytes_replaces_a_link_unless_the_user_named_it(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "report.html").symlink_to(victim)
    (tmp_path / "null").symlink_to("/dev/null")
    for name in ("report.html", "null"):
        write_bytes(tmp_path / name, b"new")
        assert not (tmp_path / name).is_symlink()
        assert (tmp_path / name).read_bytes() == b"new"


def test_npz_never_follows_a_link_in_place_of_its_part(tmp_path: Path, victim: Path) -> None:
    (tmp_path / ".t.npz.part").symlink_to(victim)
    with NpzWriter(tmp_path / "t.npz") as writer:
        writer.keep("one", np.arange(3))
        writer._is_finished = True
    with np.load(tmp_path / "t.npz") as archive:
        assert archive["one"].tolist() == [0, 1, 2]
    assert not (tmp_path / ".t.npz.part").is_symlink()


@pytest.mark.parametrize("kind", ["part", "older", "gone"])
def test_new_folder_deletes_links_with_its_names_and_not_what_they_point_to(
    tmp_path: Path, victim: Path, kind: str
) -> None:
    hidden = tmp_path / f".bundle.{kind}"
    hidden.symlink_to(victim.parent)
    with new_folder(tmp_path / "bundle") as part:
        (part / "weights").write_bytes(b"new")
    assert not hidden.is_symlink()
    assert (tmp_path / "bundle" / "weights").read_bytes() == b"new"
    hidden.symlink_to(victim)
    tidy_folder(tmp_path / "bundle")
    assert not hidden.is_symlink()


def test_page_is_written_next_to_a_link_with_the_name_of_its_part(
    tmp_path: Path, victim: Path, run_here: Run
) -> None:
    page = tmp_path / "page.html"
    (tmp_path / "page.html.part").symlink_to(victim)
    assert run_here("look", "demo", "A cat.", "-o", str(page)).returncode == 0
    assert page.is_file()
    assert not page.is_symlink()


@pytest.mark.parametrize("name", ["out.part", "out.state"])
def test_translation_never_follows_a_link_in_place_of_its_part_or_state(
    tmp_path: Path, victim: Path, run_here: Run, name: str
) -> None:
    (tmp_path / "in").write_text("A cat.\n")
    (tmp_path / name).symlink_to(victim)
    files = ("-i", str(tmp_path / "in"), "-o", str(tmp_path / "out"))
    done = run_here("translate", "demo", *files, "--overwrite")
    if name == "out.part":
        assert done.returncode == 1
        assert done.stderr == (
            f"error: {tmp_path / name} must be a file of its own, but is a link, a pipe or a "
            "device. Delete it.\n"
        )
        (tmp_path / name).unlink()
        done = run_here("translate", "demo", *files)
    assert done.returncode == 0
    assert (tmp_path / "out").read_text().count("\n") == 1
