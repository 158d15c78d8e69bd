"""The probability that models give to a given translation: in C without PyTorch, or on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pellucid.machine.hardware import threads_in_use
from pellucid.native.engine import NativeEngine

if TYPE_CHECKING:
    from torch import Tensor

    from pellucid.model import EncoderDecoder

Ids = Sequence[Sequence[int]]


def mean_logs(each_NBT: Sequence[np.ndarray], targets: Ids) -> list[tuple[float, ...]]:
    """Give the log of the mean of the models' probabilities, for each token of each target.

    Args:
        each_NBT: what each model gives, by a function below.
        targets: padded in the columns of ``each_NBT``.
    """
    # A log that is not a number stays one, and says that logits were not finite.
    with np.errstate(invalid="ignore"):
        logs_BT = np.logaddexp.reduce(np.stack(each_NBT)) - np.log(len(each_NBT))
    return [
        tuple(logs_T[: len(ids)].tolist()) for logs_T, ids in zip(logs_BT, targets, strict=True)
    ]


def score_in_c(
    engine: NativeEngine,
    sources: Ids,
    targets: Ids,
    start_id: int,
    given: np.ndarray | None = None,
) -> np.ndarray:
    """Compute the log-probability of each target token, given the source and earlier tokens.

    Args:
        engine: one without an obstacle.
        sources: token ids, ``</s>`` included.
        targets: one for each source, ``</s>`` included.
        start_id: the token that the decoder reads first.
        given: the encoder's vectors of all source tokens, if it need not run.

    Returns:
        ``logs_BT``, natural logs; not a number if the logits of a position are not finite. Columns
        of padding mean nothing.

    Raises:
        InputError: an id is not in the vocabulary, or a line is too long for the model.
    """
    threads = threads_in_use()
    session = engine.open_session(sentences=len(sources), width=1)
    everyone = range(len(sources))
    session.insert(everyone, engine.encode(sources, given, threads=threads), everyone)
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


def score_on_pytorch(
    model: EncoderDecoder, sources: Ids, targets: Ids, start_id: int
) -> np.ndarray:
    """Do the same with a model."""
    # Imported here, so that scoring in C does not load PyTorch.
    from pellucid.data import make_source_batch

    # Padding is never attended to; any id that exists will do.
    source_BS, source_mask_BS = make_source_batch(sources, pad_id=0)
    target_out_BT, target_mask_BT = make_source_batch(targets, pad_id=0)
    # The decoder reads the target shifted right by one, from the start token.
    target_in_BT = target_out_BT.roll(1, dims=1)
    target_in_BT[:, 0] = start_id
    batch = (source_BS, source_mask_BS, target_in_BT, target_out_BT, target_mask_BT)
    device = model.output_weight.device
    logs_BT: np.ndarray = score_tokens(model, *(one.to(device) for one in batch)).numpy(force=True)
    return logs_BT


def score_tokens(
    model: EncoderDecoder,
    source_BS: Tensor,
    source_mask_BS: Tensor,
    target_in_BT: Tensor,
    target_out_BT: Tensor,
    target_mask_BT: Tensor | None = None,
) -> Tensor:
    """Compute the log-probability of each target token, given the source and earlier tokens.

    Args:
        model: the model.
        source_BS: token ids.
        source_mask_BS: True for tokens, False for padding.
        target_in_BT: the decoder's input, from the start token on.
        target_out_BT: its desired output: the same shifted by one, ending in ``</s>``.
        target_mask_BT: True for tokens, False for padding; only needed for a model without a
            look-ahead mask, which would see the padding.

    Returns:
        ``log_probabilities_BT``, natural logs; columns of padding mean nothing. If the logits of a
        position are not finite, it is not a number.
    """
    import torch

    with torch.inference_mode():
        memory_BSD = model.encode(source_BS, source_mask_BS)
        own_mask = None if model.config.look_ahead_mask else target_mask_BT
        states_BTD = model.decode(target_in_BT, memory_BSD, source_mask_BS, target_mask_BT=own_mask)
        # Row by row, so that memory holds the logits of one sentence and not of the batch.
        rows = []
        for states_TD, target_T in zip(states_BTD, target_out_BT, strict=True):
            logits_1TV = model.logits(states_TD[None])
            true_1T = logits_1TV.gather(2, target_T[None, :, None])[:, :, 0]
            normalizer_1T = logits_1TV.logsumexp(dim=-1)
            log_1T = true_1T - normalizer_1T
            # Less an infinite normalizer, any finite logit would look like an impossible token.
            rows.append(log_1T.masked_fill_(~normalizer_1T.isfinite(), torch.nan))
        return torch.cat(rows)
