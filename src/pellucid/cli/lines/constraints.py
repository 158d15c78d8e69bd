"""What translations must begin with, must hold and must not hold, from options and files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pellucid.cli.lines.streams import check_standard
from pellucid.cli.options import flag
from pellucid.errors import InputError
from pellucid.files import hash_bytes, read_lines

if TYPE_CHECKING:
    from pellucid.decode import Constraints
    from pellucid.decode.constraints.glossary import Glossary

__all__ = ["INPUT", "ConstraintOptions"]

INPUT = "--input"
PREFIX_FILE = "--prefix-file"
REQUIRE_FILE = "--require-file"


@dataclass(frozen=True)
class ConstraintOptions:
    """The constraints that a command was given.

    Attributes:
        prefix: what every translation begins with, where there is no file of prefixes.
        forbidden: phrases that no translation may hold.
        required: phrases that every translation must hold.
        glossary: terms of the source with those that must then be in the translation.
        files: files to read beside the input, line by line, by the name of their option.
        settings: what identifies all of it but those files, by what a person calls it.
    """

    prefix: str
    forbidden: tuple[str, ...]
    required: tuple[str, ...]
    glossary: Glossary | None
    files: Mapping[str, str]
    settings: Mapping[str, Any]

    @classmethod
    def read(cls, options: Mapping[str, Any], input_file: str) -> ConstraintOptions:
        """Gather constraints from a command's options.

        Args:
            options: the command's, those of `pellucid.cli.options.CONSTRAINTS` among them.
            input_file: what is translated, which no other file may be.

        Raises:
            InputError: two options contradict each other, or a phrase is empty.
            DataError: a file of phrases cannot be read.
        """
        named = ("prefix_file", "forbid_file", "require_file", "glossary")
        paths = {flag(name): options[name] for name in named if options[name] is not None}
        check_standard({INPUT: input_file, **paths})
        prefix, forbid_file = options["prefix"], options["forbid_file"]
        if prefix is not None and options["prefix_file"] is not None:
            raise InputError(
                "--prefix must be given without --prefix-file, but both are given. "
                "Keep the one that you mean."
            )
        for name in ("forbid", "require"):
            for phrase in options[name] or ():
                _check_text(flag(name), phrase)
                if not phrase.strip():
                    raise InputError(
                        f"{flag(name)} must be a phrase, but is empty. Write at least one word."
                    )
        _check_text("--prefix", prefix or "")
        listed = _read_phrases(forbid_file) if forbid_file is not None else ()
        glossary, glossary_hash = _read_glossary(options["glossary"])
        settings = {
            "--prefix": prefix or "",
            "--forbid": options["forbid"] or [],
            "--forbid-file": hash_bytes("\n".join(listed).encode()) if listed else None,
            "--require": options["require"] or [],
            "--glossary": glossary_hash,
        }
        return cls(
            prefix or "",
            (*(options["forbid"] or ()), *listed),
            tuple(options["require"] or ()),
            glossary,
            {name: paths[name] for name in (PREFIX_FILE, REQUIRE_FILE) if name in paths},
            settings,
        )

    def for_lines(self, columns: Mapping[str, Sequence[str]]) -> list[Constraints]:
        """The constraints of each line.

        Args:
            columns: lines of each file, by the name of its option.
        """
        from pellucid.decode import Constraints

        sources = columns[INPUT]
        prefixes = columns.get(PREFIX_FILE, [self.prefix] * len(sources))
        rows = columns.get(REQUIRE_FILE, [""] * len(sources))
        return [
            Constraints(prefix, self.forbidden, self._required(source, row))
            for source, prefix, row in zip(sources, prefixes, rows, strict=True)
        ]

    def _required(self, source: str, row: str) -> tuple[str, ...]:
        """What one line's translation must hold, as often as any one place asks for it."""
        own = [phrase for phrase in row.split("\t") if phrase.strip()]
        terms = self.glossary.terms_for(source) if self.glossary is not None else ()
        wanted = Counter(self.required) | Counter(own) | Counter[str](terms)
        return tuple(wanted.elements())


def _check_text(name: str, text: str) -> None:
    """Refuse bytes that are no UTF-8, which Python takes from a command line as surrogates."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"{name} must be UTF-8 text, but is {text!a}. Type it again.")


def _read_phrases(path: str) -> tuple[str, ...]:
    """One phrase a line; lines without one are left out."""
    return tuple(line for line in read_lines(path) if line.strip())


def _read_glossary(path: str | None) -> tuple[Glossary | None, str | None]:
    """A glossary and its hash."""
    if path is None:
        return None, None
    from pellucid.decode.constraints.glossary import load_glossary

    glossary = load_glossary(Path(path))
    return glossary, hash_bytes(json.dumps(glossary.terms).encode())
