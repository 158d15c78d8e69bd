"""Checks on resuming a run: its checkpoints, its text, and its best model."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.bundle import MANIFEST, load_bundle, read_json
from pellucid.errors import ConfigurationError, PellucidError
from pellucid.files import hash_bytes
from pellucid.text.reading.corpus import Pair
from pellucid.train.run.checkpoint import LoadedCheckpoint, TrainingState
from pellucid.train.run.folder import RunFolder


def check_start(
    checkpoint: LoadedCheckpoint | None, fingerprint: str, run: RunFolder, validate_every: int
) -> None:
    """Refuse to continue with other tokens, or to replace a later model by starting over.

    The first validation keeps its model before the first checkpoint is saved. After a crash in
    between, that part is trained again. So is everything if no checkpoint could ever be saved,
    because the disk was full: the same models are made again.

    Args:
        checkpoint: the checkpoint to continue from; None if the run has none.
        fingerprint: of the present tokens.
        run: the run's folder.
        validate_every: steps between validations.

    Raises:
        ConfigurationError: the tokens differ, or the checkpoints are gone.
    """
    if checkpoint is None:
        if run.never_had_checkpoint:
            _announce_start_over(run)
        else:
            _require_no_later_model(run, validate_every)
        return
    run.note_checkpoint()  # in case the run was killed right after saving the first
    if checkpoint.fingerprint not in ("", fingerprint):
        raise ConfigurationError(
            f"The text must be what this run started with, but the tokens in {run.data} differ "
            f"(their fingerprint is not that in {checkpoint.folder}). Delete {run.data} and put "
            "the earlier text back, or train on with the new text in another --out, with --from "
            f"{run.path}."
        )


def _announce_start_over(run: RunFolder) -> None:
    step = run.last_step()
    if step:
        run.log(
            f"No checkpoint could be saved before this run stopped after step {step}, so it starts "
            f"over. It makes the same models again, which replace that in {run.bundle}."
        )


def _require_no_later_model(run: RunFolder, validate_every: int) -> None:
    try:
        step = int(read_json(run.bundle / MANIFEST)["training"]["step"])
    except (PellucidError, OSError, KeyError, TypeError, ValueError):
        return
    if max(step, run.last_step()) > validate_every:
        raise ConfigurationError(
            f"{run.checkpoints} holds no checkpoint to continue from, and another model would "
            f"replace that of step {step} in {run.bundle}. Put the checkpoints back, or choose "
            f"another --out, with --from {run.path} to continue training that model."
        )


def check_validation(state: TrainingState, pairs: Sequence[Pair]) -> None:
    """Refuse other validation text than the run started with: its figures could not be compared.

    Args:
        state: of the run; it takes the hash of the text, if it has none.
        pairs: the validation text.

    Raises:
        ConfigurationError: the text differs.
    """
    lines = "".join(f"{pair.source}\n{pair.target}\n" for pair in pairs)
    found = hash_bytes(lines.encode())
    if state.validation not in ("", found):
        raise ConfigurationError(
            "The validation text must be what this run started with, but it differs "
            "(data.validation_source, data.validation_target). Put the earlier text back, or "
            "train on with the new text in another --out, with --from and this run's folder."
        )
    state.validation = found


def is_best_model_lost(state: TrainingState, run: RunFolder) -> bool:
    """Tell whether the best model is gone or damaged, and log it: another takes its place."""
    if not state.best_step:
        return False
    try:
        load_bundle(run.bundle)
    except (PellucidError, OSError) as error:
        run.log(
            f"The best model, of step {state.best_step}, cannot be read, so the best from here on "
            f"takes its place. {error}"
        )
        return True
    return False
