"""Log-probabilities of given tokens from the engine in C, without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pellucid.machine.hardware import threads_in_use
from pellucid.native import NativeEngine


def score_in_c(
    engines: Sequence[NativeEngine],
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    start_id: int,
) -> list[tuple[float, ...]]:
    """Compute the log-probability of each target token, given the source and earlier tokens.

    Args:
        engines: one for each model, without an obstacle; their softmaxes are averaged.
        sources: token ids, ``</s>`` included.
        targets: one for each source, ``</s>`` included.
        start_id: the token that the decoder reads first.

    Returns:
        Natural logs for each target. If the logits of a position are not finite, its log is not a
        number.

    Raises:
        InputError: an id is not in the vocabulary, or a line is too long for the model.
    """
    each_NBT = np.stack([_score(engine, sources, targets, start_id) for engine in engines])
    with np.errstate(invalid="ignore"):
        logs_BT = np.logaddexp.reduce(each_NBT) - np.log(len(engines))
    return [
        tuple(logs_T[: len(target)].tolist())
        for logs_T, target in zip(logs_BT, targets, strict=True)
    ]


def _score(
    engine: NativeEngine,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    start_id: int,
) -> np.ndarray:
    threads = threads_in_use()
    session = engine.open_session(sentences=len(sources), width=1)
    everyone = range(len(sources))
    session.insert(everyone, engine.encode(sources, threads=threads), everyone)
    length_B = np.array([len(target) for target in targets])
    newest_B = np.full(len(targets), start_id, np.int64)
    logs_BT = np.zeros((len(targets), int(length_B.max())))
    for step in range(logs_BT.shape[1]):
        logits_BV = session.step(newest_B, length_B > step, threads=threads)
        (rows_R,) = np.nonzero(length_B > step)
        chosen_R = np.array([target[step] for target in targets if len(target) > step])
        logs_BT[rows_R, step] = _logs(logits_BV[rows_R], chosen_R)
        newest_B[rows_R] = chosen_R
    return logs_BT


def _logs(logits_RV: np.ndarray, chosen_R: np.ndarray) -> np.ndarray:
    """Compute the logs of the softmax at one token of each row."""
    exact_RV = logits_RV.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        largest_R = exact_RV.max(axis=1)
        total_R = np.exp(exact_RV - largest_R[:, None]).sum(axis=1)
        logs_R: np.ndarray = (
            exact_RV[np.arange(len(chosen_R)), chosen_R] - largest_R - np.log(total_R)
        )
    return logs_R
