"""Plan a course again for the steps that fit into a time limit, once the speed is known."""

from __future__ import annotations

from collections.abc import Collection

from pellucid.config import TrainingConfig
from pellucid.training.run.checkpoint import TrainingState
from pellucid.training.run.folder import ENDING_AT_MAX_STEPS
from pellucid.training.start.choices import VALIDATIONS, average_decay

SHARE_OF_VALIDATION = 0.2
"""The most of the time that validations should take."""


def plan_course(
    training: TrainingConfig,
    before: TrainingState,
    now: TrainingState,
    per_validation: float,
    chosen: Collection[str],
) -> tuple[dict[str, int | float], str]:
    """Shorten what was chosen for more steps than fit into ``training.max_minutes``.

    Args:
        training: the settings.
        before: an earlier state of the run; the speed is that since.
        now: its present state; updates end at its ``stop_at``.
        per_validation: seconds of a validation.
        chosen: the settings, ``section.name``, that were chosen and not given.

    Returns:
        The settings with their new values, and a sentence about them; nothing and an empty
        sentence if all steps fit.
    """
    passed = max(1e-6, now.seconds - before.seconds)
    left = max(0.0, (now.stop_at or 60 * (training.max_minutes or 0)) - now.seconds)
    most = int(SHARE_OF_VALIDATION * left / max(1e-9, per_validation))
    validations = max(2, min(VALIDATIONS, most))
    # The time of the last validation is reserved.
    left = max(0.0, left - (validations - 1) * per_validation)
    steps = now.step + max(1, int(left * (now.step - before.step) / passed))
    if steps >= training.max_steps:
        return {}, ""
    # Dropout's ramp stays: a text that is read a few times cannot be overfitted, and noise slows.
    wanted = {
        "warmup_steps": max(1, steps // 3),
        "validate_every": max(1, steps // validations),
        "averaging_decay": average_decay(steps),
    }
    if training.schedule in ENDING_AT_MAX_STEPS:
        wanted["max_steps"] = steps
    before_now = {name: getattr(training, name) for name in wanted}
    shorter = {name: value for name, value in wanted.items() if value < before_now[name]}
    course = {name: value for name, value in shorter.items() if f"training.{name}" in chosen}
    changes = ", ".join(f"{name} {value:g}" for name, value in course.items())
    given = ", ".join(f"training.{name}" for name in shorter if name not in course)
    return course, (
        f"About {steps:,} of {training.max_steps:,} steps fit into {training.max_minutes:g} "
        "minutes (training.max_minutes)"
        + (f"; the course is planned again for them: {changes}" if changes else "")
        + (f"; too long for that, but given: {given}." if given else ".")
    )
