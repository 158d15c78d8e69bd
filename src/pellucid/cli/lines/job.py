"""What is asked of every line: how to translate it, and how its translation is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pellucid.cli.lines.constraints import INPUT, ConstraintOptions
from pellucid.cli.lines.streams import MAX_LINES, to_json_line
from pellucid.cli.options import flag

if TYPE_CHECKING:
    from pellucid.config import DecodingConfig
    from pellucid.translation import TranslatedHypothesis, Translation
    from pellucid.translator import Translator

__all__ = ["Form", "Job", "load_job"]

Form = Literal["plain", "n-best", "json"]

MAX_HYPOTHESES = 10_000
"""How many hypotheses are held at once, each with its tokens and their log-probabilities."""


@dataclass(frozen=True)
class Job:
    """What is asked of every line.

    Attributes:
        translator: the model, or several.
        decoding: how it searches, the model's own defaults included.
        options: the keywords that make the translator do so.
        constraints: what is asked of the text itself.
        form: how a translation is written.
        split_long: whether lines too long for the model are split at sentences.
        ensemble: further models.
        workers: how many processes translate; 1 is this one alone.
    """

    translator: Translator
    decoding: DecodingConfig
    options: Mapping[str, Any]
    constraints: ConstraintOptions
    form: Form
    split_long: bool
    ensemble: tuple[str, ...]
    workers: int

    @property
    def can_stream(self) -> bool:
        """Whether a line's text can be handed out while it is decided."""
        return self.form == "plain" and not self.split_long

    @property
    def max_lines(self) -> int:
        """How many lines are translated at once; it follows from the options alone."""
        return max(1, min(MAX_LINES, MAX_HYPOTHESES // self.decoding.n_best))

    def describe(self) -> str:
        """How the computing is done, in a sentence."""
        from pellucid.hardware import share_threads

        threads = share_threads(self.workers)
        workers = "" if self.workers == 1 else f"{self.workers} workers of "
        return (
            f"Translating in {self.decoding.precision}, with {workers}{threads} "
            f"{'thread' if threads == 1 else 'threads'}."
        )

    def can_share(self, num_lines: int) -> bool:
        """Whether as many lines at once are enough for the workers, if there are any."""
        from pellucid.decode.workers import is_worth

        return self.workers == 1 or is_worth(num_lines, self.workers)

    def translate(self, columns: Mapping[str, Sequence[str]]) -> list[Translation]:
        """Translate some lines.

        Args:
            columns: lines of each file, by the name of its option.
        """
        return self.translator.translate(
            columns[INPUT],
            constraints=self.constraints.for_lines(columns),
            split_long=self.split_long,
            **self.options,
        )

    def stream(self, columns: Mapping[str, Sequence[str]]) -> Iterator[str]:
        """Translate one line, handing out its text as it is decided."""
        (text,), (constraints,) = columns[INPUT], self.constraints.for_lines(columns)
        return self.translator.stream(text, constraints=constraints, **self.options)

    def write(self, number: int, translation: Translation) -> str:
        """Put a translation into the form that was asked for.

        Args:
            number: the line's, from 0.
            translation: of that line.
        """
        if self.form == "json":
            return to_json_line(_to_record(number, translation))
        if self.form == "plain":
            return f"{translation.text}\n"
        rows = [
            (h.text, f"{h.log_probability:.6f}", f"{h.score:.6f}") for h in translation.hypotheses
        ]
        return "".join(" ||| ".join((str(number), *row)) + "\n" for row in rows or [("", "", "")])

    def identify(self) -> dict[str, Any]:
        """Everything that the output depends on beside the input, by what a person calls it.

        The last bits of a log-probability, and where two hypotheses are that near also the text,
        depend on the machine and its threads.
        """
        import torch

        from pellucid import __version__
        from pellucid.bundle import load_bundle, resolve_model

        bundle = self.translator.bundle
        others = [load_bundle(resolve_model(name)).model_hash for name in self.ensemble]
        # Lines that were translated before there were workers go on without.
        shared = {} if self.workers == 1 else {"--workers": self.workers}
        searches = {flag(name): value for name, value in self.decoding.model_dump().items()}
        return {
            "the version of pellucid": __version__,
            "the version of PyTorch": torch.__version__,
            "the processor": torch.backends.cpu.get_cpu_capability(),
            "--threads": torch.get_num_threads(),
            **shared,
            "MODEL": bundle.model_hash if bundle is not None else None,
            "--ensemble": others,
            "the form": self.form,
            "--split-long": self.split_long,
            **searches,
            **self.constraints.settings,
        }


def load_job(
    model: str,
    *,
    given: Mapping[str, Any],
    constraints: ConstraintOptions,
    form: Form,
    split_long: bool,
    ensemble: tuple[str, ...],
    threads: int | None,
    workers: int,
) -> Job:
    """Load the models, and find out whether they can do what is asked.

    Args:
        model: MODEL.
        given: fields of `DecodingConfig` that were given; the others are the model's own.
        constraints: what is asked of the text itself.
        form: how a translation is written.
        split_long: whether lines too long for the model are split at sentences.
        ensemble: further models.
        threads: processor threads.
        workers: processes.

    Raises:
        ConfigurationError: an option is impossible, or two contradict each other.
        BundleError: a folder is no model.
    """
    from pellucid.translator import load

    translator = load(model, threads=threads, ensemble=ensemble, workers=workers)
    decoding = translator.configure(**given)
    return Job(translator, decoding, given, constraints, form, split_long, ensemble, workers)


def _to_record(number: int, translation: Translation) -> dict[str, Any]:
    return {
        "line": number,
        "source": translation.source.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        "error": translation.error,
        "hypotheses": [_to_hypothesis(hypothesis) for hypothesis in translation.hypotheses],
    }


def _to_hypothesis(hypothesis: TranslatedHypothesis) -> dict[str, Any]:
    names = ("text", "tokens", "ids", "token_log_probabilities", "log_probability", "score")
    return {name: getattr(hypothesis, name) for name in names}
