"""Fill in what a recipe leaves open: from the run that it continues, or chosen for its text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from pellucid.check.counting import COMMON_COVERAGE, TextCounts, count_text
from pellucid.config import Recipe, parse_toml
from pellucid.errors import PellucidError
from pellucid.files import read_bytes
from pellucid.terminal.text import count_of


@dataclass(frozen=True)
class _SizeAdvice:
    """Measured advice for one size of model, by words of target text.

    Attributes:
        name: the size.
        width: its ``d_model``.
        up_to: the most words for which it is chosen; 0 if it is only used on request.
        strong_dropout_below: fewer words than this need a dropout of 0.3.
        more_dropout_below: fewer words than this need 0.2; otherwise 0.1 is enough.
    """

    name: str
    width: int
    up_to: float
    strong_dropout_below: float
    more_dropout_below: float


SIZES = (
    _SizeAdvice("tiny", 128, 0.8e6, 0.06e6, 0.25e6),
    _SizeAdvice("small", 256, 20e6, 0.8e6, 4e6),
    _SizeAdvice("base", 512, math.inf, 4e6, 20e6),
    _SizeAdvice("big", 1024, 0, 20e6, 100e6),
)


@dataclass(frozen=True)
class _PaceAdvice:
    """Batch size and number of epochs for one amount of text.

    Attributes:
        up_to: the most words of target text that this is for.
        tokens: tokens of a batch.
        epochs: passes over the text.
    """

    up_to: float
    tokens: int
    epochs: int


PACES = (
    _PaceAdvice(0.06e6, 1024, 60),
    _PaceAdvice(0.25e6, 2048, 40),
    _PaceAdvice(0.8e6, 2048, 25),
    _PaceAdvice(4e6, 4096, 20),
    _PaceAdvice(20e6, 4096, 10),
    _PaceAdvice(math.inf, 8192, 8),
)

RATE_AT_128, RATE_FALLS, NARROWEST = 0.004, 1.25, 96
"""The peak rate at width 128, the power of the width with which it falls, and from which width."""

SHARE_OF_RATE_FROM_A_MODEL = 0.25

WIDEST_FOR_MUON = 256
MUON_RATE, MUON_DECAY, MUON_WARMUP = 0.01, 0.1, 300
"""Measured at width 128: docs/experiments.md."""

R_DROP, MOST_WORDS_FOR_R_DROP = 3.0, 0.8e6
"""Measured on Multi30k, whole and a third of it: docs/experiments.md."""

MERGES_PER_FOURTH_ROOT = 323
"""Merges of a vocabulary, divided by the fourth root of the words: 10,000 merges for 0.8 million
words, as measured, and 32,000, the usual maximum, for 100 million."""

SUBWORDS_PER_WORD = 1.3
FULLNESS = 0.9
"""Tokens of a batch without padding, divided by its budget."""

FEWEST_STEPS, MOST_STEPS = 1_000, 200_000
LONGEST_WARMUP = 4_000
LARGEST_VOCABULARY = 32_000
VALIDATIONS, PATIENCE = 15, 5
AVERAGES = 20
"""Training steps divided by the steps that a running average spans."""

FEW_PAIRS = 1_000
MANY_CHARACTERS = 1_000
MANY_ESCAPES = 200
"""A text has many escapes if more than one in this number of words has one."""

SPECIAL_AND_SPACE, BYTES = 5, 256

COURSE = ("learning_rate", "schedule", "warmup_steps", "max_steps")
"""A recipe that sets one of these in ``[training]`` has its own schedule: the rest stays."""

LIMITS = ("max_steps", "patience")
"""Settings that a run keeps if its recipe no longer gives them, whatever their value."""

SHAPE = ("size", "d_model", "d_ff", "num_encoder_layers", "num_decoder_layers")


@dataclass(frozen=True)
class ChosenSetting:
    """One setting that was chosen.

    Attributes:
        key: ``section.name``.
        value: the chosen value.
        reason: the reason, to be read after ``key = value:``.
    """

    key: str
    value: Any
    reason: str

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, str) else f"{self.value:g}"
        if isinstance(self.value, int):
            value = str(self.value).lower()
        return f"{self.key} = {value}: {self.reason}."


def complete(values: Mapping[str, Any], recipe_folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Choose what a recipe leaves open, for its own training text.

    Settings of the recipe are never changed. ``[training]`` is only filled in if the recipe sets
    neither the learning rate, nor its schedule, nor the number of steps.

    Args:
        values: the recipe as its file has it, with all changes.
        recipe_folder: the folder that the recipe's relative names start from.

    Returns:
        The values with the choices, and one sentence for each. A recipe that cannot be used comes
        back unchanged, and so does one whose text cannot be read: training reports the error.

    Source:
        Sennrich and Zhang 2019, "Revisiting Low-Resource Neural Machine Translation"; Araabi and
        Monz 2020, "Optimizing Transformer for Low-Resource Neural Machine Translation"; Gowda and
        May 2020, "Finding the Optimal Vocabulary Size for Neural Machine Translation".
    """
    same = dict(values)
    try:
        recipe = Recipe.model_validate(values)
    except ValidationError:
        return same, []
    if not _is_open(values, recipe):
        return same, []
    try:
        counts = count_text(recipe.data, recipe.tokenizer, recipe_folder)
    except PellucidError:
        return same, []
    choices = choose(values, recipe, counts)
    for choice in choices:
        section, _, name = choice.key.partition(".")
        same[section] = {**same.get(section, {}), name: choice.value}
    sentences = [str(choice) for choice in choices]
    if counts.pairs < FEW_PAIRS:
        pairs = count_of(counts.pairs, "pair is", "pairs are")
        sentences.insert(
            0,
            f"{pairs} too few to learn a language from: expect a model that knows these "
            "sentences and little else.",
        )
    return same, sentences


def choose(values: Mapping[str, Any], recipe: Recipe, counts: TextCounts) -> list[ChosenSetting]:
    """Choose every open setting.

    Args:
        values: the recipe as its file has it; its settings are kept.
        recipe: the same, validated.
        counts: counts of its text.

    Returns:
        The choices, in the order of a recipe.
    """
    given = values.get("training", {})
    choices = [_choose_size(counts)] if _is_size_open(values, recipe) else []
    width = _advice(choices[0].value).width if choices else recipe.model.d_model
    choices += _choose_vocabulary(values, recipe, counts)
    if not _leaves_training(given):
        return choices + _choose_warmup(given, recipe, width)
    proposed = _propose_training(recipe, counts, width)
    return choices + [
        choice for choice in proposed if choice.key.removeprefix("training.") not in given
    ]


def _is_open(values: Mapping[str, Any], recipe: Recipe) -> bool:
    """Tell whether anything may be chosen, so that the text must be counted."""
    return (
        _is_size_open(values, recipe)
        or _is_vocabulary_open(values, recipe)
        or _leaves_training(values.get("training", {}))
        or _outlasts(recipe)
    )


def _is_size_open(values: Mapping[str, Any], recipe: Recipe) -> bool:
    return not recipe.start.model and not values.get("model", {}).keys() & set(SHAPE)


def _is_vocabulary_open(values: Mapping[str, Any], recipe: Recipe) -> bool:
    is_learned = not recipe.start.model and recipe.tokenizer.kind == "sentencepiece"
    return is_learned and "vocabulary_size" not in values.get("tokenizer", {})


def _leaves_training(given: Mapping[str, Any]) -> bool:
    return not given.keys() & set(COURSE)


def _outlasts(recipe: Recipe) -> bool:
    """Tell whether the default warm-up is too long for the number of steps."""
    training = recipe.training
    is_given = "warmup_steps" in training.model_fields_set
    return not is_given and training.warmup_steps * 10 > training.max_steps


def _advice(size_or_width: str | int) -> _SizeAdvice:
    """Find the advice for a size, or for the size whose width is nearest below."""
    if isinstance(size_or_width, str):
        return next(advice for advice in SIZES if advice.name == size_or_width)
    return [SIZES[0], *(advice for advice in SIZES if advice.width <= size_or_width)][-1]


def _choose_size(counts: TextCounts) -> ChosenSetting:
    advice = next(advice for advice in SIZES if counts.target_words <= advice.up_to)
    reason = "larger models learn such text by heart"
    if advice.up_to == math.inf:
        reason = "smaller models leave some of it unlearned"
    return ChosenSetting(
        "model.size",
        advice.name,
        f"{counts.pairs:,} pairs hold {_millions(counts.target_words)} target words; {reason}",
    )


def _choose_vocabulary(
    values: Mapping[str, Any], recipe: Recipe, counts: TextCounts
) -> Iterator[ChosenSetting]:
    if not _is_vocabulary_open(values, recipe):
        return
    tokenizer, characters = recipe.tokenizer, counts.characters
    is_coverage_given = "character_coverage" in values.get("tokenizer", {})
    if characters > MANY_CHARACTERS and tokenizer.byte_fallback and not is_coverage_given:
        characters = counts.common_characters
        yield ChosenSetting(
            "tokenizer.character_coverage",
            COMMON_COVERAGE,
            f"{characters:,} of {counts.characters:,} characters are nearly all of the text; the "
            "others are spelled in bytes",
        )
    words = counts.source_words + counts.target_words
    is_splitting_given = "split_by_script" in values.get("tokenizer", {})
    if counts.escapes * MANY_ESCAPES > words and not is_splitting_given:
        yield ChosenSetting(
            "tokenizer.split_by_script",
            False,
            f"the text was tokenized before, and {counts.escapes:,} signs like &apos; would be cut "
            "in three",
        )
    if tokenizer.sharing == "separate":
        words = min(counts.source_words, counts.target_words)
    # SentencePiece refuses a vocabulary that the text cannot fill, so stay far below its words.
    most = counts.distinct_words // 2
    if tokenizer.model_type == "unigram":
        most = max(0, counts.distinct_words // 4 - 5)
    least = SPECIAL_AND_SPACE + len(tokenizer.symbols) + characters
    least += BYTES if tokenizer.byte_fallback else 0
    wanted = least + min(round(MERGES_PER_FOURTH_ROOT * words**0.25), most)
    size = max(least, min(LARGEST_VOCABULARY, _rounded(wanted)))
    yield ChosenSetting(
        "tokenizer.vocabulary_size",
        size,
        f"few enough that {_millions(words)} words show each subword often",
    )


def _propose_training(recipe: Recipe, counts: TextCounts, width: int) -> list[ChosenSetting]:
    """Propose a whole schedule, around the settings that the recipe fixes."""
    training, words = recipe.training, counts.target_words
    pace = next(pace for pace in PACES if words <= pace.up_to)
    is_new = not recipe.start.model
    is_given = "max_tokens_per_batch" in training.model_fields_set
    tokens = training.max_tokens_per_batch if is_given else pace.tokens
    an_update = tokens * FULLNESS * training.accumulate
    an_epoch = max(1.0, counts.epoch_words * SUBWORDS_PER_WORD / an_update)
    epochs = pace.epochs if is_new else pace.epochs // 2
    steps = _rounded(min(MOST_STEPS, max(FEWEST_STEPS, epochs * an_epoch)))
    interval = steps // VALIDATIONS
    if "validate_every" in training.model_fields_set:
        interval = training.validate_every
    advice = _advice(width)
    dropout = 0.2 if words < advice.more_dropout_below else 0.1
    if words < advice.strong_dropout_below:
        dropout = 0.3
    peak = f"what a model of width {width} bears"
    schedule = ("linear", "the rate ends at zero, where models are best")
    if training.max_minutes:
        schedule = ("inverse_square_root", "time may end it at any step")
    chosen: dict[str, tuple[Any, str]] = {
        "max_tokens_per_batch": (tokens, f"what suits {_millions(words)} target words"),
        "learning_rate": (_peak_rate(width), peak),
        "schedule": schedule,
        "warmup_steps": (min(LONGEST_WARMUP, steps // 8), "an eighth of the steps"),
        "dropout": (dropout, f"{_millions(words)} target words for a model of width {width}"),
        "averaging": ("running", "the average of late weights is better than the last"),
        "average_decay": (round(1 - AVERAGES / steps, 5), "it spans a twentieth of the steps"),
        # Epochs are only known once the text is cut into tokens: the screen has their number.
        "max_steps": (steps, "later ones teach little from so much text"),
        "validate_every": (interval, f"about {VALIDATIONS} times"),
        "patience": (PATIENCE, f"it ends {PATIENCE * interval:,} steps after the best BLEU"),
    }
    if width <= WIDEST_FOR_MUON and "optimizer" not in training.model_fields_set:
        chosen |= _with_muon(steps, min(0.3, dropout + 0.1), chosen["dropout"][1])
    has_dropout = "dropout" not in training.model_fields_set or training.dropout > 0
    if words <= MOST_WORDS_FOR_R_DROP and has_dropout and not training.max_minutes:
        why = "small text teaches more where each pair is read twice, in twice the time"
        chosen["r_drop"] = (R_DROP, why)
    if not is_new:
        rate = _peak_rate(width, SHARE_OF_RATE_FROM_A_MODEL)
        chosen["learning_rate"] = (rate, f"a quarter of {peak}, so as to keep what it knows")
        if "muon_learning_rate" in chosen:
            quarter = SHARE_OF_RATE_FROM_A_MODEL * MUON_RATE
            chosen["muon_learning_rate"] = (quarter, "a quarter of it, for the same reason")
    if training.averaging != "running" and "averaging" in training.model_fields_set:
        del chosen["average_decay"]
    return [ChosenSetting(f"training.{name}", *choice) for name, choice in chosen.items()]


def _with_muon(steps: int, dropout: float, why: str) -> dict[str, tuple[Any, str]]:
    """Choose what Muon needs: a short warm-up, and dropout that does not slow its fast start."""
    return {
        "optimizer": ("muon", "it reaches the loss of Adam in about a third of the steps"),
        "muon_learning_rate": (MUON_RATE, "measured on models of this width"),
        "weight_decay": (MUON_DECAY, "keeps matrices from growing with the steps"),
        "warmup_steps": (min(MUON_WARMUP, steps // 8), "Muon needs few"),
        "dropout": (round(dropout, 1), f"{why}, which Muon soon knows"),
        "dropout_warmup_steps": (steps // 3, f"dropout rises to {dropout:g} over a third"),
    }


def _choose_warmup(given: Mapping[str, Any], recipe: Recipe, width: int) -> list[ChosenSetting]:
    """Shorten the warm-up for a run whose number of steps was given."""
    if not _outlasts(recipe):
        return []
    steps = recipe.training.max_steps
    why = f"a tenth of {steps:,} steps"
    choices = [ChosenSetting("training.warmup_steps", max(1, steps // 10), why)]
    if "learning_rate" not in given:
        # The paper's peak rate follows from the warm-up; a short warm-up would make it too high.
        why = f"what a model of width {width} bears"
        choices.append(ChosenSetting("training.learning_rate", _peak_rate(width), why))
    return choices


def _peak_rate(width: int, share: float = 1.0) -> float:
    rate = RATE_AT_128 * (128 / max(NARROWEST, width)) ** RATE_FALLS
    return float(f"{share * rate:.2g}")


def _rounded(number: float) -> int:
    """Round down to two significant digits."""
    unit: int = 10 ** max(0, len(str(int(number))) - 2)
    return int(number) // unit * unit


def _millions(words: float) -> str:
    return f"{words / 1e6:.1f} million" if words >= 0.95e5 else f"{words:,.0f}"


class FilledRecipe(NamedTuple):
    """A recipe that leaves nothing open.

    Attributes:
        values: all of it.
        choices: a sentence for each setting that was chosen now.
        chosen: these settings, ``section.name``, with their values.
    """

    values: dict[str, Any]
    choices: list[str]
    chosen: dict[str, Any]


def fill_in(values: Mapping[str, Any], run: Path, recipe_folder: Path) -> FilledRecipe:
    """Fill in what a recipe leaves open.

    Settings that were once chosen for a run stay, and no others are chosen: changing a limit must
    not change the rest. Settings that the user once gave the run, and the recipe no longer has, are
    not filled in; the run then reports that the recipe differs.

    Args:
        values: the recipe as its file has it, with all changes.
        run: the run folder, which need not exist.
        recipe_folder: the folder that the recipe's relative names start from.

    Raises:
        ConfigurationError: the run's own recipe is damaged.
    """
    # The check chooses too, without PyTorch, which a run needs.
    from pellucid.train.run.folder import RECIPE_FILE, read_chosen

    recipe_file, chosen = run / RECIPE_FILE, read_chosen(run)
    if chosen is None or not recipe_file.is_file():
        filled, choices = complete(values, recipe_folder)
        return FilledRecipe(filled, choices, _added(values, filled))
    earlier = parse_toml(read_bytes(recipe_file), str(recipe_file))
    kept = {f"training.{name}": _entry(earlier, "training", name) for name in LIMITS} | chosen
    kind = _entry(values, "tokenizer", "kind") or "sentencepiece"
    filled = dict(values)
    for key, value in kept.items():
        section, _, name = key.partition(".")
        entries = filled.get(section, {})
        is_of_another_kind = section == "tokenizer" and kind != _entry(earlier, section, "kind")
        if isinstance(entries, Mapping) and value is not None and not is_of_another_kind:
            filled[section] = {name: value, **entries}
    return FilledRecipe(filled, [], {})


def _entry(values: Mapping[str, Any], section: str, name: str) -> Any:
    """Look up a setting of a recipe, which may lack it or not be a recipe."""
    entries = values.get(section)
    return entries.get(name) if isinstance(entries, Mapping) else None


def _added(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the settings, ``section.name``, that only the second of two recipes has."""
    return {
        f"{section}.{name}": value
        for section, entries in after.items()
        if isinstance(entries, Mapping)
        for name, value in entries.items()
        if name not in before.get(section, {})
    }
