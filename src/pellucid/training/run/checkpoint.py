"""Checkpoints: a bundle folder plus the optimizer's state and a step number.

Order, dropout and initialization are pure functions of (seed, step), so nothing else is needed
to continue bit for bit. No pickle is read or written.

A checkpoint is written under a temporary name, flushed, read again and compared with its hashes.
Only then is it renamed, and only after that is an older one deleted. So whatever happens, and
whenever, the newest whole checkpoint stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from torch import Tensor

from pellucid.bundle import (
    MANIFEST,
    bundle_json,
    load_bundle,
    read_json_object,
    verify_files,
    write_bundle,
    write_listed,
)
from pellucid.config import BundleConfig
from pellucid.config.parsing import read_record
from pellucid.errors import BundleError, OutputError, PellucidError
from pellucid.files import delete_folder, new_folder, tidy_folder
from pellucid.model.stored_tensors import read_tensors, serialize_tensors
from pellucid.text.tokenizers.tokenizer import Tokenizer

STATE = "state.json"
ENDING = ".safetensors"
LISTED = "checkpoint"
"""The entry of the manifest that lists the files that a bundle does not have."""

NAME = r"step-(\d{8,})"


@dataclass
class TrainingState:
    """The state of a training.

    Attributes:
        step: updates made or skipped.
        seconds: training time so far, over all resumptions.
        target_tokens: target tokens seen so far, without padding.
        unlogged_tokens: how many of them since the last line of the log.
        unlogged_loss: the sum of their losses.
        best_bleu: the validation BLEU of the best model; below 0 before the first.
        best_step: the step of that validation.
        best_chrf: its chrF; below 0 before the first.
        best_loss: its loss; None then as well.
        best_rank: what it is compared by, the first number first; empty then as well.
        validated_step: the last step whose weights were validated.
        logged_loss: the mean training loss of the last line of the log; 0 before the first.
        validations_without_better: validations in a row without a gain.
        skipped_updates: updates whose loss or gradient was not finite.
        skipped_in_a_row: those of them that came one after the other up to here.
        roll_backs: times that training went back to a checkpoint.
        rate_factor: factor on every learning rate.
        precision: of the products; empty before it is chosen.
        processes: parts that a batch is cut into; 0 before it is chosen.
        kernels: description of the kernels; empty before they are chosen.
        max_tokens_per_batch: the budget in use; 0 before it is chosen.
        has_few_shapes: whether batches are filled up to the shapes of a table.
        validation: a hash of the validation text; empty before it is read.
        course: settings of ``[training]`` that were planned again for a time limit.
        stop_at: seconds of training after which a time limit ends updates; 0 without one.
        stop_minutes: that time limit.
        reserved: seconds of it for what comes after the last update.
        validation_pairs: pairs that validation reads because of it; 0 for all.
    """

    step: int = 0
    seconds: float = 0.0
    target_tokens: int = 0
    unlogged_tokens: int = 0
    unlogged_loss: float = 0.0
    logged_loss: float = 0.0
    best_bleu: float = -1.0
    best_step: int = 0
    best_chrf: float = -1.0
    best_loss: float | None = None
    best_rank: list[float] = field(default_factory=list)
    validated_step: int = 0
    validations_without_better: int = 0
    skipped_updates: int = 0
    skipped_in_a_row: int = 0
    roll_backs: int = 0
    rate_factor: float = 1.0
    precision: str = ""
    processes: int = 0
    kernels: str = ""
    max_tokens_per_batch: int = 0
    has_few_shapes: bool = False
    validation: str = ""
    course: dict[str, int | float] = field(default_factory=dict)
    stop_at: float = 0.0
    stop_minutes: float = 0.0
    reserved: float = 0.0
    validation_pairs: int = 0

    @property
    def recent_loss(self) -> float:
        """Mean unsmoothed loss per target token since the last line of the log, in nats."""
        return self.unlogged_loss / max(1, self.unlogged_tokens)

    @property
    def training_loss(self) -> float:
        """The newest such mean; 0 before the first update."""
        return self.recent_loss if self.unlogged_tokens else self.logged_loss

    def take_best(self, other: TrainingState) -> None:
        """Take the best model so far from another state."""
        self.best_bleu = other.best_bleu
        self.best_step = other.best_step
        self.best_chrf = other.best_chrf
        self.best_loss = other.best_loss
        self.best_rank = list(other.best_rank)


@dataclass(frozen=True)
class LoadedCheckpoint:
    """The contents of a checkpoint, after every byte of it was verified.

    Attributes:
        state: the state of training.
        weights: the model's tensors.
        tensors: the others, by the name they were saved under (``optimizer``, ``averaging``).
        folder: the checkpoint's folder.
        fingerprint: of the tokens that it was trained on.
    """

    state: TrainingState
    weights: dict[str, Tensor]
    tensors: dict[str, dict[str, Tensor]]
    folder: Path
    fingerprint: str


def save_checkpoint(
    folder: Path,
    state: TrainingState,
    *,
    model_weights: Mapping[str, Tensor],
    tensors: Mapping[str, Mapping[str, Tensor]],
    config: BundleConfig,
    tokenizer: Tokenizer,
    recipe_toml: str,
    provenance: Mapping[str, Any],
    keep: int,
    every: int,
) -> None:
    """Save one checkpoint, and delete those older than the newest ``keep`` whole ones.

    The newest whole checkpoint that a run may go back to stays in addition. Its step is a multiple
    of ``every``, so that interruptions do not decide which one that is; and its own update was
    made, so that the weights were not yet in trouble.

    Args:
        folder: the folder of the run's checkpoints.
        state: the state of training; its step names the checkpoint.
        model_weights: the model's tensors.
        tensors: others, each group written as ``NAME.safetensors``.
        config: the bundle's configuration.
        tokenizer: the model's tokenizer.
        recipe_toml: the resolved recipe.
        provenance: further entries of the manifest.
        keep: whole checkpoints to keep.
        every: steps between the checkpoints that every run makes, however it is interrupted.

    Raises:
        OutputError: the disk cannot take it, or does not give back what was written; the older
            checkpoints stay.
    """
    # What a crash left takes room that this checkpoint may need.
    with suppress(OSError):
        _tidy(folder)
    path = folder / f"step-{state.step:08d}"
    with new_folder(path) as part:
        listed = {}
        for name, group in tensors.items():
            file = f"{name}{ENDING}"
            listed[file] = write_listed(part / file, serialize_tensors(group))
        listed[STATE] = write_listed(part / STATE, bundle_json(asdict(state)).encode())
        write_bundle(
            part,
            config=config,
            weights=model_weights,
            tokenizer=tokenizer,
            recipe_toml=recipe_toml,
            provenance={**provenance, LISTED: listed},
        )
        # Under its temporary name: only what reads back whole gets its own (decision 0010).
        _read_again(part, state.step)
    _delete_older(path, state, keep, every)


def load_newest_checkpoint(
    folder: Path, *, to_go_back_every: int = 0
) -> tuple[LoadedCheckpoint | None, list[str]]:
    """Read the newest checkpoint that verifies.

    Args:
        folder: the folder of the run's checkpoints; need not exist.
        to_go_back_every: consider only those that a run may go back to, with the ``every`` of
            `save_checkpoint`.

    Returns:
        The checkpoint (None if the folder has none), and one sentence for each that was skipped
        as damaged.

    Raises:
        BundleError: the folder has checkpoints, but all are damaged.
    """
    with suppress(OSError):
        _tidy(folder)
    reasons: list[str] = []
    for path in _newest_first(folder):
        if to_go_back_every and _step_of(path) % to_go_back_every:
            continue
        try:
            checkpoint = _load(path)
        except (PellucidError, OSError) as error:
            reasons.append(str(error))
            continue
        if to_go_back_every and checkpoint.state.skipped_in_a_row:
            continue
        return checkpoint, [
            f"Skipped a damaged checkpoint. {reason} Or delete it: training continues from "
            f"{checkpoint.folder.name}."
            for reason in reasons
        ]
    if reasons:
        wanted = "continue from"
        advice = "to train from the start"
        if to_go_back_every:
            wanted = "go back to after updates that were not finite"
            advice = f"and --start {folder.parent} to train its best model at a lower rate"
        raise BundleError(
            f"A checkpoint must be whole to {wanted}, but all {len(reasons)} in {folder} are "
            f"damaged. The newest: {reasons[0]} Or choose another folder with -o {advice}."
        )
    return None, []


def delete_later_checkpoints(folder: Path, step: int) -> None:
    """Delete the checkpoints after a step, the newest first."""
    for path in _newest_first(folder):
        if _step_of(path) > step:
            with suppress(OSError):
                delete_folder(path)


def _newest_first(folder: Path) -> list[Path]:
    found = [path for path in folder.glob("step-*") if re.fullmatch(NAME, path.name)]
    return sorted(found, key=_step_of, reverse=True)


def _step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def _tidy(folder: Path) -> None:
    """Remove what a crash left of unfinished checkpoints."""
    for leftover in list(folder.glob(".step-*")):
        if match := re.fullmatch(rf"\.({NAME})\.(?:part|older|gone)", leftover.name):
            tidy_folder(folder / match[1])


def _delete_older(newest: Path, newest_state: TrainingState, keep: int, every: int) -> None:
    """Delete what is older than ``keep`` whole checkpoints, counting the newest, just verified.

    A damaged one does not count, so that ``keep`` whole ones always stay, and one to go back to.
    """
    num_whole = 0
    has_return_point = False
    surplus = []
    for path in _newest_first(newest.parent):
        may_be_return_point = not has_return_point and _step_of(path) % every == 0
        if num_whole >= keep and not may_be_return_point:
            surplus.append(path)
            continue
        state = newest_state if path == newest else _state_of_whole(path)
        if state is None:
            continue
        is_return_point = may_be_return_point and not state.skipped_in_a_row
        if num_whole >= keep and not is_return_point:
            surplus.append(path)
            continue
        num_whole += 1
        has_return_point |= is_return_point
    for path in surplus:
        with suppress(OSError):  # It stays until the next save.
            delete_folder(path)


def _state_of_whole(path: Path) -> TrainingState | None:
    try:
        return _verify(path)
    except (PellucidError, OSError):
        return None


def _read_again(path: Path, step: int) -> None:
    try:
        _verify(path)
    except (PellucidError, OSError) as error:
        raise OutputError(
            f"A checkpoint must read back as it was written, but that of step {step} does not: "
            f"{error} Check the disk; the older checkpoints are as they were."
        ) from error


def _verify(path: Path) -> TrainingState:
    """Compare every byte with the manifest, in little memory, and read the state."""
    manifest = read_json_object(path / MANIFEST)
    verify_files(path, manifest.get("files"))
    verify_files(path, manifest.get(LISTED))
    return _read_state(path / STATE)


def _load(path: Path) -> LoadedCheckpoint:
    bundle = load_bundle(path)
    listed = bundle.manifest.get(LISTED)
    verify_files(path, listed)
    if not isinstance(listed, dict) or STATE not in listed:
        raise BundleError(f"The manifest must list {STATE}, but does not ({path}).")
    data = bundle.manifest.get("data")
    return LoadedCheckpoint(
        state=_read_state(path / STATE),
        weights=bundle.model.state_dict(),
        tensors={
            name.removesuffix(ENDING): read_tensors(path / name)
            for name in listed
            if name.endswith(ENDING)
        },
        folder=path,
        fingerprint=str(data.get("fingerprint", "")) if isinstance(data, dict) else "",
    )


def _read_state(path: Path) -> TrainingState:
    values = read_json_object(path)
    unknown = sorted(values.keys() - {entry.name for entry in fields(TrainingState)})
    if unknown:
        raise BundleError(
            f"Every field of {STATE} must be known to this version of pellucid, but "
            f"{', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not ({path}). "
            "Use a newer version."
        )
    state = read_record(TrainingState, values, str(path))
    if re.fullmatch(NAME, path.parent.name) and state.step != _step_of(path.parent):
        raise BundleError(
            f"The step of {STATE} must be that of its folder, but is {state.step} ({path}). The "
            "file was changed: copy the folder again."
        )
    return state


def copy_saved(own: Mapping[str, Tensor], saved: Mapping[str, Tensor], *, of: str) -> None:
    """Copy saved tensors into those of the same names, on any device.

    Args:
        own: are written to.
        saved: from a checkpoint.
        of: names them in the message, such as ``optimizer``.

    Raises:
        BundleError: names, shapes or types differ; nothing was copied.
    """
    differing = own.keys() ^ saved.keys() or {
        name
        for name, tensor in own.items()
        if (tensor.shape, tensor.dtype) != (saved[name].shape, saved[name].dtype)
    }
    if differing:
        raise BundleError(
            f"A checkpoint's {of} must fit its run's model and recipe, but {min(differing)} does "
            "not. Continue with the recipe that the run began with."
        )
    for name, tensor in own.items():
        tensor.copy_(saved[name])
