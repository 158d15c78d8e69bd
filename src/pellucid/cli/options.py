"""Arguments and options that several commands share, and the tables of decoding options."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from pellucid.cli.ending import warn
from pellucid.errors import InputError

if TYPE_CHECKING:
    from pellucid.config import DecodingConfig

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A bundle folder, a run folder (for its best bundle), or a packaged model: demo, "
        "demo-untrained, demo-recurrent.",
    ),
]
SourceFile = Annotated[
    str, typer.Option("--source", metavar="FILE", help="Source lines; '-' is standard input.")
]
TargetFile = Annotated[
    str, typer.Option("--target", metavar="FILE", help="Their translations, line by line.")
]
OutputFile = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="Where to write the results.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the output file if it exists.")
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="LANGUAGE",
        help="Begin every line with this language code, for a model that has several (see "
        "pellucid inspect): fra stands for >>fra<<.",
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]


def _at_most_processors(threads: int | None) -> int | None:
    """Lower a number of threads to that of the processors, and say so."""
    processors = os.cpu_count() or 1
    if threads is None or not processors < threads <= 1000:
        return threads
    warn(f"--threads {threads:,} asks for more threads than processors, so {processors} are used.")
    return processors


Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        help="Processor threads to use; all by default.",
        callback=_at_most_processors,
    ),
]
Ensemble = Annotated[
    list[str] | None,
    typer.Option(
        "--ensemble",
        metavar="MODEL",
        help="Average MODEL's probabilities with those of this model, which must have the same "
        "target vocabulary; may be repeated.",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change one setting; may be repeated."),
]

Option = tuple[Any, str | None, str]
"""The type of an option, its metavar and its help text.

A boolean option also gets a ``--no-NAME`` form, unless its metavar is empty.
"""

DECODING: Mapping[str, Option] = {
    "beam": (int, "N", "Keep N hypotheses at each step; 1 is greedy search."),
    "n_best": (int, "K", "Write K hypotheses a line: LINE ||| TEXT ||| LOG_PROBABILITY ||| SCORE."),
    "sample": (bool, None, "Draw each token from the softmax instead of searching."),
    "temperature": (float, "X", "Divide logits by X: below 1 samples vary less, above 1 more."),
    "top_k": (int, "N", "Draw among the N likeliest tokens only; 0 allows all."),
    "top_p": (float, "X", "Draw among the fewest tokens that hold the share X of the probability."),
    "epsilon": (float, "X", "Draw no token whose probability is below X."),
    "seed": (int, "N", "Seed of the samples."),
    "precision": (
        Literal["auto", "float32", "bfloat16", "int8"],
        None,
        "Precision of the weights in matrix products; auto is the fastest that lost at most 0.2 "
        "BLEU on the validation text.",
    ),
    "length_penalty": (
        Literal["gnmt", "average", "none"],
        None,
        "Divisor of a hypothesis's log-probability in its score.",
    ),
    "alpha": (float, "X", "Exponent of the length penalty; larger favors long hypotheses."),
    "stopping": (
        Literal["safe", "heuristic", "never"],
        None,
        "End a search when no growing hypothesis can still win, when none leads now, or only at "
        "the maximum length.",
    ),
    "diverse_groups": (int, "N", "Divide the beam into N groups that avoid each other's tokens."),
    "diversity": (float, "X", "Penalty of a token for each earlier group that has chosen it."),
    "max_length": (int, "N", "Maximum length in tokens; 0 takes it from the source's length."),
    "max_length_ratio": (float, "X", "Maximum number of tokens for each source token."),
    "max_length_offset": (int, "N", "Number of tokens added to that maximum."),
    "min_length": (int, "N", "Minimum length in tokens."),
    "min_length_ratio": (float, "X", "Minimum number of tokens for each source token."),
    "no_repeat_ngram": (int, "N", "Never write the same N tokens in a row twice; 0 allows it."),
    "repetition_penalty": (float, "X", "Make tokens written before less likely; 1 turns it off."),
    "alternatives": (bool, None, "Continue each of the K likeliest tokens after the prefix."),
    "strict": (bool, None, "Give the same text whatever is in the same batch; slower."),
}
"""One option for each field of `pellucid.config.DecodingConfig`, which says what is allowed.

They are spelled out because reading the class would make every ``--help`` import pydantic. A test
compares the two.
"""

CONSTRAINTS: Mapping[str, Option] = {
    "prefix": (str, "TEXT", "Begin every translation with TEXT."),
    "prefix_file": (str, "FILE", "Begin translation i with line i of FILE."),
    "forbid": (list[str], "PHRASE", "Forbid PHRASE in every translation; may be repeated."),
    "forbid_file": (str, "FILE", "Forbid every line of FILE."),
    "require": (list[str], "PHRASE", "Require PHRASE in every translation; may be repeated."),
    "require_file": (
        str,
        "FILE",
        "Require in translation i the phrases in line i of FILE, separated by tabs.",
    ),
    "glossary": (
        list[str],
        "FILE",
        "Translate terms as FILE says: SOURCE TERM, tab, TARGET TERM on each line; may be "
        "repeated.",
    ),
    "glossary_match": (
        Literal["auto", "exact", "forms"],
        None,
        "Find terms as they are, with attached particles and articles (auto, the default), or in "
        "all common forms, plurals too (forms).",
    ),
}

_Command = TypeVar("_Command", bound=Callable[..., int])
_SAMPLING = ("temperature", "top_k", "top_p", "epsilon", "seed")


def flag(name: str) -> str:
    """Turn ``max_length`` into ``--max-length``."""
    return "--" + name.replace("_", "-")


def check_utf8(name: str, text: str) -> None:
    """Refuse bytes that are not UTF-8, which Python reads from a command line as surrogates.

    Args:
        name: the argument's name, for the message.
        text: the argument.

    Raises:
        InputError: some bytes are not UTF-8.
    """
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"{name} must be UTF-8 text, but is {text!a}. Type it again.")


def with_options(*tables: Mapping[str, Option]) -> Callable[[_Command], _Command]:
    """Add the options of some tables to those that a command declares itself.

    The command takes them as ``**options``. An option that was not given is None, so that the
    model's own default holds.

    Args:
        tables: option by name.
    """

    def decorate(command: _Command) -> _Command:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [_to_parameter(name, option) for table in tables for name, option in table.items()]
        # Typer reads a command's options from here.
        command.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return command

    return decorate


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
    is_single = decoding.beam == decoding.n_best == 1
    rules = (
        (_SAMPLING, not decoding.sample, "without --sample"),
        (("diversity",), decoding.diverse_groups == 1, "without --diverse-groups"),
        (("stopping",), decoding.beam == 1, "with a beam of 1"),
        (("alpha",), decoding.length_penalty == "none", "with --length-penalty none"),
        (
            ("length_penalty", "alpha"),
            is_single and not is_score_shown,
            "on a single hypothesis whose score is not written",
        ),
        (
            ("max_length_ratio", "max_length_offset"),
            decoding.max_length > 0,
            "with --max-length",
        ),
    )
    reasons: dict[str, str] = {}
    for names, is_useless, why in rules:
        for name in names if is_useless else ():
            reasons.setdefault(name, why)  # one reason is enough
    for name, why in reasons.items():
        if name in given:
            yield f"{flag(name)} has no effect {why}."


def _to_parameter(name: str, option: Option) -> inspect.Parameter:
    kind, metavar, help_text = option
    names = flag(name)
    if kind is bool and metavar is None:
        names = f"{names}/{flag(f'no_{name}')}"
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=typer.Option(None, names, metavar=metavar or None, help=help_text),
        annotation=kind | None,
    )
