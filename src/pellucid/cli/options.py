"""Arguments that several commands take, and the options of a search."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from pellucid.config import DecodingConfig

__all__ = [
    "CONSTRAINTS",
    "SEARCH",
    "Ensemble",
    "InputFile",
    "Json",
    "Model",
    "Option",
    "OutputFile",
    "Overwrite",
    "Progress",
    "SplitLong",
    "Stream",
    "Threads",
    "Workers",
    "flag",
    "useless_options",
    "with_options",
]

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A bundle folder, a run folder (its best bundle), or the word demo.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", help="Processor threads; all unless given."),
]
Workers = Annotated[
    int,
    typer.Option(
        "--workers",
        metavar="N",
        help="Processes that share the threads and translate side by side; faster for many lines, "
        "but each has the model in its own memory.",
    ),
]
InputFile = Annotated[
    str,
    typer.Option("-i", "--input", metavar="FILE", help="Lines to translate, plain or .gz."),
]
OutputFile = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="Where the results go.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output file.")]
Stream = Annotated[
    bool, typer.Option("--stream", help="Answer each line before the next one is read.")
]
Progress = Annotated[
    bool | None, typer.Option(help="Say how far it is; on a terminal unless told otherwise.")
]
SplitLong = Annotated[
    bool, typer.Option("--split-long", help="Split lines that are too long into sentences.")
]
Ensemble = Annotated[
    list[str] | None,
    typer.Option(
        "--ensemble",
        metavar="MODEL",
        help="Another model with the same target vocabulary, whose probabilities are averaged "
        "with MODEL's; may be repeated.",
    ),
]

Option = tuple[Any, str | None, str]
"""What an option takes, what stands for it in the help, and the help.

A truth value can also be denied (``--no-NAME``), unless what stands for it is empty.
"""

SEARCH: Mapping[str, Option] = {
    "beam": (int, "N", "Hypotheses followed at once; 1 is greedy."),
    "n_best": (int, "K", "Write K hypotheses a line: LINE ||| TEXT ||| LOG_PROBABILITY ||| SCORE."),
    "sample": (bool, None, "Draw each token from the softmax, instead of searching the best."),
    "temperature": (float, "X", "Below 1 samples are tamer, above 1 wilder."),
    "top_k": (int, "N", "Draw among the N likeliest tokens; 0: all."),
    "top_p": (float, "X", "Draw among the fewest tokens that hold this much of the mass."),
    "epsilon": (float, "X", "Draw no token less likely than this."),
    "seed": (int, "N", "Another seed draws other samples."),
    "precision": (
        Literal["float32", "bfloat16", "int8"],
        None,
        "What the weights are multiplied in.",
    ),
    "length_penalty": (
        Literal["gnmt", "average", "none"],
        None,
        "What divides a hypothesis's log-probability into its score.",
    ),
    "alpha": (float, "X", "How much the length penalty favors long hypotheses; 0: not at all."),
    "stopping": (
        Literal["safe", "heuristic", "never"],
        None,
        "End a search when nothing can win any more, when nothing leads, or at the maximum length.",
    ),
    "diverse_groups": (int, "N", "Divide the beam into groups that avoid each other's tokens."),
    "diversity": (float, "X", "What a token costs for each earlier group that chose it."),
    "max_length": (int, "N", "The most tokens of a translation; 0: relative to the source."),
    "max_length_ratio": (float, "X", "The most tokens for each of the source's."),
    "max_length_offset": (int, "N", "And this many more."),
    "min_length": (int, "N", "The fewest tokens of a translation."),
    "min_length_ratio": (float, "X", "The fewest tokens for each of the source's."),
    "no_repeat_ngram": (int, "N", "Never write the same N tokens twice; 0: allowed."),
    "repetition_penalty": (float, "X", "Make tokens that were written before less likely; 1: not."),
    "alternatives": (
        bool,
        None,
        "Give the K likeliest tokens after the prefix, each continued to the end.",
    ),
    "strict": (bool, None, "The same text whatever else is translated beside it; slower."),
}
"""One option for each field of `pellucid.config.DecodingConfig`, which says what is allowed.

Spelled out, because asking the class itself would make every ``--help`` import pydantic. A test
holds the two together.
"""

CONSTRAINTS: Mapping[str, Option] = {
    "prefix": (str, "TEXT", "What every translation begins with."),
    "prefix_file": (str, "FILE", "Line i: what translation i begins with."),
    "forbid": (list[str], "PHRASE", "What no translation may hold; may be repeated."),
    "forbid_file": (str, "FILE", "Such phrases, one a line."),
    "require": (list[str], "PHRASE", "What every translation must hold; may be repeated."),
    "require_file": (str, "FILE", "Line i: what translation i must hold, separated by tabs."),
    "glossary": (
        str,
        "FILE",
        "SOURCE TERM, tab, TARGET TERM a line: where the one is in a line, the other must be in "
        "its translation.",
    ),
}

_Command = TypeVar("_Command", bound=Callable[..., int])
_SAMPLING = ("temperature", "top_k", "top_p", "epsilon", "seed")


def flag(name: str) -> str:
    """How a person writes an option: ``--max-length`` for ``max_length``."""
    return "--" + name.replace("_", "-")


def with_options(*tables: Mapping[str, Option]) -> Callable[[_Command], _Command]:
    """Give a command, beside the arguments it lists, the options of some tables.

    The command takes them as ``**options``: None where a person did not give one, so that the
    model's own default holds.

    Args:
        tables: name of each option to what it takes, its metavar and its help.
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
    """Say which options cannot change anything.

    Args:
        given: the names of the options of a search that a person gave.
        decoding: what holds altogether, with the model's own defaults.
        is_score_shown: whether scores are part of the output.

    Yields:
        One sentence each.
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
    told = set()
    for names, is_useless, why in rules:
        for name in names:
            if is_useless and name in given and name not in told:
                told.add(name)
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
