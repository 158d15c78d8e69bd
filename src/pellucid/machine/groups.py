"""Control groups of Linux: the limits that containers and batch systems set for a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def find_groups(controller: str, root: Path) -> Iterator[Path]:
    """List the folders of the control groups that limit this process, each before those above it.

    A container may see its own group at the top, and may not see its name in ``/proc``.

    Args:
        controller: the limited resource, such as ``memory`` or ``cpu``.
        root: the folder with ``proc`` and ``sys``.
    """
    with suppress(OSError, ValueError):
        for line in read_system_lines(root / "proc/self/cgroup"):
            # Version 1 has a line per controller, version 2 one line that names no controllers.
            _, controllers, name = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            for top, shown in _find_mounts(controller if controllers else "", root):
                group = top / name.removeprefix(shown).strip("/")
                yield from (one for one in (group, *group.parents) if one.is_relative_to(top))


def _find_mounts(controller: str, root: Path) -> Iterator[tuple[Path, str]]:
    """Find where groups are mounted, each with the name of the group at its top.

    Args:
        controller: that of version 1; empty for version 2.
        root: the folder with ``proc`` and ``sys``.
    """
    # The usual place, also for systems that do not list their mounts.
    yield root / "sys/fs/cgroup" / controller, "/"
    with suppress(OSError, ValueError):
        for line in read_system_lines(root / "proc/self/mountinfo"):
            place, _, what = line.partition(" - ")
            kind, _, options = what.split(maxsplit=2)
            is_version_1 = kind == "cgroup" and controller in options.split(",")
            if is_version_1 or (kind == "cgroup2" and not controller):
                shown, top = place.split()[3:5]
                yield root / top.lstrip("/"), shown


def find_quota(root: Path) -> int | None:
    """Return the processors whose time the control groups allow, rounded up; None for no limit."""
    # A group above may allow less than the one inside it.
    return min(filter(None, map(_quota_of, find_groups("cpu", root))), default=None)


def _quota_of(group: Path) -> int | None:
    # Version 2 has quota and period in one file, version 1 a file for each.
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        with suppress(OSError, ValueError):  # "max" and -1 mean unlimited.
            quota, period = map(int, " ".join((group / name).read_text() for name in names).split())
            if quota > 0 and period > 0:
                return -(-quota // period)
    return None


def read_system_lines(path: Path) -> list[str]:
    """Read the lines of a file of the system.

    Raises:
        OSError: it cannot be read.
    """
    return path.read_text().splitlines()
