"""``pellucid completion``: a script for the shell, made from the table of options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Literal

import typer

from pellucid.cli.commands.attend import NAMES as EXAMPLES
from pellucid.cli.commands.recipe import known_keys
from pellucid.cli.options import PACKAGED
from pellucid.cli.overview import COMMANDS, NAMES, SUBCOMMANDS

_BASH = """\
_pellucid() {
  local command="" words="" word
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$command $word" in
      *" -"*) ;;
      @GROUPS@) command="$command $word" ;;
      " "*) command="$word" ;;
    esac
  done
  case "$command" in
@COMMANDS@
  esac
  case "$command $previous" in
@VALUES@
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -o bashdefault -F _pellucid pellucid
"""
_ZSH = """\
#compdef pellucid
autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
"""


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")
    ],
) -> None:
    """Write a script that completes commands, options and known values.

    Put it where your shell looks for it, and open a new one: for bash
    ~/.local/share/bash-completion/completions/pellucid, for fish
    ~/.config/fish/completions/pellucid.fish. For zsh, append it to ~/.zshrc.
    """
    scripts = {"bash": _write_bash, "zsh": lambda: _ZSH + _write_bash(), "fish": _write_fish}
    sys.stdout.write(scripts[shell]())


def _commands() -> Iterator[tuple[str, Any]]:
    """Yield the name of every command, and the command."""
    from pellucid.cli.app import load_command

    for name in NAMES:
        yield name, load_command(name)


def _options(command: Any) -> Iterator[Any]:
    with typer.Context(command) as context:
        yield from (one for one in command.get_params(context) if one.param_type_name == "option")


def _lessons() -> Iterable[str]:
    from pellucid.lessons.walks.walk import NAMES

    return NAMES


def _claims() -> Iterable[str]:
    from pellucid.lessons.why.known_claims import CLAIMS

    return CLAIMS


def _parts() -> Iterable[str]:
    from pellucid.corpora import DEFAULT_COUNTS

    return DEFAULT_COUNTS


def _formats() -> Iterable[str]:
    from pellucid.cli.lines.streams import LINES
    from pellucid.documents.formats import FORMATS

    return (*LINES, *FORMATS)


def _recipes() -> Iterable[str]:
    from pellucid.training.start.found_recipe import shipped_recipes

    return shipped_recipes()


# By what the help calls a value; RECIPE|TABLE has two names.
_KNOWN: dict[str, Callable[[], Iterable[str]]] = {
    "MODEL": lambda: PACKAGED,
    "COMMAND": lambda: COMMANDS,
    "EXAMPLE": lambda: EXAMPLES,
    "LESSON": _lessons,
    "CLAIM": _claims,
    "PART": _parts,
    "FORMAT": _formats,
    "RECIPE": _recipes,
    "SECTION.KEY": known_keys,
}
# These heads' layers are in every Transformer; how many more a model has, only the model knows.
_HEADS = ("encoder.0.self", "decoder.0.self", "decoder.0.cross")


def _values(parameter: Any) -> list[str]:
    """List the values that are known for an option or argument."""
    metavar = parameter.metavar or ""
    known = [str(one) for one in parameter.type_descriptor.choices or ()]
    for name in metavar.split("|"):
        known += _KNOWN[name]() if name in _KNOWN else ()
    # --host and --ray take other addresses.
    if metavar == "ADDRESS" and "head" in parameter.name:
        known += _HEADS
    return known


def _words(command: Any) -> list[str]:
    """List what may follow a command: what its arguments may be, and its options."""
    words = []
    for one in command.params:
        if one.param_type_name == "argument":
            words += _values(one)
    for option in _options(command):
        words += [*option.opts, *option.secondary_opts]
    return words


def _write_bash() -> str:
    commands = dict(_commands())
    lines = [f'    "") words="{" ".join(COMMANDS)} -V --version -q --quiet -h --help" ;;']
    values = []
    for name, command in commands.items():
        lines.append(f'    "{name}") words="{" ".join(_words(command))}" ;;')
        for option in _options(command):
            if option.is_flag:
                continue
            # Without known values, names of files are completed.
            places = "|".join(f'"{name} {one}"' for one in option.opts)
            values.append(f'    {places}) words="{" ".join(_values(option))}" ;;')
    for name, table in SUBCOMMANDS.items():
        lines.append(f'    "{name}") words="{" ".join(table)}" ;;')
    groups = "|".join(f'"{name}"' for name in commands if " " in name)
    script = _BASH.replace("@GROUPS@", groups).replace("@COMMANDS@", "\n".join(lines))
    return script.replace("@VALUES@", "\n".join(values))


def _write_fish() -> str:
    lines = [
        f"complete -c pellucid -n __fish_use_subcommand -f -a {name} -d {_quote(line)}"
        for name, line in COMMANDS.items()
    ]
    for group, table in SUBCOMMANDS.items():
        for name, line in table.items():
            seen = f"__fish_seen_subcommand_from {group}"
            lines.append(f"complete -c pellucid -n '{seen}' -f -a {name} -d {_quote(line)}")
    for name, command in _commands():
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in name.split())
        for option in _options(command):
            names = " ".join(
                f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}"
                for one in (*option.opts, *option.secondary_opts)
            )
            value = "" if option.is_flag else " -r"
            if known := _values(option):
                value = f" -x -a '{' '.join(known)}'"
            lines.append(
                f"complete -c pellucid -n '{seen}' {names}{value} -d {_quote(option.help)}"
            )
        for one in command.params:
            if one.param_type_name == "argument" and (known := _values(one)):
                lines.append(f"complete -c pellucid -n '{seen}' -a '{' '.join(known)}'")
    return "\n".join(lines) + "\n"


def _quote(text: str | None) -> str:
    """Quote the first sentence of a help text for fish."""
    sentence = (text or "").partition("\n\n")[0].replace("\n", " ").partition(". ")[0]
    return "'" + sentence.replace("\\", "\\\\").replace("'", "\\'") + "'"
