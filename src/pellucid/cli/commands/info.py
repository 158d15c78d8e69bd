"""``pellucid info``: what a report of a bug needs."""

from __future__ import annotations

import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from json import dumps as to_json
from pathlib import Path
from typing import Any

from pellucid.cli.options import Json

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)[^;]*(?:; extra == '(?P<extra>\w+)')?")

# Only who works on the package itself installs these.
_OF_DEVELOPERS = ("dev", "site")


def info(json: Json = False) -> None:
    """Show versions, what was built, threads and extras, for a report of a bug."""
    record = _gather()
    if json:
        sys.stdout.write(f"{to_json(record)}\n")
        return
    for name, value in record.items():
        sys.stdout.write(f"{name:9}  {_to_text(value)}\n")


def _gather() -> dict[str, Any]:
    import pellucid.native
    from pellucid import __version__
    from pellucid.machine.hardware import default_threads, num_processors
    from pellucid.native.loading import instruction_sets

    packages: dict[str, str | None] = {}
    extras: dict[str, bool] = {}
    for line in requires("pellucid") or ():
        requirement = _REQUIREMENT.match(line)
        assert requirement is not None
        name, extra = requirement.group("name", "extra")
        if extra is None:
            packages[name] = _version_of(name)
        elif extra not in _OF_DEVELOPERS:
            extras[extra] = extras.get(extra, True) and _version_of(name) is not None
    kernels = Path(pellucid.native.__path__[0]) / "kernels"
    return {
        "pellucid": __version__,
        "folder": str(Path(pellucid.__path__[0])),
        "python": platform.python_version(),
        "system": platform.platform(),
        "threads": {"used": default_threads(), "processors": num_processors()},
        "engine": list(instruction_sets()),
        "kernels": sorted(path.stem for path in kernels.glob("*.so")),
        "packages": packages,
        "extras": extras,
    }


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _to_text(value: Any) -> str:
    """Write a value on one line."""
    if isinstance(value, list):
        return " ".join(value) or "not built"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_to_word(one)}" for name, one in value.items())
    return str(value)


def _to_word(value: Any) -> str:
    """Write what is there or not as a word, and anything else as it is."""
    # One thread is no `True`, though Python says that they are equal.
    if value is None or isinstance(value, bool):
        return "installed" if value else "missing"
    return str(value)
