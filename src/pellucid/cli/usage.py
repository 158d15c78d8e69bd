"""Mistakes on the command line, worded as every other message of this package."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pellucid.errors import InputError, suggestion

# What people type that is no command, and what they look for.
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
