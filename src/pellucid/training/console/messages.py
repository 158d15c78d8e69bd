"""Messages about a run: the screen before it starts, and the lines of its log."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from pellucid.config import Recipe, TrainingConfig
from pellucid.terminal.text import percent
from pellucid.text.outside import Outside
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.training.console.summary import (
    TrainingOutlook,
    describe_bytes,
    describe_seconds,
    parameters_by_part,
    screen,
)
from pellucid.training.learner import Learner
from pellucid.training.plain import UpdateResult
from pellucid.training.run.checkpoint import TrainingState
from pellucid.training.start.prepare import PreparedData
from pellucid.training.start.table import describe_direction
from pellucid.training.validation import BestBy, describe_measuring
from pellucid.training.weights.schedule import learning_rate

LONG_WAIT = 0.2
"""The share of time in which rank 0 does not compute from which more work an update is advised."""

LOUD_SHARE = 0.05
"""The share of pairs left out from which a warning says why, and what to do."""

REMEDIES = {
    "empty": "Remove empty lines, or add what is missing.",
    "too long": "Split long lines into sentences, or raise data.max_pair_length.",
    "ratio": "See with pellucid check whether sides of very different lengths belong together, or "
    "raise data.max_source_target_ratio.",
    "unreadable": "Correct the lines that cannot be read; the log lists the first.",
}
"""What to do about pairs left out, by a part of the reason."""


class Interval:
    """Speed and last gradient since the last line of the log, or since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._tokens = 0
        self._num_updates = 0
        self._waited = 0.0
        self.gradient_norm = 0.0

    def add(self, updated: UpdateResult) -> None:
        """Count one update."""
        self._tokens += updated.num_target_tokens
        self._num_updates += 1
        self._waited += updated.seconds_waited
        self.gradient_norm = updated.gradient_norm

    def leave_out(self, seconds: float) -> None:
        """Leave out a time in which nothing was trained."""
        self._started += seconds

    @property
    def seconds(self) -> float:
        """Time of training since then."""
        return max(1e-9, time.monotonic() - self._started)

    @property
    def tokens_per_second(self) -> float:
        """Target tokens per second, without padding."""
        return self._tokens / self.seconds

    @property
    def share_waited(self) -> float:
        """Share of the time in which this process waited for other ranks."""
        return self._waited / self.seconds

    @property
    def seconds_per_update(self) -> float:
        """Mean time of an update."""
        return self.seconds / max(1, self._num_updates)


STEPS_BEFORE_ESTIMATE = 20
SECONDS_BEFORE_ESTIMATE = 20.0
"""Updates to wait before estimating the remaining time, or seconds if updates are slow."""

SECONDS_BETWEEN_LINES = 10.0
"""The longest time without a line of the log while updates are made."""


class LogTimes:
    """Decides by time what the log says next to its lines every so many updates."""

    def __init__(self, first: TrainingState) -> None:
        self._step = first.step
        self._seconds = first.seconds
        self._is_estimated = False
        self._said = time.monotonic()
        self._at_line = (0, 0.0)

    def knows_speed(self, state: TrainingState) -> bool:
        """Tell, once, whether the remaining time can be estimated."""
        num_steps = state.step - self._step
        seconds = state.seconds - self._seconds
        is_known = num_steps >= STEPS_BEFORE_ESTIMATE or seconds >= SECONDS_BEFORE_ESTIMATE
        is_new = is_known and not self._is_estimated
        self._is_estimated |= is_known
        return is_new

    @property
    def is_line_due(self) -> bool:
        """True if the last line is long ago."""
        return time.monotonic() - self._said >= SECONDS_BETWEEN_LINES

    def loss_since_line(self, state: TrainingState) -> float:
        """Return the mean loss per target token since the last line."""
        tokens, loss = self._at_line
        if state.unlogged_tokens <= tokens:  # The run went back to a checkpoint.
            return state.recent_loss
        return (state.unlogged_loss - loss) / (state.unlogged_tokens - tokens)

    def note_line(self, state: TrainingState) -> None:
        """Note that there was a line."""
        self._said = time.monotonic()
        self._at_line = state.unlogged_tokens, state.unlogged_loss


def describe_interval(
    interval: Interval, state: TrainingState, times: LogTimes, epoch: int, rate: float
) -> str:
    """Format the next line of the log, with the loss since the last one."""
    loss = times.loss_since_line(state)
    waited = interval.share_waited
    times.note_line(state)
    return (
        f"step {state.step:6d}  epoch {epoch:3d}  loss {loss:6.3f}  perplexity "
        f"{math.exp(min(loss, 50)):8.1f}  {interval.tokens_per_second:6,.0f} tokens/s"
        f"  rate {rate:.5f}  {state.seconds / 60:5.1f} min"
        + (f"  {percent(waited)} not computing" if waited else "")
        + ("; more training.accumulate helps" if waited >= LONG_WAIT else "")
    )


def describe_best(state: TrainingState, best_by: BestBy) -> str:
    """Describe the measures of the best model, with the one that chose it first."""
    if best_by == "loss" and state.best_loss is not None:
        return f"loss {state.best_loss:.3f} (BLEU {state.best_bleu:.1f})"
    is_by_chrf = best_by == "chrf" or (best_by == "auto" and state.best_rank[:1] == [0.0])
    if is_by_chrf:
        return f"chrF {state.best_chrf:.1f} (BLEU {state.best_bleu:.1f})"
    return f"BLEU {state.best_bleu:.1f}"


def announce(
    recipe: Recipe,
    prepared: PreparedData,
    learner: Learner,
    choices: Sequence[str],
    *,
    num_batches: int,
    shapes: str = "",
) -> Iterator[str]:
    """Describe on one screen what is going to happen.

    Args:
        recipe: everything about the run.
        prepared: its data.
        learner: about to start.
        choices: sentences about settings that were chosen.
        num_batches: batches in an epoch.
        shapes: a sentence about the shapes of batches, if they are from a table.

    Returns:
        What is to be logged: the screen, then a line each.
    """
    training = recipe.training
    store = prepared.store
    tokenizer = prepared.tokenizer
    plan = learner.plan
    outlook = TrainingOutlook(
        corpora=prepared.corpora,
        dropped=store.dropped,
        source_tokens=int(store.source_lengths.sum()),
        target_tokens=int(store.target_lengths.sum()),
        validation_pairs=len(prepared.validation),
        source_vocabulary_size=tokenizer.source_vocabulary_size,
        target_vocabulary_size=tokenizer.target_vocabulary_size,
        is_joint=tokenizer.config.sharing == "joint",
        parameters=parameters_by_part(learner.model),
        plan=plan,
        steps=training.max_steps,
        epochs=training.max_steps * training.accumulate / num_batches,
        settings=_describe_settings(recipe, learner),
        choices=choices,
        outside=describe_shares(prepared.outside),
        direction=describe_direction(recipe.data),
    )
    yield screen(outlook)
    yield from describe_dropped(outlook)
    yield from describe_outside(recipe, prepared)
    yield from settings_without_effect(recipe)
    yield from describe_measuring(prepared.validation, tokenizer.config, training.best_by)
    budget = plan.max_tokens_per_batch
    if plan.is_budget_new and budget < training.max_tokens_per_batch:
        yield (
            f"Lowered training.max_tokens_per_batch from {training.max_tokens_per_batch} to "
            f"{budget}: more would not fit into {describe_bytes(plan.available_bytes or 0)}."
        )
    if shapes:
        yield shapes
    if plan.device.type != "cpu" and learner.updater.recorded is None:
        yield (
            "Updates are computed step by step: the device repeats only whole batches of few "
            "shapes by itself (training.shapes, training.processes = 1)."
        )
    if learner.state.step:
        yield f"Continuing after step {learner.state.step}."
    if course := learner.state.course:
        planned = ", ".join(f"{name} {value:g}" for name, value in course.items())
        yield f"The course stays as it was planned for the run's first time limit: {planned}."


def expected_time(state: TrainingState, training: TrainingConfig, seconds_per_update: float) -> str:
    """Estimate how long training takes at most, without validation."""
    seconds = state.seconds + (training.max_steps - state.step) * seconds_per_update
    minutes = training.max_minutes
    if minutes is not None and 60 * minutes < seconds:
        left = max(0.0, (state.stop_at or 60 * minutes) - state.seconds)
        steps = state.step + int(left / seconds_per_update)
        return (
            f"At this speed training makes about {steps:,} of {training.max_steps:,} steps in "
            f"{minutes:g} minutes (training.max_minutes)."
        )
    return (
        f"At this speed {training.max_steps:,} steps take about {describe_seconds(seconds)}, "
        "without validation."
    )


def _describe_settings(recipe: Recipe, learner: Learner) -> list[str]:
    training = recipe.training
    peak = learning_rate(training.warmup_steps, training, learner.config.model.d_model)
    batch = f"{learner.plan.max_tokens_per_batch:,} tokens per batch"
    if training.accumulate > 1:
        batch += f", {training.accumulate} batches per update"
    dropout = f"Dropout {training.dropout:g}, label smoothing {training.label_smoothing:g}."
    if training.dropout_warmup_steps:
        dropout = dropout.replace(",", f" after {training.dropout_warmup_steps:,} steps,", 1)
    words = [
        f"{training.optimizer}, rate up to {peak:.4g}, {training.schedule.replace('_', ' ')}; "
        f"{batch}.",
        dropout,
    ]
    if training.r_drop:
        cut = training.token_cut
        without = f", the second time without {100 * cut:g} % of its tokens" if cut else ""
        words.append(f"Every pair read twice{without}, R-Drop {training.r_drop:g}.")
    penalties = {kind: cost for kind, cost in training.score_penalties.items() if cost[0]}
    if penalties:
        costs = [
            f"{weight:g} ({kind}{f', above {margin:g}' if margin else ''})"
            for kind, (weight, margin) in penalties.items()
        ]
        words.append(f"Score penalty {', '.join(costs)}.")
    if training.both_directions_steps:
        words.append(f"Both directions in the first {training.both_directions_steps:,} steps.")
    if training.averaging != "none":
        words.append(f"Averaging: {training.averaging}.")
    if training.freeze:
        words.append(f"Frozen: {', '.join(training.freeze)}.")
    if recipe.start.model:
        words.append(f"Starts from {recipe.start.model}.")
    return words


def describe_dropped(outlook: TrainingOutlook) -> Iterator[str]:
    """Warn of pairs that are left out, by reason, if they are a twentieth of all or more."""
    share = sum(outlook.dropped.values()) / max(1, outlook.num_pairs)
    if share < LOUD_SHARE:
        return
    left_out = f"{percent(share)} of the training pairs are left out"
    found = " ".join(outlook.dropped)
    advice = " ".join(remedy for reason, remedy in REMEDIES.items() if reason in found)
    yield f"WARNING: {left_out}: {outlook.losses}. {advice}"


def describe_outside(recipe: Recipe, prepared: PreparedData) -> Iterator[str]:
    """Describe texts of which more than a twentieth is outside the vocabulary: a sentence each.

    Args:
        recipe: of the run.
        prepared: its data.
    """
    advice = _advice(recipe, prepared.tokenizer)
    texts = {"training": prepared.outside, "validation": prepared.validation_outside}
    for name, outside in texts.items():
        if outside is not None and outside.is_loud:
            yield (
                f"Outside the vocabulary: {outside.describe()} of the {name} text are unknown or "
                f"single bytes. Such text is hardly translated right. {advice}".rstrip()
            )
            advice = ""
        elif name == "training":
            advice = "It is unlike the training text: check both."


def describe_shares(outside: Outside | None) -> str:
    """Describe the shares of both sides for the screen; empty if they are not known."""
    if outside is None:
        return ""
    return f"unknown or byte tokens {percent(outside.source)} and {percent(outside.target)}"


def _advice(recipe: Recipe, tokenizer: Tokenizer) -> str:
    if recipe.start.new_tokens:
        return "Raise start.new_tokens, in another folder (-o)."
    if recipe.start.model:
        return (
            "Give the model tokens for it (-o OTHER --set start.new_tokens=1000), or "
            "train a new model, without --start."
        )
    if tokenizer.config.kind == "words":
        return "Raise tokenizer.vocabulary_size, or set tokenizer.kind = 'sentencepiece'."
    return "Raise tokenizer.vocabulary_size or tokenizer.character_coverage."


def settings_without_effect(recipe: Recipe) -> list[str]:
    """Explain for each setting that differs from its default without effect why it has none.

    Args:
        recipe: of the run. If it starts from a model, settings that depend on the kind of
            vocabulary are not checked: the recipe does not describe it.
    """
    training = recipe.training
    optimizer = f"training.optimizer = {training.optimizer!r}"
    schedule = f"training.schedule = {training.schedule!r}"
    averaging = f"training.averaging = {training.averaging!r}"
    recurrent = f"model.architecture = {recipe.model.architecture!r}"
    no_samples = not training.subword_samples and "no training.subword_samples"
    learned = recipe.tokenizer.model_type
    model_type = not recipe.start.model and f"tokenizer.model_type = {learned!r}"
    rates = ("dropout", "attention_dropout", "feed_forward_dropout", "token_dropout", "token_cut")
    no_dropout = not any(getattr(training, name) for name in rates)
    reasons = {
        "muon_learning_rate": training.optimizer != "muon" and optimizer,
        "weight_decay": training.optimizer == "adam" and optimizer,
        "min_learning_rate": training.schedule not in ("linear", "cosine") and schedule,
        "averaging_decay": training.averaging != "running" and averaging,
        "averaging_count": training.averaging not in ("last", "best") and averaging,
        "subword_dropout": no_samples or (learned == "unigram" and model_type),
        "subword_alpha": no_samples or (learned == "bpe" and model_type),
        "token_cut": not training.r_drop and "no training.r_drop",
        "r_drop": no_dropout and "no dropout: both readings of a pair are the same",
        "score_penalty": recipe.model.is_recurrent and recurrent,
        "score_penalty_decoder": (recipe.model.is_recurrent and recurrent)
        or (recipe.model.decoder == "ssru" and "model.decoder = 'ssru'"),
        "score_penalty_cross": recipe.model.is_recurrent and recurrent,
        "score_penalty_margin": not training.score_penalty and "no training.score_penalty",
        "score_penalty_margin_decoder": not (
            training.score_penalty_decoder or training.score_penalty_cross
        )
        and "no score penalty of the decoder",
        "guided_weight": not training.guided_head and "no training.guided_head",
        "guided_convention": not training.guided_head and "no training.guided_head",
    }
    return [
        f"training.{name} has no effect with {reason}."
        for name, reason in reasons.items()
        if reason and getattr(training, name) != TrainingConfig.model_fields[name].default
    ]
