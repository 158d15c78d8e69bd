"""What is looked at when a run goes on from a checkpoint: its tokens, and its best model."""

from __future__ import annotations

from pellucid.bundle import load_bundle
from pellucid.errors import ConfigurationError, PellucidError
from pellucid.train.checkpoint import LoadedCheckpoint, TrainingState
from pellucid.train.run_folder import RunFolder

__all__ = ["check_best_model", "check_tokens"]


def check_tokens(checkpoint: LoadedCheckpoint, fingerprint: str, run: RunFolder) -> None:
    """Refuse to go on with other tokens than a checkpoint was trained on.

    Args:
        checkpoint: where training goes on.
        fingerprint: of the tokens at hand.
        run: its folder.

    Raises:
        ConfigurationError: they are others.
    """
    if checkpoint.fingerprint not in ("", fingerprint):
        raise ConfigurationError(
            f"The text must be what this run began with, but the tokens in {run.data} are others "
            f"(their fingerprint is not that in {checkpoint.folder}). Delete {run.data} and put "
            "the earlier text back, or choose another --out for a new run."
        )


def check_best_model(state: TrainingState, run: RunFolder) -> None:
    """Where the best model is gone or damaged, say so and let the next validation choose anew."""
    if not state.best_step:
        return
    try:
        load_bundle(run.bundle)
    except (PellucidError, OSError) as error:
        run.log(
            f"The best model, of step {state.best_step}, cannot be read, so the best from step "
            f"{state.step} on takes its place. {error}"
        )
        state.best_bleu, state.best_step, state.validated_step = -1.0, 0, -1
