"""The keys whose texts are translated: ``--keys`` and ``--skip-keys``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cached_property
from typing import Any

from pellucid.cli.ending import warn
from pellucid.errors import InputError

KEYED = ("json", "yaml", "properties")
"""Formats in which each text has a key."""


@dataclass(frozen=True)
class ChosenKeys:
    """Patterns of keys, and which of them a document has.

    A pattern without a dot is that of any part of a key; with one it is that of the whole key or
    of its beginning. Of both options the second one counts.

    Attributes:
        keys: the patterns of texts to translate; without any, all texts.
        skipped: those of texts to leave.
        used: the patterns that some key has.
    """

    keys: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    used: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, options: Mapping[str, Any], form: str) -> ChosenKeys:
        """Take the patterns from a command's options.

        Args:
            options: the options.
            form: the format of the document.
        """
        found = cls(tuple(options["keys"] or ()), tuple(options["skip_keys"] or ()))
        for name, given in (("--keys", found.keys), ("--skip-keys", found.skipped)):
            if given and form not in KEYED:
                warn(f"{name} has no effect on {form}; it is for {', '.join(KEYED)}.")
        return found if form in KEYED else cls()

    def has(self, key: str) -> bool:
        """Tell whether a key's text is translated."""
        # Both are looked at, so that each pattern that some key has is known.
        is_chosen = self._has_any(self.keys, key) or not self.keys
        return not self._has_any(self.skipped, key) and is_chosen

    def check(self, path: str) -> None:
        """Refuse a pattern that no key of the document has, after all were asked about.

        Raises:
            InputError: there is one.
        """
        for pattern in (*self.keys, *self.skipped):
            if pattern not in self.used:
                name = "--keys" if pattern in self.keys else "--skip-keys"
                raise InputError(
                    f"{name} must be a pattern of keys of {path}, but none matches {pattern!r}. "
                    "A key is the path to a text, such as menu.file; * stands for anything."
                )

    def _has_any(self, patterns: Sequence[str], key: str) -> bool:
        names = key.split(".")
        found = [one for one in patterns if self._fits(one, key, names)]
        self.used.update(found)
        return bool(found)

    def _fits(self, pattern: str, key: str, names: Sequence[str]) -> bool:
        compiled = self._compiled[pattern]
        if "." not in pattern:
            return any(map(compiled.match, names))
        wanted = pattern.count(".") + 1
        return bool(compiled.match(key) or compiled.match(".".join(names[:wanted])))

    @cached_property
    def _compiled(self) -> dict[str, re.Pattern[str]]:
        return {one: re.compile(translate(one)) for one in (*self.keys, *self.skipped)}
