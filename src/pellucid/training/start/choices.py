"""Choose what a recipe leaves open for the text that is kept of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pellucid.check.counting import (
    COMMON_COVERAGE,
    PlaceholderCounts,
    TextCounts,
    count_placeholders_of_pairs,
    count_text,
)
from pellucid.config import Recipe
from pellucid.errors import PellucidError
from pellucid.terminal.text import count_of, percent
from pellucid.training.start.kept_pairs import SUBWORDS_PER_WORD, KeptText


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

RATE_AT_128 = 0.004
"""The peak rate at width 128."""

RATE_FALLS = 1.25
"""The power of the width with which the peak rate falls."""

NARROWEST = 96
"""The width from which it falls."""

SHARE_OF_RATE_FROM_A_MODEL = 0.25

WIDEST_FOR_MUON = 256
# Measured at width 128: docs/experiments.md.
MUON_RATE = 0.01
MUON_DECAY = 0.1
MUON_WARMUP = 300

# Measured on Multi30k, whole and a third of it: docs/experiments.md.
R_DROP = 3.0
MOST_WORDS_FOR_R_DROP = 0.8e6

MERGES_PER_FOURTH_ROOT = 323
"""Merges of a vocabulary, divided by the fourth root of the words: 10,000 merges for 0.8 million
words, as measured, and 32,000, the usual maximum, for 100 million."""

FULLNESS = 0.9
"""Tokens of a batch without padding, divided by its budget."""

FEWEST_STEPS = 1_000
MOST_STEPS = 200_000
LONGEST_WARMUP = 4_000
LARGEST_VOCABULARY = 32_000
VALIDATIONS = 15
PATIENCE = 5
FEWEST_BETWEEN = 50
"""Steps between validations of a run whose steps were given, if it has so many."""

AVERAGES = 20
"""Training steps divided by the steps that a running average spans."""

FEW_PAIRS = 1_000
MANY_CHARACTERS = 1_000
MANY_ESCAPES = 200
"""A text has many escapes if more than one in this number of words has one."""

SPECIAL_AND_SPACE = 5
BYTES = 256

COURSE = ("learning_rate", "schedule", "warmup_steps", "max_steps")
"""A recipe that sets all of these in ``[training]`` plans its own course: the rest stays."""

SAMPLE = 10_000
"""Pairs that are looked at for placeholders."""

FEWEST_MASKED = 200
SHARE_MASKED = 0.05
"""Pairs of these that must have placeholders for masks to be chosen, and their share."""

SHARE_LACKING = 0.1
"""Pairs with a placeholder that their target lacks, of those with a common one, above which masks
are not chosen: where it is read, the model would get a symbol that it has not learned."""

_NO_TEXT = TextCounts(0, 0, 0, 0.0, 0, 0, 0)
"""Counts before any text is counted."""

SHAPE = ("size", "d_model", "d_ff", "num_encoder_layers", "num_decoder_layers")


CHOSEN_KEYS = frozenset(
    {
        *("model.size", "data.placeholders"),
        *("tokenizer.vocabulary_size", "tokenizer.character_coverage"),
        "tokenizer.split_by_script",
        *("training.max_tokens_per_batch", "training.optimizer", "training.learning_rate"),
        *("training.muon_learning_rate", "training.weight_decay", "training.schedule"),
        *("training.warmup_steps", "training.dropout", "training.dropout_warmup_steps"),
        *("training.r_drop", "training.averaging", "training.averaging_decay"),
        *("training.max_steps", "training.validate_every", "training.patience"),
    }
)
"""Every setting that is chosen for a text if it is left out; the others have their defaults."""


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


def complete(
    values: Mapping[str, Any], recipe_folder: Path, text: KeptText | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Choose what a recipe leaves open, for the training text that is kept.

    Settings of the recipe are never changed, and the others are chosen around them. Only a recipe
    that sets the whole course (`COURSE`) keeps the documented defaults of the rest.

    Args:
        values: the recipe as its file has it, with all changes.
        recipe_folder: the folder that the recipe's relative names start from.
        text: keeps the vocabularies that are learned on the way.

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
        return same, _describe_course(recipe)
    counts = _NO_TEXT
    masks, remarks = _choose_masks(values, recipe, recipe_folder)
    if masks:
        values = _with(values, masks)
        recipe = Recipe.model_validate(values)

    def complete_for(kept: bytes) -> Recipe:
        nonlocal counts
        counts = count_text(recipe.data, recipe.tokenizer, recipe_folder, kept)
        return Recipe.model_validate(_with(values, choose(values, recipe, counts)))

    try:
        start = None
        if recipe.start.model:
            # Without one, nothing here needs PyTorch.
            from pellucid.training.start.from_model import load_start

            start = load_start(recipe.start, recipe_folder)
        text = text or KeptText(recipe_folder)
        text.learn(recipe, None if start is None else start.tokenizer, complete_for)
    except PellucidError:
        return same, []
    choices = [*masks, *choose(values, recipe, counts)]
    sentences = [*map(str, choices), *_describe_course(recipe)]
    return _with(values, choices), [*describe_few(counts.pairs), *remarks, *sentences]


def _choose_masks(
    values: Mapping[str, Any], recipe: Recipe, folder: Path
) -> tuple[list[ChosenSetting], list[str]]:
    """Choose masks for text with many placeholders, such as that of programs.

    Returns:
        The choice, if any, and a sentence on placeholders for which masks teach nothing.
    """
    given = values.get("data", {}).get("placeholders")
    if given == "text" or recipe.start.model:
        return [], []
    counts = PlaceholderCounts(0, 0, 0, "")
    with suppress(PellucidError):  # Who reads all of the text says what is wrong.
        symbols = recipe.tokenizer.symbols
        counts = count_placeholders_of_pairs(recipe.data, folder, SAMPLE, symbols)
    is_worth_it = counts.masked >= max(FEWEST_MASKED, SHARE_MASKED * counts.pairs)
    if not (is_worth_it or given):
        return [], []
    lacks = (
        f"{percent(counts.lacking / max(1, counts.pairs))} of the sources have a placeholder that "
        f"their targets lack, such as {counts.example}"
    )
    advice = "if it is the tag of a domain, name it in tokenizer.symbols"
    has_many = counts.lacking > SHARE_LACKING * max(1, counts.masked)
    if given:
        sentence = f"With masks a model reads symbols that it never learned: {lacks}; {advice}."
        return [], [sentence] if has_many else []
    if has_many:
        return [ChosenSetting("data.placeholders", "text", f"{lacks}; {advice}")], []
    reason = (
        f"{percent(counts.masked / counts.pairs)} of the pairs have placeholders such as %s, which "
        "come back whole if the model reads symbols in their place"
    )
    return [ChosenSetting("data.placeholders", "masks", reason)], []


def describe_few(num_pairs: int) -> list[str]:
    """Warn of training text that is too small; an empty list if it is large enough, or refused."""
    if num_pairs >= FEW_PAIRS or not num_pairs:
        return []
    return [
        f"{count_of(num_pairs, 'pair is', 'pairs are')} too few to learn a language from: expect a "
        "model that knows these sentences and little else."
    ]


def _with(values: Mapping[str, Any], choices: Iterable[ChosenSetting]) -> dict[str, Any]:
    """Put choices into the values of a recipe."""
    filled = dict(values)
    for choice in choices:
        section, _, name = choice.key.partition(".")
        filled[section] = {**filled.get(section, {}), name: choice.value}
    return filled


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
        return choices
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
    )


def _is_size_open(values: Mapping[str, Any], recipe: Recipe) -> bool:
    return not recipe.start.model and not values.get("model", {}).keys() & set(SHAPE)


def _is_vocabulary_open(values: Mapping[str, Any], recipe: Recipe) -> bool:
    is_learned = not recipe.start.model and recipe.tokenizer.kind == "sentencepiece"
    return is_learned and "vocabulary_size" not in values.get("tokenizer", {})


def _leaves_training(given: Mapping[str, Any]) -> bool:
    return not set(COURSE) <= given.keys()


def _describe_course(recipe: Recipe) -> list[str]:
    """Say what is not chosen because the recipe sets the whole course, if so."""
    training = recipe.training
    rest = {"optimizer", "averaging", "patience"} - training.model_fields_set
    if not rest or not set(COURSE) <= training.model_fields_set:
        return []
    defaults = ", ".join(f"{name} {getattr(training, name)}" for name in sorted(rest))
    return [
        f"The recipe sets the whole course ({', '.join(COURSE)}), so nothing else of [training] is "
        f"chosen: {defaults}."
    ]


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
    tokenizer = recipe.tokenizer
    characters = counts.characters
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
    training = recipe.training
    words = counts.target_words
    pace = next(pace for pace in PACES if words <= pace.up_to)
    is_new = not recipe.start.model
    given = training.model_fields_set
    tokens = training.max_tokens_per_batch if "max_tokens_per_batch" in given else pace.tokens
    an_update = tokens * FULLNESS * training.accumulate
    an_epoch = max(1.0, counts.epoch_words * SUBWORDS_PER_WORD / an_update)
    epochs = pace.epochs if is_new else pace.epochs // 2
    steps = _rounded(min(MOST_STEPS, max(FEWEST_STEPS, epochs * an_epoch)))
    why_steps = "later ones teach little from so much text"
    if "max_steps" in given:
        steps = training.max_steps
    elif "warmup_steps" in given and 2 * training.warmup_steps > steps:
        steps = 2 * training.warmup_steps
        why_steps = "twice the given training.warmup_steps"
    interval = max(steps // VALIDATIONS, min(steps, FEWEST_BETWEEN))
    interval = training.validate_every if "validate_every" in given else interval
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
        "warmup_steps": (max(1, min(LONGEST_WARMUP, steps // 8)), "an eighth of the steps"),
        "dropout": (dropout, f"{_millions(words)} target words for a model of width {width}"),
        "averaging": ("running", "the average of late weights is better than the last"),
        "averaging_decay": (average_decay(steps), "it spans a twentieth of the steps"),
        # Epochs are only known once the text is cut into tokens: the screen has their number.
        "max_steps": (steps, why_steps),
        "validate_every": (interval, f"about {round(steps / interval)} times"),
        "patience": (PATIENCE, f"it ends {PATIENCE * interval:,} steps after the best BLEU"),
    }
    has_muon = training.optimizer == "muon" if "optimizer" in given else width <= WIDEST_FOR_MUON
    if has_muon:
        dropout = training.dropout if "dropout" in given else round(min(0.3, dropout + 0.1), 1)
        chosen |= _with_muon(steps, dropout, chosen["dropout"][1])
    has_dropout = "dropout" not in given or training.dropout > 0
    if words <= MOST_WORDS_FOR_R_DROP and has_dropout and not training.max_minutes:
        why = "small text teaches more where each pair is read twice, in twice the time"
        chosen["r_drop"] = (R_DROP, why)
    if not is_new:
        rate = _peak_rate(width, SHARE_OF_RATE_FROM_A_MODEL)
        chosen["learning_rate"] = (rate, f"a quarter of {peak}, so as to keep what it knows")
        if "muon_learning_rate" in chosen:
            quarter = SHARE_OF_RATE_FROM_A_MODEL * MUON_RATE
            chosen["muon_learning_rate"] = (quarter, "a quarter of it, for the same reason")
    if has_muon and not isinstance(training.learning_rate, str):
        rate = float(f"{MUON_RATE * training.learning_rate / _peak_rate(width):.2g}")
        chosen["muon_learning_rate"] = (min(1.0, rate), "it follows training.learning_rate")
    if training.averaging != "running" and "averaging" in given:
        del chosen["averaging_decay"]
    return [ChosenSetting(f"training.{name}", *choice) for name, choice in chosen.items()]


def _with_muon(steps: int, dropout: float, why: str) -> dict[str, tuple[Any, str]]:
    """Choose what Muon needs: a short warm-up, and dropout that does not slow its fast start."""
    return {
        "optimizer": ("muon", "it reaches the loss of Adam in about a third of the steps"),
        "muon_learning_rate": (MUON_RATE, "measured at width 128"),
        "weight_decay": (MUON_DECAY, "keeps matrices from growing with the steps"),
        "warmup_steps": (max(1, min(MUON_WARMUP, steps // 8)), "Muon needs few"),
        "dropout": (dropout, f"{why}, which Muon soon knows"),
        "dropout_warmup_steps": (steps // 3, f"dropout rises to {dropout:g} over a third"),
    }


def average_decay(steps: int) -> float:
    """Compute the decay of a running average that spans a twentieth of so many steps."""
    return max(0.0, round(1 - AVERAGES / steps, 5))


def _peak_rate(width: int, share: float = 1.0) -> float:
    rate = RATE_AT_128 * (128 / max(NARROWEST, width)) ** RATE_FALLS
    return float(f"{share * rate:.2g}")


def _rounded(number: float) -> int:
    """Round down to two significant digits."""
    unit: int = 10 ** max(0, len(str(int(number))) - 2)
    return int(number) // unit * unit


def _millions(words: float) -> str:
    return f"{words / 1e6:.1f} million" if words >= 0.95e5 else f"{words:,.0f}"
