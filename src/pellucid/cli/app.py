"""The commands in Typer. Only the command that is asked for is loaded."""

from __future__ import annotations

import inspect
import signal
import sys
from collections import Counter
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from pellucid.cli.ending import OnlyErrors
from pellucid.cli.overview import COMMANDS, HELP_OPTIONS, OPTIONS, SUMMARY
from pellucid.errors import InputError, suggestion
from pellucid.files import expand_home


def dispatch(arguments: list[str]) -> int:
    """Run the command that the arguments name.

    Raises:
        InputError: the command does not exist (with the nearest name).
    """
    name = next((argument for argument in arguments if not argument.startswith("-")), None)
    if name is not None and name not in COMMANDS:
        raise InputError(f"The command {name!r} does not exist. {suggestion(name, COMMANDS)}")
    code = build_app(name)(arguments, prog_name="pellucid", standalone_mode=False)
    if code == 128 + signal.SIGINT:  # Typer turns Ctrl-C into this code and prints nothing.
        raise KeyboardInterrupt
    return int(code or 0)


def build_app(name: str | None) -> typer.Typer:
    """Make the application, with one command loaded and the others registered by name only.

    Args:
        name: the command to load; None loads none, which is enough to list them.
    """
    app = typer.Typer(
        help=SUMMARY,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": list(HELP_OPTIONS)},
    )
    app.callback()(_options)
    for known, line in COMMANDS.items():
        function: Callable[..., int | None] = _not_loaded
        if known == name:
            function = _with_quiet(getattr(import_module(f"pellucid.cli.commands.{known}"), known))
        app.command(known, cls=_Command, short_help=line)(function)
    return app


class _Command(TyperCommand):
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
        # The shell expands no ~ in --out=~/x, or in quotes.
        for parameter in self.params:
            if parameter.name in ctx.params and parameter.metavar in _NAMES_FILES:
                ctx.params[parameter.name] = expand_home(ctx.params[parameter.name])
        return rest


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
        return function(**given)

    signature = inspect.signature(function, eval_str=True)
    quiet = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False)
    parameters = [*signature.parameters.values(), quiet.replace(annotation=Quiet)]
    # Typer reads a command's options from here.
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from pellucid import __version__

        typer.echo(f"pellucid {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "-V",
            "--version",
            callback=_show_version,
            is_eager=True,
            help=OPTIONS["-V, --version"],
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    pass


def _not_loaded() -> NoReturn:
    raise AssertionError("Only the command that was asked for is ever called.")
