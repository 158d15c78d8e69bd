"""Options and files of a search: settings, treatment of lines, and constraints."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast, get_args

from pellucid.cli.lines.streams import check_standard_input
from pellucid.cli.options import Option, check_utf8, flag, given_of, options_of
from pellucid.config import DecodingConfig, TreatmentConfig, apply_overrides
from pellucid.errors import InputError, suggestion
from pellucid.files import hash_bytes
from pellucid.text.reading.lines import read_lines
from pellucid.text.word_forms import Match
from pellucid.translate.constraints import constraints_of, fit_glossary

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary
    from pellucid.decode.constraints.request import LineConstraints
    from pellucid.translate.translator import Translator

_ALL = options_of(DecodingConfig)
_SAMPLING = ("temperature", "top_k", "top_p", "epsilon", "seed")
NAMED = ("beam", "n_best", "sample", "precision")
"""The decoding options with their own flag; ``--set`` takes every one."""

_SET: Option = (
    list[str],
    "decoding.KEY=VALUE",
    "Change one setting, such as decoding.alpha=1; may be repeated. pellucid recipe --key decoding "
    "lists all of them.",
)
MATCH = "glossary.match"
"""The setting of a glossary, which ``--set`` takes where ``--glossary`` is an option."""

DECODING: Mapping[str, Option] = {**{name: _ALL[name] for name in NAMED}, "set": _SET}
"""The options of a command that translates."""


def some_decoding(*names: str) -> dict[str, Option]:
    """Return the options of a command to which few matter, and ``--set`` for the others."""
    return {**{name: _ALL[name] for name in names}, "set": _SET}


FEW_DECODING: Mapping[str, Option] = some_decoding("beam", "n_best", "precision")
"""Those of a command that looks at a translation."""

TREATMENT: Mapping[str, Option] = options_of(TreatmentConfig, keep=True)
"""What to do with lines before and after their translation."""


def given_treatment(options: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the options of `TREATMENT`, as `pellucid.translate.translator` takes them."""
    return {name: options[name] for name in TREATMENT}


def given_decoding(options: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the decoding options that were given, each as an option or by ``--set``.

    Args:
        options: those of `DECODING` or some of them, and maybe others.

    Raises:
        ConfigurationError: a change is not written ``decoding.KEY=VALUE``, or sets a key twice.
        InputError: a key is not one of decoding, or was given as an option as well.
    """
    given = given_of([name for name in NAMED if name in options], options)
    sets = options.get("set") or ()
    if "glossary" in options:
        # Read by `pellucid.cli.lines.decoding_options`.
        sets = [one for one in sets if not one.startswith(MATCH)]
    for section, values in apply_overrides({}, sets).items():
        for key, value in values.items():
            known = [f"decoding.{name}" for name in _ALL]
            if f"{section}.{key}" not in known:
                raise InputError(
                    f"--set must set an option of decoding, but sets {section}.{key}. "
                    + suggestion(f"decoding.{key}", known)
                )
            if key in given:
                raise InputError(
                    f"{flag(key)} must be given once, but is also set by --set decoding.{key}. "
                    "Leave one out."
                )
            given[key] = value
    return given


def option_for(name: str) -> str:
    """Write how a command takes an option of decoding: ``--beam``, ``--set decoding.strict``."""
    return flag(name) if name in NAMED else f"--set decoding.{name}"


def useless_options(
    given: Collection[str], decoding: DecodingConfig, *, is_score_shown: bool
) -> Iterator[str]:
    """Find the decoding options that cannot change anything.

    Args:
        given: names of the decoding options that were given.
        decoding: all decoding options, with the model's defaults filled in.
        is_score_shown: True if scores are part of the output.

    Yields:
        One sentence for each of them.
    """
    # Then nothing is ranked, so that scores only matter if they are written.
    is_single = decoding.beam == decoding.n_best == 1
    rules = (
        (_SAMPLING, not decoding.sample, f"without {option_for('sample')}"),
        (
            ("diversity",),
            decoding.diverse_groups == 1,
            f"without {option_for('diverse_groups')}",
        ),
        (("stopping",), decoding.beam == 1, "with a beam of 1"),
        (
            ("alpha",),
            decoding.length_penalty == "none",
            f"with {option_for('length_penalty')}=none",
        ),
        (
            ("length_penalty", "alpha"),
            is_single and not is_score_shown,
            "on a single hypothesis whose score is not written",
        ),
        (
            ("max_length_ratio", "max_length_offset"),
            decoding.max_length is not None,
            f"with {option_for('max_length')}",
        ),
    )
    reasons: dict[str, str] = {}
    for names, is_useless, why in rules:
        for name in names if is_useless else ():
            reasons.setdefault(name, why)  # one reason is enough
    for name, why in reasons.items():
        if name in given:
            yield f"{option_for(name)} has no effect {why}."


def describe_search(decoding: DecodingConfig) -> str:
    """Describe a search in a few words: beam, length penalty and precision."""
    if decoding.sample:
        return f"sampling (seed {decoding.seed}) in {decoding.precision}"
    if decoding.beam == 1:
        return f"a beam of 1 (greedy) in {decoding.precision}"
    penalty = decoding.length_penalty
    power = "" if penalty == "none" else f" (alpha {decoding.alpha:g})"
    return f"a beam of {decoding.beam}, length penalty {penalty}{power}, in {decoding.precision}"


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
        """The rule that phrases put on a search; None without any."""
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
