"""The commands in Typer. Only the command that is asked for is loaded."""

from __future__ import annotations

import inspect
import signal
import sys
from collections import Counter
from collections.abc import Callable, Collection
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand

from pellucid.cli.ending import OnlyErrors
from pellucid.cli.overview import (
    COMMANDS,
    HELP_OPTIONS,
    OPTIONS,
    SUBCOMMANDS,
    help_width,
    read_help,
    show_group,
    show_overview,
)
from pellucid.errors import InputError, suggestion
from pellucid.files import expand_home

# Above so many options, a command's help has headings.
MANY_OPTIONS = 8


def dispatch(arguments: list[str]) -> int:
    """Run the command that the arguments name, and return its exit code.

    Raises:
        InputError: the command or an option does not exist (with the nearest name), or the value
            of an option is not of its type.
    """
    arguments = list(arguments)
    if _take_common_options(arguments, "pellucid") or not arguments:
        show_overview()
        return 0
    name = arguments.pop(0)
    if name == "help" and arguments and arguments[0] not in HELP_OPTIONS:
        return dispatch([*arguments, "--help"])
    if name not in COMMANDS:
        raise unknown_command(name, COMMANDS)
    if name in SUBCOMMANDS:
        group = f"pellucid {name}"
        if _take_common_options(arguments, group) or not arguments:
            show_group(name)
            return 0
        word = arguments.pop(0)
        if word not in SUBCOMMANDS[name]:
            raise unknown_command(word, SUBCOMMANDS[name], within=group)
        name = f"{name} {word}"
    path = f"pellucid {name}"
    try:
        code = load_command(name)(arguments, prog_name=path, standalone_mode=False)
    except typer.TyperException as error:
        raise InputError(describe_mistake(error, path)) from error
    if code == 128 + signal.SIGINT:  # Typer turns Ctrl-C into this code and prints nothing.
        raise KeyboardInterrupt
    return int(code or 0)


def _take_common_options(arguments: list[str], path: str) -> bool:
    """Obey and remove the options before the name of a command; tell whether help is wanted.

    Raises:
        InputError: an option does not exist there.
    """
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option in HELP_OPTIONS:
            return True
        if option in ("-V", "--version"):
            from pellucid import __version__
            from pellucid.native.loading import chosen_set, find_library

            engine = chosen_set() or f"missing, since {find_library()}"
            typer.echo(f"pellucid {__version__} (engine in C: {engine})")
            raise SystemExit(0)
        if option not in ("-q", "--quiet"):
            raise unknown_option(option, path)
        _be_quiet(True)
    return False


def load_command(name: str) -> TyperCommand:
    """Load a command with Typer.

    Args:
        name: its name, as in ``bulk run``, whose function is ``bulk_run`` in
            `pellucid.cli.commands.bulk`.
    """
    module = import_module(f"pellucid.cli.commands.{name.partition(' ')[0]}")
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    settings = {"help_option_names": list(HELP_OPTIONS), "max_content_width": help_width()}
    function = getattr(module, name.replace(" ", "_"))
    app.command(name, cls=Command, context_settings=settings)(_with_quiet(function))
    command = typer.main.get_command(app)
    assert isinstance(command, TyperCommand)
    return command


class Command(TyperCommand):
    """A command that refuses an option given twice, of which Typer would take the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments as Typer does, so that its own faults and --help come first."""
        given = list(args)
        rest = super().parse_args(ctx, args)
        # The parser lists an option each time that it is given.
        _, _, order = self.make_parser(ctx).parse_args(args=given)
        for option, times in Counter(order).items():
            is_repeatable = option.nargs != 1 or getattr(option, "multiple", True)
            if times > 1 and not is_repeatable:
                names = " or ".join((*option.opts, *option.secondary_opts))
                raise InputError(
                    f"{names} must be given once, but is given {times} times. Leave one out."
                )
        # The shell expands no ~ in --output=~/x, or in quotes.
        for parameter in self.params:
            if parameter.name in ctx.params and parameter.metavar in _NAMES_FILES:
                ctx.params[parameter.name] = expand_home(ctx.params[parameter.name])
        return rest

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Name the arguments, in brackets if they can be left out."""
        pieces = ["[OPTIONS]"]
        for one in cast("list[Any]", self.params):
            if one.param_type_name == "argument" and not one.hidden:
                name = one.display_name_raw + ("..." if one.nargs != 1 else "")
                pieces.append(name if one.required else f"[{name}]")
        return pieces

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, text, examples, arguments, and options by their headings."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        table = read_help()
        if examples := table["examples"].get(self.name):
            formatter.write("\nExamples:\n")
            formatter.write("".join(f"  {one}\n" for one in examples))
        parameters: list[Any] = [*self.get_params(ctx)]
        is_long = len(parameters) > MANY_OPTIONS
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        rows |= {heading: [] for heading in table["headings"]}
        for parameter in parameters:
            if getattr(parameter, "hidden", False):
                continue
            name, text = parameter.get_help_record(ctx)
            heading = _heading(parameter) if is_long else "Options"
            if parameter.param_type_name == "argument":
                # Typer adds the type, which says nothing that the text does not.
                name = name.partition(" <")[0]
                heading = "Arguments"
            rows.setdefault(heading, []).append((name, text))
        for heading, lines in rows.items():
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)


def _heading(option: Any) -> str:
    """Find the heading of an option: that of its group in the configuration, or in the table."""
    if option.rich_help_panel:
        return str(option.rich_help_panel)
    name = max(option.opts, key=len).removeprefix("--")
    for heading, names in read_help()["headings"].items():
        if name in names.split():
            return str(heading)
    return "Options"


_NAMES_FILES = ("FILE", "DIR", "RUN", "BUNDLE", "FOLDER", "RECIPE", "SHARD")


def _be_quiet(is_wanted: bool) -> None:
    # `pellucid.cli.main.run` puts the stream back at the end.
    if is_wanted and not isinstance(sys.stderr, OnlyErrors):
        sys.stderr = OnlyErrors(sys.stderr)


Quiet = Annotated[
    bool,
    typer.Option("-q", "--quiet", callback=_be_quiet, is_eager=True, help=OPTIONS["-q, --quiet"]),
]


def _with_quiet(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add --quiet to a command, whose function need not know of it."""

    @wraps(function)
    def command(*, quiet: Quiet, **given: Any) -> int | None:
        if not isinstance(given.get("output"), list):
            return function(**given)
        from pellucid.cli.outputs import sending_standard

        with sending_standard():
            return function(**given)

    signature = inspect.signature(function, eval_str=True)
    quiet = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False)
    parameters = [*signature.parameters.values(), quiet.replace(annotation=Quiet)]
    # Typer reads a command's options from here.
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


# Words that people type instead of a command, and what they look for.
ELSEWHERE = {
    "version": "pellucid --version",
    "list": "pellucid --help",
    "commands": "pellucid --help",
    "models": "pellucid inspect MODEL, with the name of a folder or of a packaged model (demo)",
    "recipes": "pellucid recipe",
    "doctor": "pellucid info",
}


def unknown_command(name: str, known: Collection[str], within: str = "pellucid") -> InputError:
    """Word the refusal of a command that does not exist.

    Args:
        name: what was given.
        known: the names that exist.
        within: the command that has these names.
    """
    sought = ELSEWHERE if within == "pellucid" else {}
    near = get_close_matches(name, [*known, *sought], n=1)
    hint = "Did you mean pellucid bulk run? " if within == "pellucid bulk" else ""
    if near:
        hint = f"Give: {sought[near[0]]}. " if near[0] in sought else f"Did you mean {near[0]!r}? "
    # Names of which none is near are better read with what they do.
    return InputError(f"The command {name!r} does not exist. {hint}See: {within} --help")


def _instead_of(option: str, command: str) -> str | None:
    """Find what replaces an option that a command had under this name."""
    import tomllib  # Only mistakes need it.

    text = Path(__file__).with_name("replaced_options.toml").read_text(encoding="utf-8")
    replaced: dict[str, dict[str, str]] = tomllib.loads(text)
    return replaced.get(command, {}).get(option) or replaced["pellucid"].get(option)


def unknown_option(option: str, command: str) -> InputError:
    """Word the refusal of an option that a command does not have."""
    if (instead := _instead_of(option, command)) is not None:
        return InputError(f"{command} {option} does not exist. Give {instead} instead.")
    return InputError(f"The option {option} does not exist. See: {command} --help")


def describe_mistake(error: Any, command: str) -> str:
    """Word one of Typer's errors about the command line.

    Args:
        error: a ``typer.TyperException``, whose kinds have no public names.
        command: the command that was called, as in ``pellucid keys add``.
    """
    parameter = getattr(error, "param", None)
    option = getattr(error, "option_name", "")
    if _instead_of(option, command) is not None:
        return str(unknown_option(option, command))
    match type(error).__name__:
        case "NoSuchOption":
            # All options begin with two dashes, which make none of them alike.
            near = " or ".join(
                one
                for one in error.possibilities or ()
                if get_close_matches(option.lstrip("-"), [one.lstrip("-")])
            )
            sentence = f"The option {option} does not exist."
            sentence += f" Did you mean {near}?" if near else ""
        case "BadOptionUsage" if "does not take" in error.message:
            sentence = f"{option} takes no value, but is given one."
        case "BadOptionUsage":
            sentence = f"{option} needs a value, but nothing follows it."
        case "MissingParameter" if parameter is not None:
            sentence = f"{_name(parameter)} is missing{_choices(parameter)}."
        case "BadParameter" if hasattr(error.__cause__, "errors"):
            return _describe_value(parameter, error.__cause__.errors()[0])
        case _ if error.message.startswith("Got unexpected extra"):
            extra = error.message.partition("(s) (")[2].removesuffix(")")
            sentence = f"{command} takes fewer arguments: {extra!r} is one too many."
        case _:
            sentence = error.format_message().rstrip()
            sentence += "" if sentence.endswith((".", "?", "!")) else "."
    return f"{sentence} See: {command} --help"


def _describe_value(parameter: Any, problem: Any) -> str:
    """Word what is wrong with the value of an option or argument."""
    known = [str(one) for one in parameter.type_descriptor.choices or ()]
    if not known:
        from pellucid.wording.value_rules import word_fault  # Help must not wait for settings.

        return f"{_name(parameter)} {word_fault(problem)}. Change it."
    value = problem["input"]
    near = suggestion(str(value), known)
    advice = near if near.startswith("Did") else "Choose one of them."
    return f"{_name(parameter)} must be one of {', '.join(known)}, but is {value!r}. {advice}"


def _name(parameter: Any) -> str:
    """Name an option or argument as its help does."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.display_name_raw)


def _choices(parameter: Any) -> str:
    known = [str(one) for one in parameter.type_descriptor.choices or ()]
    return f": {', '.join(known[:-1])} or {known[-1]}" if known else ""
