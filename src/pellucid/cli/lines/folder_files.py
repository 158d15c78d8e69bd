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
from pellucid.languages.codes import NAMES, are_same_language, read_tag

Rest = Literal["skip", "copy"]

_CODE = re.compile(
    r"(?<![A-Za-z0-9])([a-z]{2}(?:[-_](?:r?[A-Z]{2}|[a-z]{2}|[A-Z][a-z]{3}))?)(?=\.|\Z)"
)
"""A language in the name of a file or folder, also as Android writes it: ``pt-rBR``."""


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
        others: files and folders of other languages, next to those of the source's.
    """

    files: list[FolderFile] = field(default_factory=list)
    closed: list[OSError] = field(default_factory=list)
    num_skipped: int = 0
    num_there: int = 0
    others: list[str] = field(default_factory=list)


def list_folder(folder: Path, output: Path, languages: tuple[str, str], rest: Rest) -> FoundFiles:
    """List the files to make, in the order of their names."""
    found = FoundFiles()
    paths: list[Path] = []
    renamed = {folder: output}
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
        names = [one for one in names if not one.startswith(".")]
        codes = {one: _other_language(one, {*names, *folders}, languages) for one in names}
        codes |= {one: _other_language(one, {*folders}, languages) for one in folders}
        for one, code in sorted(codes.items()):
            is_there = bool(languages[1]) and are_same_language(code or "-", languages[1])
            # A folder is listed by its name; files in the target's language are counted.
            if is_there and one in names:
                found.num_there += 1
            elif code:
                found.others.append(str((here / one).relative_to(folder)))
        folders[:] = [one for one in folders if not codes[one]]
        own = _folder_of_source(folders, languages[0])
        for one in folders:
            new = _in_form(one, languages[1]) if one == own else _rename(one, *languages)
            renamed[here / one] = renamed[here] / new
        paths += [here / one for one in names if not codes[one]]
    for path in sorted(paths):
        # A link to nothing is refused when its turn comes.
        if not path.is_file() and path.exists():
            continue
        own = _kind(path)
        if not own and rest == "skip":
            found.num_skipped += 1
        else:
            new = re.sub(r"\.pot\Z", ".po", _rename(path.name, *languages))
            name = path.relative_to(folder)
            found.files.append(FolderFile(str(name), path, renamed[path.parent] / new, own))
    if found.closed and not found.files:
        raise not_readable(found.closed[0], found.closed[0].filename)
    return found


def _rename(name: str, old: str, new: str) -> str:
    """Put a language in the place of another one in a name.

    Such names are app.en.json, messages_en.properties and en.yml.
    """
    return re.sub(rf"(?<![a-zA-Z]){re.escape(old)}(?=\.)", new, name) if old else name


def _folder_of_source(names: list[str], source: str) -> str:
    """Return the name that is a code of the source's language; empty if none or several are."""
    same = [one for one in names if source and _CODE.fullmatch(one)]
    same = [one for one in same if are_same_language(one.replace("-r", "-"), source)]
    # Of en and en-GB, the nearest one: two folders must not become the same.
    nearest = [one for one in same if one.replace("_", "-") == source.replace("_", "-")]
    found = nearest or same
    return found[0] if len(found) == 1 else ""


def _in_form(name: str, language: str) -> str:
    """Write a language as a folder's name is written: ``pt_BR`` in the place of ``en_US``."""
    return language.replace("-", "_") if "_" in name else language or name


def _other_language(name: str, siblings: set[str], languages: tuple[str, str]) -> str:
    """Return the language of a translation that stands next to what it is made of; else nothing.

    Such are ``de`` next to ``en``, ``app.de.json`` next to ``app.en.json`` or ``app.json``, and
    ``values-de`` next to ``values``.

    Args:
        name: of a file or folder.
        siblings: names in the same folder.
        languages: codes of the source and the target.
    """
    source, target = languages
    for found in _CODE.finditer(name) if source else ():
        code = found[1].replace("-r", "-")
        language = read_tag(code)
        is_known = language.language in NAMES or (target and are_same_language(code, target))
        if not is_known or are_same_language(code, source):
            continue
        before = name[: found.start()]
        after = name[found.end() :]
        others = (
            _CODE.fullmatch(one, len(before), len(one) - len(after))
            for one in siblings
            if one.startswith(before) and one.endswith(after)
        )
        has_source = any(one and are_same_language(one[1], source) for one in others)
        plain = f"{before[:-1]}{after}"
        if has_source or (before[-1:] in ("-", "_", ".") and before[:-1] and plain in siblings):
            return code
    return ""


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
