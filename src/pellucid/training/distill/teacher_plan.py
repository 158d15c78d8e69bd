"""The plan of a training with teachers: how many, in which direction, how long each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pellucid.bundle import bundle_json
from pellucid.config.parsing import read_json_text
from pellucid.config.training import LogConfig
from pellucid.errors import ConfigurationError, DataError, PellucidError
from pellucid.files import read_bytes, write_text
from pellucid.terminal.text import count_of
from pellucid.training.run.folder import MAY_CHANGE, flatten_settings

PLAN = "plan.json"
AUTO = "auto"

MOST_TEACHERS = 10
MOST_CHOSEN = 3
"""Teachers a direction that ``auto`` takes at most; Nguyen et al. 2020 gained little by more."""

SHARE_OF_TEACHERS = 0.6
"""The share of a time limit that the teachers take, with all that they translate."""

TRANSLATING = 1 / 3
"""Time to translate the training text once, next to the time in which a teacher learns. Beam search
in the engine in C needs far less; what is left over goes to the last model."""

PAIRS_A_MINUTE = 100_000
"""Pairs for each of which a teacher needs a minute at least, to prepare them and to begin."""

CHOSEN_MINUTES = 20.0
CHOSEN_PAIRS = 30_000
"""``auto`` gives a teacher so many minutes for so many pairs, and with other text in proportion to
its square root. After 20 minutes a model of Multi30k improves little; the rest is a guess."""

Direction = Literal["forward", "backward"]


@dataclass(frozen=True)
class TeacherPart:
    """One teacher.

    Attributes:
        direction: ``forward`` from source to target, ``backward`` from target to source.
        number: counted from 1 in its direction.
        learning: the minutes in which it learns; None sets no limit.
        translating: the minutes in which it translates.
    """

    direction: Direction
    number: int
    learning: float | None
    translating: float | None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.direction}-{self.number}"


@dataclass(frozen=True)
class TeacherPlan:
    """The plan of a training with teachers, as its first start decided it.

    Attributes:
        teachers: in each direction.
        minutes: the limit of everything; None sets none.
        more_target: the files of more sentences in the target language.
        text: the hash of all text.
        settings: of the recipe, ``section.name``, apart from those that may change.
        num_pairs: of training text.
        num_more: sentences of ``more_target``.
    """

    teachers: int
    minutes: float | None
    more_target: Sequence[str]
    text: str
    settings: Mapping[str, Any]
    num_pairs: int
    num_more: int = 0

    @property
    def parts(self) -> list[TeacherPart]:
        """Every teacher, in the order in which they learn."""
        directions: list[tuple[Direction, int]] = []
        for number in range(1, self.teachers + 1):
            directions += [("forward", number), ("backward", number)]
        if self.num_more and not directions:
            directions = [("backward", 1)]
        more = min(self.num_more / max(1, self.num_pairs), 3 * len(directions))
        # Without forward teachers nobody translates the training text.
        own = len(directions) if self.teachers else 0
        units = len(directions) + TRANSLATING * (own + more)
        unit = None if self.minutes is None else SHARE_OF_TEACHERS * self.minutes / max(1.0, units)
        parts = []
        for direction, number in directions:
            extra = more if (direction, number) == ("backward", 1) else 0.0
            times = TRANSLATING * (extra + (1 if self.teachers else 0))
            translating = None if unit is None else unit * times
            parts.append(TeacherPart(direction, number, unit, translating))
        return parts

    def check_time(self) -> None:
        """Refuse a limit that leaves no teacher the time to learn.

        Raises:
            ConfigurationError: it does.
        """
        least = max(1.0, self.num_pairs / PAIRS_A_MINUTE)
        parts = self.parts
        if not parts or self.minutes is None:
            return
        learning = parts[0].learning or 0.0
        if learning < least:
            enough = self.minutes * least / learning + 0.5
            fewer = ", or fewer --teachers" * (self.teachers > 1)
            raise ConfigurationError(
                f"A teacher needs at least {count_of(math.ceil(least), 'minute')} for "
                f"{self.num_pairs:,} pairs, but --minutes {self.minutes:g} leaves {learning:.1f} "
                f"to each of {len(parts)}. Give --minutes {enough:.0f} or more{fewer}."
            )


def count_teachers(asked: str | None, minutes: float | None, num_pairs: int) -> int:
    """Read ``--teachers``, or choose for the time that there is.

    Args:
        asked: a number, or ``auto``; None stands for 0.
        minutes: the limit of everything.
        num_pairs: of training text.

    Raises:
        ConfigurationError: it is neither, or ``auto`` has no limit to choose by.
    """
    if asked == AUTO:
        if minutes is None:
            raise ConfigurationError(
                "--teachers auto needs --minutes, by which the number is chosen. Give both, or a "
                "number of teachers."
            )
        each = CHOSEN_MINUTES * (num_pairs / CHOSEN_PAIRS) ** 0.5
        in_both = 2 * (1 + TRANSLATING) * max(each, num_pairs / PAIRS_A_MINUTE, 1.0)
        return min(MOST_CHOSEN, int(SHARE_OF_TEACHERS * minutes / in_both))
    number = "0" if asked is None else asked
    if not (number.isascii() and number.isdecimal() and int(number) <= MOST_TEACHERS):
        raise ConfigurationError(
            f"--teachers must be a number from 0 to {MOST_TEACHERS} or 'auto', but is {asked!r}. "
            "Change it."
        )
    return int(number)


def keep_plan(wanted: TeacherPlan, earlier: TeacherPlan | None, folder: Path) -> TeacherPlan:
    """Take the plan of an earlier start, or that of this one if no teacher began to learn.

    Args:
        wanted: the plan of this start.
        earlier: that of an earlier one.
        folder: of the teachers.

    Raises:
        ConfigurationError: the earlier plan is for something else, or a new one lacks time.
        DataError: the text was changed.
    """
    if earlier is None or not any((folder / part.name).is_dir() for part in earlier.parts):
        wanted.check_time()
        return wanted
    for what, one, other in (
        ("--teachers", earlier.teachers, wanted.teachers),
        ("--minutes", earlier.minutes, wanted.minutes),
        ("--more-target", list(earlier.more_target), list(wanted.more_target)),
    ):
        if one != other:
            raise ConfigurationError(
                f"A training with teachers keeps its plan, but {what} was "
                f"{_shown(one)} and is now {_shown(other)} ({folder / PLAN}). Give the same "
                "command, or choose another folder with -o."
            )
    keys = earlier.settings.keys() | wanted.settings.keys()
    differing = [key for key in keys if earlier.settings.get(key) != wanted.settings.get(key)]
    if differing:
        raise ConfigurationError(
            f"A training with teachers keeps its plan, but {', '.join(sorted(differing))} differs "
            f"from {folder / PLAN}. Give the same recipe, or choose another folder with -o."
        )
    if earlier.text != wanted.text:
        raise DataError(
            f"The text must be what this run started with, but was changed since ({folder}). "
            "Put it back, or choose another folder with -o."
        )
    return earlier


def kept_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the settings of a recipe that a plan keeps, ``section.name``."""
    free = MAY_CHANGE | {f"training.{name}" for name in LogConfig.model_fields}
    return {key: value for key, value in flatten_settings(values).items() if key not in free}


def read_plan(folder: Path) -> TeacherPlan | None:
    """Read the plan of an earlier start; None without one.

    Raises:
        DataError: it is damaged.
    """
    path = folder / PLAN
    if not path.exists():
        return None
    try:
        return TeacherPlan(**read_json_text(read_bytes(path)))
    except (PellucidError, ValueError, TypeError) as error:
        raise DataError(
            f"The plan {path} is damaged. Choose another folder with -o, or delete {folder} to "
            "train its teachers again."
        ) from error


def write_plan(plan: TeacherPlan, folder: Path) -> None:
    """Write a plan into the folder of the teachers."""
    write_text(folder / PLAN, bundle_json(asdict(plan)))


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return "none" if value is None else f"{value:g}"
