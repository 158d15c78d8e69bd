"""The training loop: teacher forcing, one batch after the other, until a limit is reached."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import pellucid
from pellucid.bundle import save_bundle
from pellucid.config import (
    BundleConfig,
    LanguagesConfig,
    ModelConfig,
    Recipe,
    TokenizerConfig,
)
from pellucid.data import Batch, BatchOrder, TokenStore, make_batch
from pellucid.errors import TrainingError
from pellucid.hardware import describe_machine
from pellucid.model import Dropout, Transformer, initialize
from pellucid.text import check_files, describe_drops
from pellucid.train.checkpoint import load_newest_checkpoint, save_checkpoint
from pellucid.train.interruption import Interruption
from pellucid.train.loss import smoothed_cross_entropy
from pellucid.train.prepare import PreparedData, prepare_data
from pellucid.train.progress import TrainingProgress
from pellucid.train.run_folder import RunFolder
from pellucid.train.schedule import learning_rate
from pellucid.train.validation import validate_model
from pellucid.translator import Translator

__all__ = ["Trainer", "TrainingSummary", "batches_from", "train"]


@dataclass(frozen=True)
class TrainingSummary:
    """What a finished training gave.

    Attributes:
        bundle: the folder of the best model.
        steps: updates made.
        best_bleu: its validation BLEU.
        best_step: where that was.
        seconds: training time, over all resumptions.
    """

    bundle: Path
    steps: int
    best_bleu: float
    best_step: int
    seconds: float


def train(
    recipe: Recipe, out: Path, *, recipe_folder: Path, progress: bool = True
) -> TrainingSummary:
    """Train a model, or go on where the same command stopped.

    Args:
        recipe: everything about the run.
        out: the run folder; made if it is not there.
        recipe_folder: where the recipe's relative file names start.
        progress: show a live bar on a terminal.

    Raises:
        InputError: the recipe, the text or the folder cannot be used; nothing is lost.
        TrainingError: the loss is no longer a number.
        KeyboardInterrupt: Ctrl-C; the step was finished and saved.
        SystemExit: SIGTERM, likewise.
    """
    check_files(recipe.data, recipe_folder)
    run = RunFolder(out, recipe)
    with run.created():
        prepared = prepare_data(recipe, recipe_folder, run)
    trainer = Trainer(recipe, run, prepared)
    with Interruption() as interruption, TrainingProgress(is_wanted=progress) as bar:
        return trainer.run_to_the_end(interruption, bar)


class Trainer:
    """One run in progress: the model, its optimizer, and how far they are.

    Args:
        recipe: everything about the run.
        run: its folder.
        prepared: its data.
    """

    def __init__(self, recipe: Recipe, run: RunFolder, prepared: PreparedData) -> None:
        self.recipe = recipe
        self.training = recipe.training
        self.run = run
        self.prepared = prepared
        self.tokenizer = prepared.tokenizer
        self.config = _bundle_config(recipe, prepared)
        self.model = Transformer(self.config.model)
        initialize(self.model, self.training.seed)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            betas=(self.training.beta1, self.training.beta2),
            eps=self.training.epsilon,
            fused=True,
        )
        self.state, skipped = load_newest_checkpoint(run.checkpoints, self.model, self.optimizer)
        run.forget_after(self.state.step)
        for message in skipped:
            run.log(message)
        self._interval = _Interval()

    def run_to_the_end(self, interruption: Interruption, bar: TrainingProgress) -> TrainingSummary:
        """Train until a limit is reached, validating and saving on the way."""
        self._announce()
        started = time.monotonic() - self.state.seconds
        for epoch, batch in batches_from(
            self.state.step, self.prepared.store, self.recipe, self.tokenizer.config
        ):
            if self._is_done():
                break
            self._update(batch, epoch)
            self.state.seconds = time.monotonic() - started
            bar.update(
                self._share_done(),
                step=self.state.step,
                loss=self._interval.loss,
                speed=self._interval.tokens_per_second,
                bleu=self.state.best_bleu,
            )
            if self.state.step % self.training.log_every == 0:
                self._report(epoch)
            if self.state.step % self.training.validate_every == 0 or self._reached_limit():
                self._validate()
                self.state.seconds = time.monotonic() - started
                self._save()
            if interruption.signal is not None:
                self._save()
                self.run.log(f"Stopped after step {self.state.step}; the same command goes on.")
                interruption.leave()
        self.run.log(
            f"Done: {self.state.step} steps in {self.state.seconds / 60:.1f} minutes, best "
            f"validation BLEU {self.state.best_bleu:.1f} at step {self.state.best_step}. "
            f"The model is in {self.run.bundle}."
        )
        return TrainingSummary(
            self.run.bundle,
            self.state.step,
            self.state.best_bleu,
            self.state.best_step,
            self.state.seconds,
        )

    def _update(self, batch: Batch, epoch: int) -> None:
        """Make one step of gradient descent."""
        step = self.state.step + 1
        loss, plain = self._loss(batch, step)
        if not math.isfinite(plain):
            raise TrainingError(
                f"The loss must be a number, but is {plain} at step {step}. The last checkpoint "
                f"is whole ({self.run.checkpoints}); train again with a lower "
                "training.learning_rate or a longer training.warmup_steps."
            )
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(
            self.model.parameters(), self.training.max_gradient_norm or math.inf
        )
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(step, self.training, self.config.model.d_model)
        self.optimizer.step()
        self.state.step = step
        self.state.target_tokens += batch.num_target_tokens
        self._interval.add(plain, batch.num_target_tokens, float(norm))

    def _loss(self, batch: Batch, step: int) -> tuple[torch.Tensor, float]:
        dropout = None
        if self.training.dropout:
            dropout = Dropout(self.training.dropout, self.training.seed, step)
        memory_BSD = self.model.encode(batch.source_BS, batch.source_mask_BS, dropout=dropout)
        states_BTD = self.model.decode(
            batch.target_in_BT, memory_BSD, batch.source_mask_BS, dropout=dropout
        )
        loss, plain = smoothed_cross_entropy(
            states_BTD[batch.target_mask_BT],
            self.model.output_weight,
            self.model.output_bias,
            batch.target_out_BT[batch.target_mask_BT],
            smoothing=self.training.label_smoothing,
        )
        return loss, float(plain)

    def _report(self, epoch: int) -> None:
        interval, state = self._interval, self.state
        rate = learning_rate(state.step, self.training, self.config.model.d_model)
        self.run.record(
            "train",
            {
                "step": state.step,
                "epoch": epoch,
                "seconds": round(state.seconds, 3),
                "target_tokens": state.target_tokens,
                "loss": interval.loss,
                "learning_rate": rate,
                "gradient_norm": interval.gradient_norm,
            },
        )
        self.run.log(
            f"step {state.step:6d}  epoch {epoch:3d}  loss {interval.loss:6.3f}  perplexity "
            f"{math.exp(min(interval.loss, 50)):8.1f}  {interval.tokens_per_second:6,.0f} tokens/s"
            f"  rate {rate:.5f}  {state.seconds / 60:5.1f} min"
        )
        self._interval = _Interval()

    def _validate(self) -> None:
        translator = Translator(self.model, self.tokenizer, decoding=self.config.decoding)
        found = validate_model(translator, self.prepared.validation)
        state = self.state
        self.run.record(
            "validation",
            {
                "step": state.step,
                "seconds": round(state.seconds, 3),
                "loss": found.loss,
                "bleu": found.bleu,
                "chrf": found.chrf,
            },
        )
        is_better = found.bleu > state.best_bleu
        self.run.log(
            f"step {state.step:6d}  validation: loss {found.loss:.3f}, BLEU {found.bleu:.2f}, "
            f"chrF {found.chrf:.2f}{' (best so far)' if is_better else ''}"
        )
        state.validations_without_better = 0 if is_better else state.validations_without_better + 1
        if is_better:
            state.best_bleu, state.best_step = found.bleu, state.step
            save_bundle(
                self.run.bundle,
                config=self.config,
                weights=self.model.state_dict(),
                tokenizer=self.tokenizer,
                recipe_toml=self.run.recipe_toml,
                provenance=self._provenance(),
            )
        self._interval = _Interval()

    def _save(self) -> None:
        save_checkpoint(
            self.run.checkpoints,
            self.state,
            model=self.model,
            optimizer=self.optimizer,
            config=self.config,
            tokenizer=self.tokenizer,
            recipe_toml=self.run.recipe_toml,
            provenance=self._provenance(),
            keep=self.training.keep_checkpoints,
        )

    def _provenance(self) -> dict[str, Any]:
        state, prepared = self.state, self.prepared
        return {
            "library": {"pellucid": pellucid.__version__, "torch": torch.__version__},
            "data": {
                "fingerprint": prepared.store.fingerprint,
                "pairs": len(prepared.store),
                "dropped": prepared.store.dropped,
            },
            "training": {
                "step": state.step,
                "target_tokens": state.target_tokens,
                "seed": self.training.seed,
            },
            "metrics": {"validation_bleu": state.best_bleu, "best_step": state.best_step},
            "durations": {"training_seconds": round(state.seconds, 1)},
            "machine": describe_machine(),
        }

    def _announce(self) -> None:
        prepared, store = self.prepared, self.prepared.store
        num_weights = sum(parameter.numel() for parameter in self.model.parameters())
        num_pairs = len(store) + sum(store.dropped.values())
        drops = Counter(store.dropped)
        self.run.log(
            f"Training pairs: {len(store):,}. {describe_drops(drops, num_pairs)} Source tokens "
            f"{int(store.source_lengths.sum()):,}, target tokens "
            f"{int(store.target_lengths.sum()):,}; validation pairs {len(prepared.validation):,}."
        )
        sizes = {self.tokenizer.source_vocabulary_size, self.tokenizer.target_vocabulary_size}
        self.run.log(
            f"Model: {num_weights:,} weights, vocabulary {' and '.join(map(str, sorted(sizes)))}. "
            f"Machine: {describe_machine()}, float32."
        )
        if self.state.step:
            self.run.log(f"Going on after step {self.state.step}.")

    def _reached_limit(self) -> bool:
        limit_seconds = self.training.max_minutes * 60
        return self.state.step >= self.training.max_steps or (
            0 < limit_seconds <= self.state.seconds
        )

    def _is_done(self) -> bool:
        patience = self.training.patience
        return self._reached_limit() or 0 < patience <= self.state.validations_without_better

    def _share_done(self) -> float:
        share = self.state.step / self.training.max_steps
        if self.training.max_minutes:
            share = max(share, self.state.seconds / (60 * self.training.max_minutes))
        return min(1.0, share)


class _Interval:
    """What was seen since the last line of the log."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._tokens = 0
        self._total_loss = 0.0
        self.gradient_norm = 0.0

    def add(self, loss: float, tokens: int, gradient_norm: float) -> None:
        """Count one batch."""
        self._tokens += tokens
        self._total_loss += loss * tokens
        self.gradient_norm = gradient_norm

    @property
    def loss(self) -> float:
        """Mean unsmoothed loss per target token, in nats."""
        return self._total_loss / max(1, self._tokens)

    @property
    def tokens_per_second(self) -> float:
        """Target tokens a second, padding not counted."""
        return self._tokens / max(1e-9, time.monotonic() - self._started)


def batches_from(
    step: int, store: TokenStore, recipe: Recipe, tokenizer: TokenizerConfig
) -> Iterator[tuple[int, Batch]]:
    """Yield (epoch, batch) for ever, beginning after ``step`` updates.

    The order is a pure function of (seed, epoch), so a resumed run sees what it would have seen.
    """
    order = BatchOrder(
        store.source_lengths,
        store.target_lengths,
        seed=recipe.training.seed,
        max_tokens_per_batch=recipe.training.max_tokens_per_batch,
        pad_to=recipe.data.pad_to,
    )
    for number in itertools.count(step):
        epoch, index = order.locate(number)
        batch = make_batch(
            store,
            order.plan(epoch)[index],
            pad_id=tokenizer.pad_id,
            start_id=tokenizer.target_start_id,
            pad_to=recipe.data.pad_to,
        )
        yield epoch, batch


def _bundle_config(recipe: Recipe, prepared: PreparedData) -> BundleConfig:
    tokenizer = prepared.tokenizer
    model = recipe.model.model_dump() | {
        "source_vocabulary_size": tokenizer.source_vocabulary_size,
        "target_vocabulary_size": tokenizer.target_vocabulary_size,
    }
    return BundleConfig(
        languages=LanguagesConfig(
            source=recipe.data.source_language, target=recipe.data.target_language
        ),
        decoding=recipe.decoding,
        model=ModelConfig.model_validate(model),
        tokenizer=tokenizer.config,
    )
