"""The time limit of a training, with everything that comes before and after its updates inside."""

from __future__ import annotations

from pellucid.config import TrainingConfig
from pellucid.errors import ConfigurationError
from pellucid.machine.limits import seconds_to_write
from pellucid.training.run.checkpoint import TrainingState

SHARE_OF_LAST = 0.3
"""The most of the time left that the validation after the last update should take; otherwise it
reads a part of the text."""

FEWEST_PAIRS = 20
TIMED_PAIRS = 16
"""Validation pairs whose time is measured before there was a validation."""

STEPS_BEFORE_PLAN = 10
"""Updates whose speed is measured before the course is planned for a time limit."""

SHARE_BEFORE_PLAN = 0.1
"""The most of the limit that these may take."""


class TimeLimit:
    """Decides when updates end, so that what comes after them fits into ``max_minutes`` too.

    Args:
        training: the settings.
        state: of the run; its ``stop_at`` is when updates end.
        spent: seconds that this command has taken already and that count.

    Raises:
        ConfigurationError: nothing of the limit is left.
    """

    def __init__(self, training: TrainingConfig, state: TrainingState, spent: float) -> None:
        self._state = state
        minutes = training.max_minutes or 0.0
        limit = 60 * minutes
        self._seconds = limit - spent - seconds_to_write(limit)
        self._first_step = state.step
        self._first_seconds = state.seconds
        self._may_plan = minutes > 0 and state.step < STEPS_BEFORE_PLAN
        is_over = 0 < state.stop_at <= state.seconds and state.stop_minutes == minutes
        if not minutes or is_over:
            return
        if self._seconds <= 0:
            raise ConfigurationError(
                f"The limit must leave time to train, but preparing the text took {spent / 60:.1f} "
                f"of {minutes:g} minutes (--minutes). Give more minutes; less text "
                "helps only if it has more than some 100,000 pairs."
            )
        state.stop_minutes = minutes
        self._reserve(min(state.reserved, SHARE_OF_LAST * self._seconds))

    def must_plan(self) -> bool:
        """Tell, once, whether the speed is known and the course is to be planned for the limit."""
        state = self._state
        passed = state.seconds - self._first_seconds
        is_due = state.step >= self._first_step + STEPS_BEFORE_PLAN or (
            passed >= SHARE_BEFORE_PLAN * (self._seconds - self._first_seconds)
        )
        is_planned = self._may_plan and not state.course and is_due
        self._may_plan = self._may_plan and not is_planned
        return is_planned

    def plan_validation(self, seconds_a_pair: float, num_pairs: int) -> float:
        """Choose how many pairs validation reads.

        Args:
            seconds_a_pair: measured with a model that may write too much.
            num_pairs: all pairs.

        Returns:
            Seconds of a validation, at most.
        """
        left = SHARE_OF_LAST * max(0.0, self._seconds - self._state.seconds)
        fitting = int(left / max(1e-9, seconds_a_pair))
        chosen = min(num_pairs, max(FEWEST_PAIRS, fitting))
        self._state.validation_pairs = chosen if chosen < num_pairs else 0
        self._reserve(chosen * seconds_a_pair)
        return chosen * seconds_a_pair

    def note_validation(self, seconds: float) -> None:
        """Reserve time for the last validation: as long as one took."""
        if self._state.stop_at > self._state.seconds:
            self._reserve(seconds)

    def _reserve(self, seconds: float) -> None:
        self._state.reserved = seconds
        # 0 would mean that updates have no limit.
        self._state.stop_at = max(1e-6, self._seconds - seconds)
