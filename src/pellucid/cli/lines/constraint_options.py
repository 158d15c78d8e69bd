"""The constraints on translations that a command's options and files give."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast, get_args

from pellucid.cli.lines.decoding_options import MATCH
from pellucid.cli.lines.streams import check_standard_input
from pellucid.cli.options import check_utf8
from pellucid.config import apply_overrides
from pellucid.errors import InputError
from pellucid.files import hash_bytes
from pellucid.text.reading.lines import read_lines
from pellucid.text.word_forms import Match
from pellucid.translate.constraints import constraints_of, fit_glossary

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary
    from pellucid.decode.constraints.request import LineConstraints
    from pellucid.translate.translator import Translator

INPUT = "--input"
# Files with a line for each line of the input are named by their options.
PREFIX = "--prefix"
REQUIRE = "--require"
_PHRASES = ("--forbid", REQUIRE)


def file_of(value: str) -> str | None:
    """Return the FILE of ``@FILE``; None for a text, which may begin with ``@@`` for an @.

    Raises:
        InputError: nothing follows the @.
    """
    if value == "@":
        raise InputError("@ must be followed by the name of a file. Write @@ for a text with an @.")
    return value[1:] if value.startswith("@") and not value.startswith("@@") else None


def plain_phrase(value: str) -> str:
    """Return a text that is not ``@FILE`` as it is meant: ``@@x`` stands for ``@x``."""
    return value[1:] if value.startswith("@@") else value


def read_prefix(value: str | None) -> str | None:
    """Return the prefix of a single line, which is the first line of FILE for ``@FILE``."""
    if value is None or (path := file_of(value)) is None:
        return value and plain_phrase(value)
    return next(read_lines(path), "")


@dataclass(frozen=True)
class ConstraintOptions:
    """The constraints that a command was given.

    Attributes:
        prefix: beginning of every translation, unless a file gives one for each line.
        forbidden: phrases that no translation may contain.
        required: phrases that every translation must contain.
        glossary: terms of the source, with the terms that the translation must then contain.
        files: files to read in step with the input, by option.
        settings: values that identify the constraints, those files excepted, by option.
    """

    prefix: str
    forbidden: tuple[str, ...]
    required: tuple[str, ...]
    glossary: Glossary | None
    files: Mapping[str, str]
    settings: Mapping[str, Any]

    @property
    def rule(self) -> str | None:
        """What the phrases ask of a search; None without any."""
        if self.required or REQUIRE in self.files:
            return "phrases are required"
        return "phrases are forbidden" if self.forbidden else None

    @classmethod
    def read(cls, options: Mapping[str, Any], input_file: str) -> ConstraintOptions:
        """Gather the constraints from a command's options.

        Args:
            options: the command's options, among them those of `pellucid.cli.options.CONSTRAINTS`.
            input_file: the file to translate; if it is standard input, no other file may be.

        Raises:
            InputError: two options contradict each other, or a phrase is empty.
            DataError: a file of phrases cannot be read.
        """
        phrases = {name: list(options[name.removeprefix("--")] or ()) for name in _PHRASES}
        phrases[PREFIX] = [options["prefix"] or ""]
        texts: dict[str, list[str]] = {}
        paths: dict[str, list[str]] = {}
        for name, values in phrases.items():
            paths[name] = [path for one in values if (path := file_of(one)) is not None]
            texts[name] = [plain_phrase(one) for one in values if file_of(one) is None]
            for text in texts[name]:
                check_utf8(name, text)
                if name in _PHRASES and not text.strip():
                    raise InputError(
                        f"{name} must be a phrase, but is empty. Write at least one word."
                    )
        glossaries = options["glossary"] or ()
        read = {"--glossary": glossaries, **paths}
        numbered = {
            f"{name} {number}" if number > 1 else name: path
            for name, named in read.items()
            for number, path in enumerate(named, start=1)
        }
        check_standard_input({INPUT: input_file, **numbered})
        if len(paths[REQUIRE]) > 1:
            raise InputError(
                "--require @FILE must be given once, since line i belongs to translation i, but is "
                f"given {len(paths[REQUIRE])} times. Join the files, with tabs between phrases."
            )
        # Read whole, while the others keep step with the input.
        listed = [line for path in paths["--forbid"] for line in read_lines(path) if line.strip()]
        match = glossary_match(options)
        glossary, glossary_hash = _read_glossary(glossaries, match)
        prefix = "".join(texts[PREFIX])
        forbidden = tuple(texts["--forbid"])
        required = tuple(texts[REQUIRE])
        settings = {
            PREFIX: prefix,
            "--forbid": list(forbidden),
            "--forbid @FILE": hash_bytes("\n".join(listed).encode()) if listed else None,
            REQUIRE: list(required),
            "--glossary": glossary_hash,
        }
        if glossaries:
            settings[f"--set {MATCH}"] = match
        files = {name: path for name in (PREFIX, REQUIRE) for path in paths[name]}
        return cls(prefix, (*forbidden, *listed), required, glossary, files, settings)

    def for_model(self, translator: Translator, to: str | None = None) -> ConstraintOptions:
        """Find the glossary's terms in the forms of a model's source language, or of that of `to`.

        Raises:
            DataError: the glossary is a term base without these languages.
        """
        if self.glossary is None:
            return self
        languages = translator.languages
        fitted = fit_glossary(self.glossary, translator.tokenizer, languages, to)
        return replace(self, glossary=fitted)

    def for_lines(self, columns: Mapping[str, Sequence[str]]) -> list[LineConstraints]:
        """Build the constraints of each line, or of each line of a text with line breaks.

        Args:
            columns: lines of each file, by option.
        """
        sources = columns[INPUT]
        # Nearly always all lines have the same constraints, which are then built once.
        if not self.files and not any("\n" in one for one in sources):
            return [self._for_text("", self.prefix, "")] * len(sources)
        prefixes = columns.get(PREFIX, [self.prefix] * len(sources))
        rows = columns.get(REQUIRE, [""] * len(sources))
        return [
            self._for_text(source, prefix, row)
            for source, prefix, row in zip(sources, prefixes, rows, strict=True)
        ]

    def _for_text(self, source: str, prefix: str, row: str) -> LineConstraints:
        own = [phrase for phrase in row.split("\t") if phrase.strip()]
        return constraints_of(source, prefix, self.forbidden, self.required, own, self.glossary)


def glossary_match(options: Mapping[str, Any]) -> Match:
    """Return how terms of a glossary are found, as ``--set glossary.match=…`` says.

    Raises:
        InputError: the way is unknown, or no glossary was given.
    """
    given = apply_overrides({}, [one for one in options["set"] or () if one.startswith(MATCH)])
    if not given:
        return "auto"
    if not options["glossary"]:
        raise InputError(f"--set {MATCH} needs --glossary. Add it, or leave {MATCH} out.")
    way = given["glossary"].get("match")
    known = get_args(Match)
    if way not in known:
        raise InputError(
            f"--set {MATCH} must be one of {', '.join(known)}, but is {way!r}. Choose one."
        )
    return cast("Match", way)


def _read_glossary(paths: Sequence[str], match: Match) -> tuple[Glossary | None, str | None]:
    """Join glossaries and hash their terms."""
    if not paths:
        return None, None
    from pellucid.decode.constraints.glossary_files import load_glossary

    glossary = load_glossary(*paths, match=match)
    terms = [glossary.terms, sorted(glossary.case_sensitive), *glossary.concepts]
    return glossary, hash_bytes(json.dumps(terms).encode())
