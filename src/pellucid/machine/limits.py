"""The part of a time limit that is kept for writing."""

from __future__ import annotations

_SECONDS_TO_WRITE = 5.0
_SHARE_TO_WRITE = 0.05


def seconds_to_write(limit: float) -> float:
    """Return how many seconds of a limit are kept for what is written last.

    A checkpoint and a report, or the last pieces on a slow disk, get five seconds, but never more
    than a twentieth of the limit.
    """
    return min(_SECONDS_TO_WRITE, _SHARE_TO_WRITE * limit)
