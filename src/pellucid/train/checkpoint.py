"""Checkpoints: a bundle folder plus the optimizer's state and a step number.

Order, dropout and initialization are pure functions of (seed, step), so nothing else is needed
to go on bit for bit. No pickle is read or written.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from pellucid.bundle import load_bundle, read_json, save_bundle, serialize_tensors, to_json
from pellucid.config import BundleConfig
from pellucid.errors import BundleError
from pellucid.text import Tokenizer

__all__ = [
    "TrainingState",
    "load_newest_checkpoint",
    "optimizer_tensors",
    "restore_optimizer",
    "save_checkpoint",
]

OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"


@dataclass
class TrainingState:
    """How far training is.

    Attributes:
        step: updates made.
        seconds: training time so far, over all resumptions.
        target_tokens: target tokens seen so far, without padding.
        best_bleu: the best validation BLEU; below 0 before the first.
        best_step: where it was.
        validations_without_better: how many in a row were no better.
    """

    step: int = 0
    seconds: float = 0.0
    target_tokens: int = 0
    best_bleu: float = -1.0
    best_step: int = 0
    validations_without_better: int = 0


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's moments by ``STATE.WEIGHT``, such as ``exp_avg.embedding.weight``."""
    return {
        f"{key}.{name}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state[parameter].items()
        if isinstance(value, Tensor)
    }


def restore_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]
) -> None:
    """Put the moments back that `optimizer_tensors` took.

    Raises:
        BundleError: they belong to another model.
    """
    for name, parameter in model.named_parameters():
        moments = {key: tensors.get(f"{key}.{name}") for key in ("step", "exp_avg", "exp_avg_sq")}
        shapes = {key: None if t is None else t.shape for key, t in moments.items()}
        expected = {"step": torch.Size(), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}
        if shapes != expected:
            raise BundleError(
                f"The optimizer's state must fit the model, but that of {name} does not "
                f"({OPTIMIZER})."
            )
        optimizer.state[parameter] = moments


def save_checkpoint(
    folder: Path,
    state: TrainingState,
    *,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    config: BundleConfig,
    tokenizer: Tokenizer,
    recipe_toml: str,
    provenance: Mapping[str, Any],
    keep: int,
) -> None:
    """Save one checkpoint, verify it, and only then delete those beyond the newest ``keep``.

    Raises:
        OutputError: the disk cannot take it; the older checkpoints stay.
    """
    path = folder / f"step-{state.step:08d}"
    save_bundle(
        path,
        config=config,
        weights=model.state_dict(),
        tokenizer=tokenizer,
        recipe_toml=recipe_toml,
        provenance=provenance,
        extra_files={
            OPTIMIZER: serialize_tensors(optimizer_tensors(model, optimizer)),
            STATE: to_json(asdict(state)).encode(),
        },
    )
    load_bundle(path)
    for older in _checkpoints(folder)[keep:]:
        shutil.rmtree(older, ignore_errors=True)


def load_newest_checkpoint(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[TrainingState, list[str]]:
    """Go on from the newest checkpoint that verifies.

    Returns:
        The state (a new one where there is no checkpoint), and one sentence for each checkpoint
        that was skipped as damaged.
    """
    skipped: list[str] = []
    for path in _checkpoints(folder):
        try:
            weights = load_bundle(path).model.state_dict()
            state = _read_state(path / STATE)
            tensors = _read_tensors(path / OPTIMIZER)
            restore_optimizer(model, optimizer, tensors)
            model.load_state_dict(weights)
        except BundleError as error:
            skipped.append(f"Skipped a damaged checkpoint. {error}")
            continue
        return state, skipped
    return TrainingState(), skipped


def _checkpoints(folder: Path) -> list[Path]:
    """The checkpoint folders, newest first."""
    return sorted(folder.glob("step-????????"), reverse=True)


def _read_state(path: Path) -> TrainingState:
    if not path.is_file():
        raise BundleError(f"A checkpoint must have a {STATE}, but {path.parent} has none.")
    values = read_json(path)
    if set(values) != {field.name for field in fields(TrainingState)}:
        raise BundleError(f"{STATE} must have the fields of this version, but has others ({path}).")
    return TrainingState(**values)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load_file(path)
    except (SafetensorError, OSError) as error:
        raise BundleError(f"{path.name} must be readable, but is not: {error} ({path}).") from None
