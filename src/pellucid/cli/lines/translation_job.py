"""A translation job: how each line is translated, and how its translation is written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pellucid.cli.lines.decoding_options import INPUT, TREATMENT, ConstraintOptions, option_for
from pellucid.cli.lines.streams import MAX_LINES, to_json_line
from pellucid.cli.options import flag
from pellucid.terminal.text import count_of

if TYPE_CHECKING:
    from pellucid.config import DecodingConfig
    from pellucid.translate.links.aligning import Aligner
    from pellucid.translate.results import Notes, TranslatedHypothesis, Translation
    from pellucid.translate.translator import Translator

Form = Literal["plain", "n-best", "json"]


def choose_form(given: Collection[str], *, is_json: bool) -> Form:
    """Choose how translations are written, by the decoding options that were given."""
    if is_json:
        return "json"
    return "n-best" if "n_best" in given else "plain"


# Maximum number of hypotheses in a window, each with its tokens and their log-probabilities.
MAX_HYPOTHESES = 10_000


@dataclass(frozen=True)
class TranslationJob:
    """The task for every line: how to translate it, and how to write its translation.

    Attributes:
        translator: one model, or several.
        given: the decoding options that were given; the model's defaults hold for the others.
        constraints: what the translations must and must not contain.
        form: how a translation is written.
        treatment: what to do with lines and their translations, by the argument of
            `Translator.translate`.
        ensemble: names of further models.
        to: the language whose code every line gets; None leaves lines as they are.
        aligner: links the words of translations; None if that was not asked for.
        change: the changes of the model.
    """

    translator: Translator
    given: Mapping[str, Any]
    constraints: ConstraintOptions
    form: Form
    treatment: Mapping[str, Any]
    ensemble: tuple[str, ...]
    to: str | None = None
    aligner: Aligner | None = None
    change: tuple[str, ...] = ()

    @cached_property
    def code(self) -> str:
        """The language code that every line gets, or an empty text.

        Raises:
            InputError: the model has no such code.
        """
        from pellucid.text.language_tokens import find_code
        from pellucid.translate.chain.chained import Chain

        to = self.to
        if isinstance(self.translator, Chain):
            # The code that the last model gets, after the languages of all have been checked.
            to = self.translator.legs(to)[-1]
        return "" if to is None else find_code(self.translator.tokenizer, to)

    @cached_property
    def decoding(self) -> DecodingConfig:
        """All decoding options, with the model's defaults filled in.

        Raises:
            ConfigurationError: an option is impossible, or two contradict each other.
        """
        return self.translator.options(**self.given)

    @property
    def languages(self) -> tuple[str, str]:
        """The codes of the model's source and target language; empty if unknown."""
        languages = self.translator.languages
        if self.translator.tokenizer.needs_code and self.code:
            source, _, target = self.code[2:-2].rpartition(":")
            if self.is_chain:
                # The code is the last model's, and names the language in the middle.
                source = (self.to or "").rpartition(":")[0] or languages.source
            return source, target
        return languages.source, languages.target

    @property
    def can_stream(self) -> bool:
        """True if the text of a line can be written while it is decoded."""
        is_whole = self.treatment["retry"] or self.treatment["unknown"] != "token"
        is_whole = is_whole or self.is_chain
        return self.form == "plain" and not is_whole and self.aligner is None

    @property
    def is_chain(self) -> bool:
        """True if texts go through several models, one after the other."""
        return len(self.translator.tokenizers) > 1

    @property
    def can_overlap(self) -> bool:
        """True if windows can be translated at once: Python works while the engine does."""
        from pellucid.machine.hardware import threads_in_use

        # Only the engine in C lets Python run in the meantime.
        is_one_call = self.translator.decoder.find_reason(self.decoding) is None
        constraints = self.constraints
        is_free = constraints.rule is None and constraints.glossary is None and not self.aligner
        return is_one_call and is_free and threads_in_use() > 1

    @property
    def max_lines(self) -> int:
        """Number of lines in a window; it depends on nothing but the options."""
        return max(1, min(MAX_LINES, MAX_HYPOTHESES // self.decoding.n_best))

    def describe(self, *, is_streamed: bool = False) -> str:
        """Describe the engine, precision and threads in a sentence."""
        from pellucid.machine.hardware import threads_in_use

        rule = "lines are written in pieces" if is_streamed else self.constraints.rule
        return (
            f"Translating in {self.decoding.precision} by {self._describe_engine(rule)}, with "
            f"{count_of(threads_in_use(), 'thread')}."
        )

    def _describe_engine(self, rule: str | None) -> str:
        return self.translator.decoder.describe(self.decoding, rule)

    def useless_treatment(self) -> Iterator[str]:
        """Find the options for lines that cannot change anything; yield a sentence for each."""
        if self.treatment["unknown"] != "token":
            from pellucid.text.learned import can_write_everything

            if all(map(can_write_everything, self.translator.tokenizers)):
                yield (
                    "--unknown has no effect on this model, whose vocabulary can write every word."
                )

    def translate(
        self, columns: Mapping[str, Sequence[str]], *, align: bool = False, **choices: Any
    ) -> list[Translation]:
        """Translate some lines.

        Args:
            columns: lines of each file, by option.
            align: True to link words even without an aligner.
            choices: options of `Translator.translate` in the place of the given ones.
        """
        return self.translator.translate(
            columns[INPUT],
            constraints=self.constraints.for_lines(columns),
            to=self.to,
            align=self.aligner or align,
            **{**self.treatment, **self.given, **choices},
        )

    def stream(self, columns: Mapping[str, Sequence[str]]) -> Iterator[str]:
        """Translate one line and yield its text piece by piece."""
        return self.translator.stream(**self._one_line(columns))

    def examine(self, columns: Mapping[str, Sequence[str]]) -> Notes:
        """Say what is unusual about one line, without translating it."""
        from pellucid.translate.text_translator import examine

        return examine(self.translator, **self._one_line(columns))

    def _one_line(self, columns: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        (text,) = columns[INPUT]
        (constraints,) = self.constraints.for_lines(columns)
        how = {name: self.treatment[name] for name in ("clean", "split")}
        return {"text": text, "constraints": constraints, "to": self.to, **how, **self.given}

    def write(self, number: int, translation: Translation) -> str:
        """Write a translation in the job's form.

        Args:
            number: number of its line, from 0.
            translation: the translation of that line.
        """
        has_links = self.aligner is not None
        if self.form == "json":
            return to_json_line({"line": number, **translation.to_dict()})
        if self.form == "plain":
            links = f" ||| {_to_links(translation.best)}" if has_links else ""
            return f"{translation.text}{links}\n"
        rows = [
            (one.text, f"{one.log_probability:.6f}", f"{one.score:.6f}", _to_links(one))
            for one in translation.hypotheses
        ]
        lines = []
        for row in rows or [("", "", "", "")]:
            cells = row if has_links else row[:-1]
            lines.append(" ||| ".join((str(number), *cells)))
        return "".join(f"{line}\n" for line in lines)

    def identify(self) -> dict[str, Any]:
        """Gather everything except the input that the output depends on, by its name for users.

        The machine and its threads are included: they decide the last bits of a log-probability,
        and so also the text if two hypotheses are that close.
        """
        from importlib.metadata import distributions

        from pellucid import __version__
        from pellucid.machine.hardware import threads_in_use
        from pellucid.native.loading import describe_processor

        own, *others = self.translator.model_hashes
        decoding = self.decoding.model_dump(mode="json")
        return {
            "the version of pellucid": __version__,
            "the version of PyTorch": next(
                (one.version for one in distributions(name="torch")), None
            ),
            "the processor": describe_processor(),
            "the engine": self._describe_engine(self.constraints.rule),
            "--threads": threads_in_use(),
            "--to": self.code,
            "--change": list(self.change),
            "--align": None if self.aligner is None else self.aligner.settings,
            "MODEL": own,
            "--ensemble": others,
            "the form": self.form,
            **{flag(name): value for name, value in self.treatment.items() if name in TREATMENT},
            **{option_for(name): value for name, value in decoding.items()},
            **self.constraints.settings,
        }


def _to_links(hypothesis: TranslatedHypothesis) -> str:
    """Write the links of a hypothesis in the Pharaoh format."""
    return " ".join(f"{i}-{j}" for i, j in hypothesis.alignment or ())
