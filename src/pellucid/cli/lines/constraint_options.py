"""The constraints on translations that a command's options and files give."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pellucid.cli.lines.streams import check_standard_input
from pellucid.cli.option_rules import Apart, Needs, check_rules
from pellucid.cli.options import check_utf8, flag
from pellucid.errors import InputError
from pellucid.files import hash_bytes
from pellucid.text.reading.lines import read_lines
from pellucid.translate.constraints import constraints_of, fit_glossary

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary
    from pellucid.decode.constraints.request import LineConstraints
    from pellucid.text.word_forms import Match
    from pellucid.translate.translator import Translator

RULES = (Apart("prefix", "prefix_file"), Needs("glossary_match", "glossary"))

INPUT = "--input"
PREFIX_FILE = "--prefix-file"
REQUIRE_FILE = "--require-file"


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
        if self.required or self.glossary is not None or REQUIRE_FILE in self.files:
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
        check_rules(RULES, options)
        named = ("prefix_file", "forbid_file", "require_file")
        paths = {flag(name): options[name] for name in named if options[name] is not None}
        glossaries = options["glossary"] or ()
        named_glossaries = {
            f"--glossary {number}" if number > 1 else "--glossary": glossary
            for number, glossary in enumerate(glossaries, start=1)
        }
        check_standard_input({INPUT: input_file, **paths, **named_glossaries})
        prefix = options["prefix"] or ""
        forbidden = options["forbid"] or ()
        required = options["require"] or ()
        check_utf8("--prefix", prefix)
        for name, phrases in (("--forbid", forbidden), ("--require", required)):
            for phrase in phrases:
                check_utf8(name, phrase)
                if not phrase.strip():
                    raise InputError(
                        f"{name} must be a phrase, but is empty. Write at least one word."
                    )
        forbid_file = options["forbid_file"]
        lines = () if forbid_file is None else read_lines(forbid_file)
        listed = [line for line in lines if line.strip()]
        match: Match = options["glossary_match"] or "auto"
        glossary, glossary_hash = _read_glossary(glossaries, match)
        settings = {
            "--prefix": prefix,
            "--forbid": list(forbidden),
            "--forbid-file": hash_bytes("\n".join(listed).encode()) if listed else None,
            "--require": list(required),
            "--glossary": glossary_hash,
        }
        if glossaries:
            settings["--glossary-match"] = match
        paths.pop("--forbid-file", None)  # Read whole already, while the others keep step.
        return cls(prefix, (*forbidden, *listed), tuple(required), glossary, paths, settings)

    def for_model(self, translator: Translator) -> ConstraintOptions:
        """Find the glossary's terms in the forms of a model's source language."""
        if self.glossary is None:
            return self
        source = translator.languages.source
        return replace(self, glossary=fit_glossary(self.glossary, translator.tokenizer, source))

    def for_lines(self, columns: Mapping[str, Sequence[str]]) -> list[LineConstraints]:
        """Build the constraints of each line, or of each line of a text with line breaks.

        Args:
            columns: lines of each file, by option.
        """
        sources = columns[INPUT]
        # Nearly always all lines have the same constraints, which are then built once.
        if self.glossary is None and not self.files and not any("\n" in one for one in sources):
            return [self._for_text("", self.prefix, "")] * len(sources)
        prefixes = columns.get(PREFIX_FILE, [self.prefix] * len(sources))
        rows = columns.get(REQUIRE_FILE, [""] * len(sources))
        return [
            self._for_text(source, prefix, row)
            for source, prefix, row in zip(sources, prefixes, rows, strict=True)
        ]

    def _for_text(self, source: str, prefix: str, row: str) -> LineConstraints:
        own = [phrase for phrase in row.split("\t") if phrase.strip()]
        return constraints_of(source, prefix, self.forbidden, self.required, own, self.glossary)


def _read_glossary(paths: Sequence[str], match: Match) -> tuple[Glossary | None, str | None]:
    """Join glossaries and hash their terms."""
    if not paths:
        return None, None
    from pellucid.decode.constraints.glossary import load_glossary

    glossary = load_glossary(*paths, match=match)
    return glossary, hash_bytes(json.dumps(glossary.terms).encode())
