"""Count what people type: options of all commands, names with two meanings, ways to name an output.

    .venv/bin/python benchmarks/surface.py [--list]

The table goes to standard output. ``--list`` adds each name with the help of each command that has
it, for a reader to judge: only help texts can be compared here, so that a name counts as having two
meanings if its help begins with other words.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pellucid.cli.app import load_command
from pellucid.cli.overview import NAMES

# Every command has them, so they are left out of all counts.
EVERYWHERE = ("--help", "--quiet")

OUTPUTS = ("--output", "--out", "--html", "--svg", "--png", "--pdf", "--npz")


def options_of_commands() -> Iterator[tuple[str, str, str, bool]]:
    """Yield command, option, help and whether the option is a flag, for every option."""
    for name in NAMES:
        for parameter in load_command(name).params:
            if parameter.param_type_name == "option":
                option = max(parameter.opts, key=len)
                # Hidden ones are for tests: nobody types them.
                if option not in EVERYWHERE and not getattr(parameter, "hidden", False):
                    yield name, option, getattr(parameter, "help", ""), is_flag(parameter)


def is_flag(parameter: Any) -> bool:
    """Tell whether an option takes no value."""
    return bool(parameter.is_flag)


def main() -> None:
    """Count, and write the table."""
    found = list(options_of_commands())
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    kinds: dict[str, set[bool]] = defaultdict(set)
    for command, option, text, takes_value in found:
        texts[option][command] = " ".join(text.split())
        kinds[option].add(takes_value)
    per_command: dict[str, int] = defaultdict(int)
    for command, *_ in found:
        per_command[command] += 1
    differing = [name for name, helps in texts.items() if len(set(helps.values())) > 1]
    print(f"commands {len(NAMES)}")
    print(f"options {len(found)}")
    print(f"names {len(texts)}")
    mixed = [name for name, found in kinds.items() if len(found) > 1]
    print(f"names that are a flag here and take a value there {len(mixed)}")
    print(f"names whose help differs between commands {len(differing)}")
    for output in OUTPUTS:
        if commands := sorted(texts.get(output, ())):
            print(f"{output} {len(commands)}: {', '.join(commands)}")
    print(" ".join(f"{name}:{count}" for name, count in per_command.items()))
    if "--list" in sys.argv:
        for name in sorted(differing):
            print(name)
            for command, text in texts[name].items():
                print(f"    {command}: {text}")


if __name__ == "__main__":
    main()
