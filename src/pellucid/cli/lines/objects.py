"""JSON Lines: objects that have a text, and get its translation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pellucid.cli.ending import warn
from pellucid.cli.lines.decoding_options import INPUT
from pellucid.cli.lines.document_windows import WrittenUnit
from pellucid.cli.lines.streams import is_json_lines, to_json_line
from pellucid.cli.lines.translation_job import TranslationJob
from pellucid.text.reading.lines import not_a_line
from pellucid.text.reading.row_sides import NESTED, Fault, find_dotted_key, read_object, text_of
from pellucid.translate.results import Translation

# Keys of a source; then come the code of the source language, and `translation` with codes.
SOURCE_KEYS = ("text", "source")

# The key of a plain line that becomes an object.
OF_LINE = "source"


@dataclass(frozen=True)
class ObjectRow:
    """A line of JSON Lines.

    Attributes:
        text: the text to translate.
        value: the object; None for a blank line, which stays as it is.
        fault: the reason that it cannot be translated.
        key: the key of the translation.
        holder: the object in ``value`` that gets it.
    """

    text: str
    value: dict[str, Any] | None
    fault: str = ""
    key: str = ""
    holder: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ObjectForm:
    """The places of texts and translations in objects.

    Attributes:
        path: the input, for messages.
        is_plain: True if the input has lines of text, from which objects are made.
        column: the key of the text, with dots between the keys of objects in each other; ``""``
            looks for the usual ones.
        into: the key of the translation, likewise.
        languages: the codes of source and target; ``""`` if unknown.
        details: ``"n-best"`` or ``"json"`` if objects also get ``hypotheses``, with scores or with
            everything; otherwise ``""``.
        has_links: True if they get the links of words as ``alignment``.
        is_chain: True if there are several models, so that "json" also gives ``through``.
    """

    path: str
    is_plain: bool = False
    column: str = ""
    into: str = ""
    languages: tuple[str, str] = ("", "")
    details: str = ""
    has_links: bool = False
    is_chain: bool = False

    def settings(self) -> dict[str, Any]:
        """Gather what the output depends on, by its name for users."""
        return {"the objects": [self.is_plain, self.column, self.into]}

    def read(self, number: int, line: str) -> ObjectRow:
        """Read one line; whatever is wrong with it is the row's fault.

        Args:
            number: its number, from 0.
            line: the line.
        """
        if sentence := not_a_line(line):
            return ObjectRow("", {}, sentence)
        if self.is_plain:
            value: dict[str, Any] | Fault = {OF_LINE: line}
        elif not line.strip():
            return ObjectRow("", None)
        else:
            value = read_object(line, f"{self.path}:{number + 1}", '{"source": "…"}')
        if isinstance(value, Fault):
            return ObjectRow("", {}, value.sentence)
        found = self._find(value)
        if isinstance(found, str):
            return ObjectRow("", value, found)
        key, holder = found
        text = text_of(holder, key, f"{self.path}:{number + 1}")
        if isinstance(text, Fault):
            return ObjectRow("", value, text.sentence)
        key, holder = self._place(value, holder)
        # An empty translation, as some data sets have it, may be filled.
        taken = [key] if holder.get(key) not in (None, "") else []
        taken += [name for name in self._further if value.get(name) is not None]
        if taken:
            advice = "Name another one with --into." if taken[0] == key else "Rename it."
            sentence = (
                f"The translation needs a free key, but the object has {taken[0]!r} already "
                f"({self.path}:{number + 1}). {advice}"
            )
            return ObjectRow("", value, sentence)
        return ObjectRow(text, value, key=key, holder=holder)

    def write(self, row: ObjectRow, translation: Translation) -> str:
        """Write an object with its translation, or with an error, as one line."""
        if row.value is None:
            return "\n"
        if translation.error is not None:
            return to_json_line({**row.value, "error": translation.error})
        row.holder[row.key] = translation.text
        record = translation.to_dict(has_tokens=self.details == "json")
        names = [*self._further]
        if self.details == "json":
            names += [
                "notes",
                *(["terms"] if translation.terms and "terms" not in row.value else []),
            ]
        for name in names:
            row.value[name] = record[name] if name in record else record["hypotheses"][0][name]
        return to_json_line(row.value)

    @property
    def _further(self) -> tuple[str, ...]:
        """The keys that objects get besides their translation."""
        if self.details:
            has_steps = self.is_chain and self.details == "json"
            return ("hypotheses", "through") if has_steps else ("hypotheses",)
        return ("alignment",) if self.has_links else ()

    def answer(
        self, job: TranslationJob, first: int, columns: Mapping[str, Sequence[str]]
    ) -> Iterator[WrittenUnit]:
        """Translate the texts of some lines.

        Args:
            job: how to translate.
            first: number of the first line, from 0.
            columns: lines of each file, by option.
        """
        rows = [self.read(number, line) for number, line in enumerate(columns[INPUT], start=first)]
        found = job.translate({**columns, INPUT: [row.text for row in rows]})
        for number, (row, one) in enumerate(zip(rows, found, strict=True), start=first):
            translation = replace(one, hypotheses=(), error=row.fault) if row.fault else one
            text = self.write(row, translation)
            yield WrittenUnit(text, [(number, translation)], terms=[(number, translation.terms)])

    def _find(self, value: dict[str, Any]) -> tuple[str, dict[str, Any]] | str:
        """Find the key of the text and the object that has it, or say that it has no text."""
        if self.column:
            key, holder = find_dotted_key(value, self.column)
            if key in holder:
                return key, holder
            wanted = repr(self.column)
        else:
            source = self.languages[0]
            for key in (*SOURCE_KEYS, *filter(None, [source])):
                if key in value:
                    return key, value
            nested = value.get(NESTED)
            if isinstance(nested, dict) and source in nested:
                return source, nested
            wanted = ", ".join(map(repr, SOURCE_KEYS)) + (f" or {source!r}" if source else "")
        names = ", ".join(map(repr, value)) or "no key"
        return f"An object must have {wanted}, but has {names}. Name its key with --column."

    def _place(self, value: dict[str, Any], holder: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Choose the key of the translation, and the object that gets it."""
        if self.into:
            return find_dotted_key(value, self.into)
        if holder is not value and self.languages[1]:
            return self.languages[1], holder
        return NESTED, value


def choose_objects(
    job: TranslationJob, input_file: str, output_file: str, choice: str, options: Mapping[str, Any]
) -> ObjectForm | None:
    """Choose the form of objects, if input or output is JSON Lines; None for plain lines.

    Args:
        job: how to translate, and with which model.
        input_file: the input.
        output_file: the output; with a name of JSON Lines, plain lines become objects.
        choice: the format of the input.
        options: the command's options, among them ``column`` and ``into``.
    """
    is_jsonl = choice == "jsonl"
    column = options["column"]
    into = options["into"]
    has_objects = is_jsonl or (is_json_lines(output_file) and job.form != "json")
    if column is not None and not is_jsonl:
        warn("--column has no effect without JSON Lines.")
    if into is not None and not has_objects:
        warn("--into has no effect without JSON Lines.")
    if not has_objects:
        return None
    return ObjectForm(
        input_file,
        is_plain=not is_jsonl,
        column=column or "",
        into=into or "",
        languages=job.languages,
        details="" if job.form == "plain" else job.form,
        has_links=job.aligner is not None,
        is_chain=job.is_chain,
    )
