"""Fewer threads as long as fewer are faster, because other programs use the processor too."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import torch

from pellucid.terminal.text import count_of

USUAL_UPDATES = 8
"""Latest updates whose speed a trial is compared with."""

TRIAL_UPDATES = 3
"""Updates of a trial; the first only starts the threads and is not counted."""

LEAST_GAIN = 1.05
"""Speed of trials, relative to the usual one, from which their number of threads is kept."""

TRIALS_TO_CHANGE = 3
"""Trials in a row that must be faster before the number of threads changes.

A burst of another program's work is over by then. It slows two threads, which wait for each other,
much more than one, so that two would be given up for what lasts a second.
"""

HOPELESS = 0.5
"""Speed of an update, relative to the usual one, at which a trial ends early."""

MOST_SAID = 3
"""Changes of the number of threads that stand in the log."""

REPEATED_PAUSE = 2
"""Time until a trial that was faster is repeated, relative to the time of a trial."""

# After a change the shortest pause, because the machine's load is changing; then three times as
# long each time.
SHORTEST_PAUSE = 5
LONGEST_PAUSE = 50
"""Time between trials that were not faster, relative to the time of a trial."""

MOST_COUNTED = 1.5
"""Time of a trial that a pause is measured by, relative to the usual one of as many tokens.

A trial of two threads that meets a burst of other work can take ten times as long. Fifty times that
would be minutes in which nothing is tried, although the burst is over.
"""


class ThreadTrials:
    """Tries half and twice the threads now and then, and keeps what is faster again and again.

    Two threads that share every product wait for each other. If another program holds one core,
    both run at the pace of the thread that is held up, and one thread is faster. A trial in 50
    costs less than a hundredth of the time. Only for updates whose numbers do not depend on
    the number of threads, as those of our own kernels.

    Args:
        most: the highest number of threads; with 1 nothing is tried.
        use: sets the number of threads.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        most: int,
        *,
        use: Callable[[int], None] = torch.set_num_threads,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = self.threads = most
        self._use = use
        self._clock = clock
        self._usual: deque[tuple[int, float]] = deque(maxlen=USUAL_UPDATES)
        self._trial: list[tuple[int, float]] = []
        self._num_faster = 0
        self._tried = most
        self._is_settling = False
        self._num_trials = self._num_changes = 0
        self._pause = SHORTEST_PAUSE
        self._next_trial = clock()

    def count(self, num_tokens: int, seconds: float) -> str | None:
        """Count an update, and set the threads of the next.

        Args:
            num_tokens: the target tokens of its batches.
            seconds: the time that it took.

        Returns:
            A sentence for the log at the first changes of the number of threads; later ones, on a
            machine whose load goes up and down, are not said.
        """
        if self._tried == self.threads:
            if self._is_settling:  # The first update after a trial starts the threads again.
                self._is_settling = False
                return None
            self._usual.append((num_tokens, seconds))
            if len(self._usual) == USUAL_UPDATES and self._clock() >= self._next_trial:
                others = [n for n in (self.threads // 2, 2 * self.threads) if 1 <= n <= self._most]
                if others:
                    self._tried = others[self._num_trials % len(others)]
                    self._use(self._tried)
            return None
        self._trial.append((num_tokens, seconds))
        is_hopeless = _speed(self._trial[1:]) < HOPELESS * _speed(self._usual)
        if len(self._trial) < TRIAL_UPDATES and not (is_hopeless and self._trial[1:]):
            return None
        return self._end_trial()

    def close(self) -> None:
        """Use all threads again, for what the process does after training."""
        if self.threads != self._most or self._tried != self._most:
            self._use(self._most)

    def _end_trial(self) -> str | None:
        trial = self._trial
        self._trial = []
        usual_speed = _speed(self._usual)
        seconds_of_trial = min(
            sum(seconds for _, seconds in trial),
            MOST_COUNTED * sum(tokens for tokens, _ in trial) / usual_speed,
        )
        if _speed(trial[1:]) > LEAST_GAIN * usual_speed:
            self._num_faster += 1
            pause = REPEATED_PAUSE
        else:
            self._num_faster = 0
            self._num_trials += 1  # Next time the other number, if there are two.
            self._pause = min(LONGEST_PAUSE, 3 * self._pause)
            pause = self._pause
        said = None
        if self._num_faster == TRIALS_TO_CHANGE:
            said = self._change()
        else:
            self._tried = self.threads
            self._use(self.threads)
            self._is_settling = True
        self._next_trial = self._clock() + pause * seconds_of_trial
        return said

    def _change(self) -> str | None:
        """Keep the number of threads that was tried; return the sentence for the log."""
        before = self.threads
        self.threads = self._tried
        self._pause = SHORTEST_PAUSE
        self._num_faster = 0
        self._usual.clear()
        self._num_changes += 1
        if self._num_changes > MOST_SAID:
            return None
        why = ", as other programs use the processor." if self.threads < before else "."
        return (
            f"Updates are faster with {count_of(self.threads, 'thread')} than with "
            f"{count_of(before, 'thread')} now{why}"
        )


def _speed(updates: list[tuple[int, float]] | deque[tuple[int, float]]) -> float:
    """Return the tokens per second of some updates."""
    return sum(tokens for tokens, _ in updates) / max(1e-9, sum(time for _, time in updates))
