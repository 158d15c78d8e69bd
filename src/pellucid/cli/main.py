"""The door of the command line: find the command, run it, end with the right exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, NoReturn

from pellucid.cli.ending import end_output, prepare_output, report
from pellucid.errors import InputError, suggestion

if TYPE_CHECKING:
    import typer

__all__ = ["COMMANDS", "main", "run"]

COMMANDS = {
    "train": "Train a model as a recipe says; the same command again resumes.",
    "translate": "Translate lines of text, keeping their order.",
    "evaluate": "Score translations against a reference: BLEU, chrF and TER.",
    "inspect": "Show what a model is: sizes, parameters, data, training, hashes.",
    "score": "Say how likely a model finds given translations.",
}
"""Name to one line of help. The function of that name is in the module of that name here."""

ABOUT = "Train, run and look inside encoder-decoder Transformers."


def main() -> NoReturn:
    """Run the command that the process was started with, and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command.

    Args:
        arguments: what follows the word ``pellucid``.

    Returns:
        The exit code: 0 fine, 1 the world failed, 2 the input must change, 130 Ctrl-C, 143
        SIGTERM. Whatever went wrong has been said in one sentence on standard error.
    """
    try:
        signal.signal(signal.SIGTERM, _terminate)
        prepare_output()
        code = _dispatch(list(arguments) or ["--help"])
    except BaseException as error:
        code = report(error)
    return end_output(code)


def _terminate(_number: int, _frame: object) -> NoReturn:
    # An exception rather than the default sudden end, so that half-written files are removed.
    raise SystemExit(128 + signal.SIGTERM)


def _dispatch(arguments: list[str]) -> int:
    name = next((argument for argument in arguments if not argument.startswith("-")), None)
    if name is not None and name not in COMMANDS:
        raise InputError(
            f"The command must be one of pellucid's, but is {name!r}. {suggestion(name, COMMANDS)}"
        )
    code = _build_app(name)(arguments, prog_name="pellucid", standalone_mode=False)
    if code == 128 + signal.SIGINT:  # Typer turns Ctrl-C into this code and says nothing.
        raise KeyboardInterrupt
    return int(code or 0)


def _build_app(name: str | None) -> typer.Typer:
    """Make the application, with the asked command loaded and the others by name only."""
    import typer

    app = typer.Typer(
        help=ABOUT,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def show_version(is_wanted: bool) -> None:
        if is_wanted:
            from pellucid import __version__

            print(f"pellucid {__version__}")
            raise typer.Exit

    @app.callback()
    def options(
        version: Annotated[
            bool,
            typer.Option(
                "--version", callback=show_version, is_eager=True, help="Show the version and exit."
            ),
        ] = False,
    ) -> None:
        pass

    for known, line in COMMANDS.items():
        if known == name:
            function = getattr(import_module(f"pellucid.cli.{known}"), known)
            app.command(known, short_help=line)(function)
        else:
            app.command(known, short_help=line)(_not_loaded)
    return app


def _not_loaded() -> NoReturn:
    raise AssertionError("Only the command that was asked for is ever called.")
