"""Settings that were changed and have no effect."""

from __future__ import annotations

from pellucid.config import Recipe, TrainingConfig


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
    no_samples = not training.subword_samples
    rates = ("dropout", "attention_dropout", "feed_forward_dropout", "token_dropout")
    no_dropout = not any(getattr(training, name) for name in rates)
    reasons = {
        "muon_learning_rate": training.optimizer != "muon" and optimizer,
        "weight_decay": training.optimizer == "adam" and optimizer,
        "min_learning_rate": training.schedule not in ("linear", "cosine") and schedule,
        "average_decay": training.averaging != "running" and averaging,
        "average_count": training.averaging not in ("last", "best") and averaging,
        "subword_alpha": no_samples and "training.subword_samples = 0",
        "subword_dropout": no_samples and "training.subword_samples = 0",
        "r_drop": no_dropout and "no dropout: both readings of a pair are the same",
        "guided_weight": not training.guided_head and "no training.guided_head",
        "guided_convention": not training.guided_head and "no training.guided_head",
    }
    if training.subword_samples and not recipe.start.model:
        of_others = (
            "subword_dropout" if recipe.tokenizer.model_type == "unigram" else "subword_alpha"
        )
        reasons[of_others] = f"tokenizer.model_type = {recipe.tokenizer.model_type!r}"
    return [
        f"training.{name} has no effect with {reason}."
        for name, reason in reasons.items()
        if reason and getattr(training, name) != TrainingConfig.model_fields[name].default
    ]
