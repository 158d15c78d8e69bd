"""The cross-attention of given translations, in C without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pellucid.machine.hardware import threads_in_use
from pellucid.native.engine import NativeEngine

Ids = Sequence[Sequence[int]]


def attend_in_c(
    engine: NativeEngine,
    sources: Ids,
    targets: Ids,
    start_id: int,
    given: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Compute the weights of cross-attention, with teacher forcing.

    Args:
        engine: one without an obstacle.
        sources: token ids, ``</s>`` included.
        targets: the tokens that the rows of each predict.
        start_id: the token that the decoder reads first.
        given: the encoder's vectors of all source tokens, if it need not run.

    Returns:
        For each pair ``weights_NHTS``. Row t is the one that predicts token t.

    Raises:
        InputError: an id is not in the vocabulary, or a line is too long for the model.
    """
    threads = threads_in_use()
    # One hypothesis each, because the targets are given and nothing branches.
    session = engine.open_session(sentences=len(sources), width=1)
    everyone = range(len(sources))
    session.insert(everyone, engine.encode(sources, given, threads=threads), everyone)
    config = engine.config
    found = []
    for source, target in zip(sources, targets, strict=True):
        shape = (config.num_decoder_layers, config.num_heads, len(target), len(source))
        found.append(np.zeros(shape, np.float32))
    length_B = np.array([len(target) for target in targets])
    newest_B = np.full(len(targets), start_id, np.int64)
    # Step by step as in a search: the engine has no pass over a whole target.
    for step in range(int(length_B.max(initial=0))):
        weights_BNHS = session.attend(newest_B, length_B > step, threads=threads)
        for row in np.nonzero(length_B > step)[0].tolist():
            # The table is as wide as the longest source of the session.
            found[row][:, :, step] = weights_BNHS[row, :, :, : len(sources[row])]
            newest_B[row] = targets[row][step]
    return found
