"""Arguments and options that several commands share, and options from tables and sections."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from pellucid.cli.ending import warn
from pellucid.errors import InputError

if TYPE_CHECKING:
    from pellucid.config import Strict

PACKAGED = ("demo", "demo-untrained", "demo-recurrent")
"""The models that come with the package, as `pellucid.bundle` finds them."""

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A bundle folder, a run folder (for its best bundle), or a packaged model: "
        f"{', '.join(PACKAGED)}.",
    ),
]
Texts = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE|TABLE",
        help="A recipe file, the name of one that comes with pellucid, or text: a .tsv, .csv, "
        ".jsonl, .parquet, .po, .xlf or .tmx, a folder of them, or a source and a target file.",
    ),
]
OutputFile = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="Where to write the results.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace output files that exist.")]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="LANGUAGE",
        help="The language to translate into, for a model that has several (see pellucid "
        "inspect): fr, fra, fra_Latn or French. Every line begins with its code then.",
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="LANGUAGE",
        help="The source language, for models that need it, such as NLLB.",
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]


def _set_threads(threads: int | None) -> int | None:
    """Set the threads before the command begins, at most one for each processor."""
    from pellucid.machine.hardware import num_processors, use_threads

    processors = num_processors()
    # Above a thousand it is a mistake, which is refused below.
    if threads is not None and processors < threads <= 1000:
        asked = f"--threads {threads:,}"
        warn(f"{asked} asks for more threads than processors, so {processors} are used.")
        threads = processors
    use_threads(threads)
    return threads


Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        help="Processor threads to use. [default: what affinity, a container's quota and "
        "OMP_NUM_THREADS allow]",
        callback=_set_threads,
    ),
]


def _set_device(name: str | None) -> str | None:
    """Choose the device before the command begins; one that does not work shows at once."""
    from pellucid.machine.devices import use_device

    use_device(name)
    return name


Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Compute on cpu, cuda, cuda:N, or auto: a GPU if one works. [default: cpu; training: "
        "auto]",
        callback=_set_device,
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


def _check_changes(changes: list[str] | None) -> list[str] | None:
    """Refuse changes of keys that do not exist, before the command reads or writes anything."""
    if changes:
        from pellucid.config import check_overrides

        check_overrides(changes)
    return changes


Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="Change one setting (see pellucid recipe); may be repeated.",
        callback=_check_changes,
    ),
]
ModelChanges = Annotated[
    list[str] | None,
    typer.Option(
        "--change",
        metavar="CHANGE",
        help="Change the model: 'cut decoder.1.cross.0', 'cut word it' and the other changes of "
        "look; may be repeated. Changes of the decoder other than cuts of whole heads run on "
        "PyTorch, which is slower.",
    ),
]

# The type of an option, its metavar, its help text, its value if not given (default None), and the
# heading above it in the help (default: that of cli/help.toml). A boolean option also gets a
# `--no-NAME` form, unless its metavar is empty.
Option = tuple[Any, ...]

HEADS: Option = (
    list[str],
    "ADDRESS",
    "Heads, such as decoder.1.cross.0: part, layer, kind, head. * stands for all, as does what is "
    "left out at the end (decoder.1); may be repeated.",
)

CONSTRAINTS: Mapping[str, Option] = {
    "prefix": (
        str,
        "TEXT",
        "Begin every translation with TEXT; with @FILE, translation i with line i of FILE. @@ "
        "begins a text with @.",
    ),
    "forbid": (
        list[str],
        "PHRASE",
        "Forbid PHRASE in every translation; with @FILE, every line of FILE. May be repeated.",
    ),
    "require": (
        list[str],
        "PHRASE",
        "Require PHRASE in every translation; with @FILE, in translation i the phrases in line i "
        "of FILE, separated by tabs. May be repeated.",
    ),
    "glossary": (
        list[str],
        "FILE",
        "Translate terms as FILE says: a TBX, or a table with tabs or a CSV of source, target, and "
        "perhaps yes for capitals that count. The target may have several forms, with | between "
        "them, and *free* for any ending. May be repeated. --set glossary.match=forms also finds "
        "plurals and other common forms, --set glossary.match=exact only the term itself.",
    ),
}

_Command = TypeVar("_Command", bound=Callable[..., int | None])


def flag(name: str) -> str:
    """Turn ``n_best`` into ``--n-best``; the name of an argument, ``MODEL``, stays."""
    return name if name.isupper() else "--" + name.replace("_", "-")


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


def described(
    *tables: Mapping[str, Option],
    **rows: tuple[str, str] | tuple[str, str, Mapping[str, Any]],
) -> Callable[[_Command], _Command]:
    """Describe the options that a command declares as arguments, and add those of some tables.

    The command takes options of tables as ``**options``. One that was not given is None, so that
    the model's own default holds.

    Args:
        tables: option by name.
        rows: by the argument's name the option's metavar (empty for none), its help text and, if
            needed, further arguments of ``typer.Option``; among them ``name``, if the option is not
            called like the argument.
    """

    def describe(parameter: inspect.Parameter) -> inspect.Parameter:
        if parameter.name not in rows:
            return parameter
        metavar, help_text, *more = rows[parameter.name]
        further: dict[str, Any] = dict(more[0]) if more else {}
        names = further.pop("name", flag(parameter.name)).split()
        option = typer.Option(*names, metavar=metavar or None, help=help_text, **further)
        return parameter.replace(annotation=Annotated[parameter.annotation, option])

    def decorate(command: _Command) -> _Command:
        signature = inspect.signature(command, eval_str=True)
        own = [describe(p) for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [_to_parameter(name, option) for table in tables for name, option in table.items()]
        # Typer reads a command's options from here.
        command.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
        return command

    return decorate


def options_of(
    section: type[Strict],
    *,
    more: Mapping[str, tuple[Any, str]] = MappingProxyType({}),
    named: Callable[[str], str] = str,
    keep: bool = False,
) -> dict[str, Option]:
    """Make an option for each field of a section of configuration, which checks its value later.

    Args:
        section: the section.
        more: the types that only the command line takes, by field, and a sentence about them.
        named: the option's name, from the field's.
        keep: True to keep the section's defaults; otherwise an option not given is None.
    """
    from pellucid.config.sections import read_meanings, settings_of

    def to_flag(match: re.Match[str]) -> str:
        name, is_off = match.groups()
        return flag(f"no_{name}" if is_off else name) if name in section.model_fields else name

    topics = read_meanings(section)
    options = {}
    for name, kind, _, default, meaning in settings_of(section):
        # A field without a default takes None, which the command line cannot say.
        plain = next(iter({*get_args(kind)} - {type(None)}), kind) if default is None else kind
        metavar = {int: "N", float: "S" if name.endswith("_seconds") else "X"}.get(plain)
        if keep and default is False:
            metavar = ""
        kind, sentence = more.get(name, (kind, ""))
        help_text = re.sub(r"``(\w+)( = false)?``", to_flag, f"{meaning} {sentence}").strip()
        if not keep and default is not None:
            # Typer gets None, so that the default of the model in use holds.
            help_text += f"  [default: {_to_word(default)}]"
        heading = topics.get(name, ("",))[0] or None
        options[named(name)] = (kind, metavar, help_text, default if keep else None, heading)
    return options


def _to_word(default: object) -> str:
    """Write a default as it would be typed."""
    return {True: "on", False: "off"}[default] if isinstance(default, bool) else str(default)


def given_of(names: Iterable[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Take the options of some names that were given."""
    return {name: options[name] for name in names if options[name] is not None}


def _to_parameter(name: str, option: Option) -> inspect.Parameter:
    kind, metavar, help_text, *more = option
    default, heading = (*more, None, None)[:2]
    names = flag(name)
    if kind is bool and metavar is None:
        names = f"{names}/{flag(f'no_{name}')}"
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=typer.Option(
            default, names, metavar=metavar or None, help=help_text, rich_help_panel=heading
        ),
        annotation=kind | None,
    )
