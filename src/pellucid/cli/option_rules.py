"""Options that need each other or cannot be combined: tables that every command checks alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pellucid.cli.options import flag
from pellucid.errors import InputError, not_together


@dataclass(frozen=True)
class Needs:
    """Options that say nothing without another one.

    Attributes:
        options: their names, separated by spaces.
        needed: the name of the other, or of several of which one is enough.
        why: the reason, which continues the sentence "A needs B,".
    """

    options: str
    needed: str
    why: str = ""

    def check(self, given: Sequence[str]) -> None:
        """Refuse the first option that is given without the needed one."""
        needed = self.needed.split()
        if not set(needed).isdisjoint(given):
            return
        for name in given:
            if name in self.options.split():
                others = " or ".join(map(flag, needed))
                reason = f", {self.why}" if self.why else ""
                advice = f"Add it, or leave {flag(name)} out."
                raise InputError(f"{flag(name)} needs {others}{reason}. {advice}")


@dataclass(frozen=True)
class Apart:
    """Options that contradict others.

    Attributes:
        options: their names, separated by spaces.
        others: those of the others.
        why: the reason, as a main clause; none if it is plain.
    """

    options: str
    others: str
    why: str = ""

    def check(self, given: Sequence[str]) -> None:
        """Refuse the first option that is given together with one of the others."""
        ours = [name for name in given if name in self.options.split()]
        theirs = [name for name in given if name in self.others.split() and name not in ours]
        if ours and theirs:
            raise not_together(flag(ours[0]), flag(theirs[0]), self.why)


def check_rules(rules: Iterable[Needs | Apart], options: Mapping[str, object]) -> None:
    """Refuse options that contradict or lack each other.

    Args:
        rules: checked in their order; the first that is broken is reported.
        options: the value of each by its name. None, False and an empty list mean that it was not
            given.

    Raises:
        InputError: a rule is broken.
    """
    given = [name for name, value in options.items() if _is_given(value)]
    for rule in rules:
        rule.check(given)


def _is_given(value: object) -> bool:
    # 0 is given, as in --row 0, so that the truth of a value says too little.
    return value is not None and value is not False and value not in ([], ())
