"""The files of a folder that is translated: which are, what they become, what is left out."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pellucid.cli.lines.streams import choose_format
from pellucid.documents.formats import FORMATS
from pellucid.errors import InputError, not_readable
from pellucid.files import endings

Rest = Literal["skip", "copy"]


@dataclass(frozen=True)
class FolderFile:
    """A file of the folder.

    Attributes:
        name: its path in the folder.
        source: the file.
        target: the file to make.
        kind: the name of its format; empty for one that is copied.
    """

    name: str
    source: Path
    target: Path
    kind: str

    @property
    def part(self) -> Path:
        """Where its translation grows."""
        return self.target.with_name(f"{self.target.name}.part")

    @property
    def report(self) -> Path:
        """Where the remarks on it wait for those on the others."""
        return self.target.with_name(f".{self.target.name}.report")


@dataclass
class FoundFiles:
    """What a folder holds.

    Attributes:
        files: those to make.
        closed: why folders in it cannot be read.
        num_skipped: how many are of other kinds.
        num_there: how many are translations, next to what they translate.
    """

    files: list[FolderFile] = field(default_factory=list)
    closed: list[OSError] = field(default_factory=list)
    num_skipped: int = 0
    num_there: int = 0


def list_folder(folder: Path, output: Path, languages: tuple[str, str], rest: Rest) -> FoundFiles:
    """List the files to make, in the order of their names."""
    found = FoundFiles()
    paths: list[Path] = []
    for root, folders, names in os.walk(folder, onerror=found.closed.append):
        here = Path(root)
        if not os.access(here, os.X_OK):
            # Its names can be read, but its files cannot.
            number = errno.EACCES
            found.closed.append(PermissionError(number, os.strerror(number), root))
            folders.clear()
            continue
        # The new folder may stand in the old one.
        folders[:] = [
            one
            for one in folders
            if not one.startswith(".") and (here / one).resolve() != output.resolve()
        ]
        paths += [here / one for one in names if not one.startswith(".")]
    is_there = set(paths)
    for path in sorted(paths):
        # A link to nothing is refused when its turn comes.
        if not path.is_file() and path.exists():
            continue
        own = _kind(path)
        if not own and rest == "skip":
            found.num_skipped += 1
        elif not is_there.isdisjoint(_sources(path, languages)):
            found.num_there += 1
        else:
            new = re.sub(r"\.pot\Z", ".po", _rename(path.name, *languages))
            name = path.relative_to(folder)
            found.files.append(FolderFile(str(name), path, output / name.parent / new, own))
    if found.closed and not found.files:
        raise not_readable(found.closed[0], found.closed[0].filename)
    return found


def _rename(name: str, old: str, new: str) -> str:
    """Put a language in the place of another one in a name.

    Such names are app.en.json, messages_en.properties and en.yml.
    """
    return re.sub(rf"(?<![a-zA-Z]){re.escape(old)}(?=\.)", new, name) if old else name


def _sources(path: Path, languages: tuple[str, str]) -> set[Path]:
    """Name the files that a file would be the translation of, by its name."""
    source, target = languages
    with_source = _rename(path.name, target, source)
    # The original of README.fr.md may also be README.md.
    without = re.sub(rf"(?<=[a-zA-Z])[._-]{re.escape(target)}(?=\.)", "", path.name)
    return {path.with_name(one) for one in (with_source, without) if target} - {path}


def refuse_equal_names(files: list[FolderFile]) -> None:
    """Refuse files that would overwrite each other.

    Raises:
        InputError: two would get one name.
    """
    first: dict[Path, FolderFile] = {}
    for file in files:
        other = first.setdefault(file.target, file)
        if other is not file:
            raise InputError(
                f"Each file must be translated to a different name, but {other.source} and "
                f"{file.source} would both become {file.target}. Rename one, or move it away."
            )


def _kind(path: Path) -> str:
    """Return the format of a file; empty for one that is not translated."""
    with suppress(InputError):
        name = choose_format(str(path), None)
        # Any file may be lines; only these are surely text.
        return name if name in FORMATS or endings(path) == (".txt", "") else ""
    return ""
