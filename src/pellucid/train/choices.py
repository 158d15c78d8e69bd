"""Settings that a recipe leaves open, chosen for its text, each with its reason."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from pellucid.config import DataConfig, Recipe
from pellucid.errors import PellucidError
from pellucid.text import normalize, read_pairs

__all__ = ["Choice", "TextCounts", "choose", "complete", "count_text"]


@dataclass(frozen=True)
class _SizeAdvice:
    """What is known of one size of model, in words of target text.

    Attributes:
        name: the size.
        width: its ``d_model``.
        up_to: the most words for which it is chosen; 0: only when asked for.
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
    """How fast text of one amount is gone through.

    Attributes:
        up_to: the most words of target text that it holds for.
        tokens: of a batch.
        epochs: passes over the text.
    """

    up_to: float
    tokens: int
    epochs: int


PACES = (
    _PaceAdvice(0.06e6, 1024, 60),
    _PaceAdvice(0.25e6, 2048, 40),
    _PaceAdvice(0.8e6, 2048, 20),
    _PaceAdvice(4e6, 4096, 20),
    _PaceAdvice(20e6, 4096, 10),
    _PaceAdvice(math.inf, 8192, 8),
)

RATE_AT_128, RATE_FALLS = 0.004, 1.25
"""The peak rate of a model of width 128, and the power of the width with which it falls."""

MERGES_PER_ROOT = 4.3
"""Merges of a vocabulary over the root of the words: 4,000 subwords for 0.8 million words."""

SUBWORDS_PER_WORD = 1.3
FULLNESS = 0.9
"""Tokens of a batch over its budget, padding apart."""

FEWEST_STEPS, MOST_STEPS = 1_000, 200_000
LONGEST_WARMUP = 4_000
LARGEST_VOCABULARY = 32_000
VALIDATIONS = 15
FEW_PAIRS = 1_000
MANY_CHARACTERS = 1_000
SPECIAL_AND_SPACE, BYTES = 5, 256

COURSE = ("learning_rate", "schedule", "warmup_steps", "max_steps")
"""Who sets one of these in ``[training]`` has a course in mind: the rest is not touched."""

SHAPE = ("size", "d_model", "d_ff", "num_encoder_layers", "num_decoder_layers")

_WORD = re.compile(r"[^\W\d_]{2,12}")
_MOST_DISTINCT = 100_000


@dataclass(frozen=True)
class Choice:
    """One setting that was chosen.

    Attributes:
        key: ``section.name``.
        value: what was chosen.
        reason: why, to be read after ``key = value:``.
    """

    key: str
    value: Any
    reason: str

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, str) else f"{self.value:g}"
        if isinstance(self.value, int):
            value = str(self.value)
        return f"{self.key} = {value}: {self.reason}."


@dataclass(frozen=True)
class TextCounts:
    """How much training text there is.

    Attributes:
        pairs: of all corpora.
        source_words: words of the sources; where a script has no spaces, half its characters.
        target_words: the same of the targets.
        epoch_words: target words of one epoch, the weights of corpora taken into account.
        characters: distinct ones that a vocabulary must hold.
        common_characters: those of them that make up 99.95 % of the text.
        distinct_words: at least so many different words; counted up to 100,000.
    """

    pairs: int
    source_words: int
    target_words: int
    epoch_words: float
    characters: int
    common_characters: int
    distinct_words: int


def complete(values: Mapping[str, Any], recipe_folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Choose what a recipe leaves open, for its own training text.

    What the recipe says is never changed. ``[training]`` is only filled in where the recipe says
    nothing of the learning rate, its schedule and the number of steps.

    Args:
        values: the recipe as its file has it, with all changes.
        recipe_folder: where the recipe's relative names start.

    Returns:
        The values with the choices, and one sentence for each. A recipe that cannot be used, or
        text that cannot be read, comes back as it is: training itself says what is wrong.

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
        counts = count_text(recipe, recipe_folder)
    except PellucidError:
        return same, []
    choices = choose(values, recipe, counts)
    for choice in choices:
        section, _, name = choice.key.partition(".")
        same[section] = {**same.get(section, {}), name: choice.value}
    sentences = [str(choice) for choice in choices]
    if counts.pairs < FEW_PAIRS:
        sentences.append(
            f"{counts.pairs:,} pairs are too few to learn a language from: expect a model that "
            "knows these sentences and little else."
        )
    return same, sentences


def choose(values: Mapping[str, Any], recipe: Recipe, counts: TextCounts) -> list[Choice]:
    """Choose every open setting.

    Args:
        values: the recipe as its file has it: what it says is kept.
        recipe: the same, validated.
        counts: its text.

    Returns:
        The choices, in the order of a recipe.
    """
    given = dict(values.get("training", {}))
    size = _choose_size(values, counts)
    advice = _advice(recipe.model.d_model if size is None else size.value)
    choices = [choice for choice in (size, *_choose_vocabulary(values, recipe, counts)) if choice]
    if given.keys() & set(COURSE):
        return choices + _choose_warmup(given, recipe, advice.width)
    proposed = _propose_training(recipe, counts, advice, is_new=not recipe.start.model)
    return choices + [
        choice for choice in proposed if choice.key.removeprefix("training.") not in given
    ]


def _is_open(values: Mapping[str, Any], recipe: Recipe) -> bool:
    """Whether anything may be chosen, so that the text must be counted."""
    tokenizer, training = values.get("tokenizer", {}), values.get("training", {})
    is_size_open = not recipe.start.model and not values.get("model", {}).keys() & set(SHAPE)
    is_vocabulary_open = (
        not recipe.start.model
        and recipe.tokenizer.kind == "sentencepiece"
        and "vocabulary_size" not in tokenizer
    )
    return is_size_open or is_vocabulary_open or not {"warmup_steps", *COURSE[:3]} <= set(training)


def _advice(size_or_width: str | int) -> _SizeAdvice:
    """What is known of a size, or of the size whose width is nearest below."""
    if isinstance(size_or_width, str):
        return next(advice for advice in SIZES if advice.name == size_or_width)
    return [SIZES[0], *(advice for advice in SIZES if advice.width <= size_or_width)][-1]


def _choose_size(values: Mapping[str, Any], counts: TextCounts) -> Choice | None:
    if values.get("start", {}).get("model") or values.get("model", {}).keys() & set(SHAPE):
        return None
    advice = next(advice for advice in SIZES if counts.target_words <= advice.up_to)
    reason = "smaller models leave some of it unlearned"
    if advice is not SIZES[2]:
        reason = "larger models learn such text by heart"
    return Choice(
        "model.size",
        advice.name,
        f"{counts.pairs:,} pairs hold {_millions(counts.target_words)} target words; {reason}",
    )


def _choose_vocabulary(
    values: Mapping[str, Any], recipe: Recipe, counts: TextCounts
) -> Iterator[Choice]:
    tokenizer, given = recipe.tokenizer, values.get("tokenizer", {})
    if recipe.start.model or tokenizer.kind != "sentencepiece":
        return
    characters = counts.characters
    if (
        characters > MANY_CHARACTERS
        and tokenizer.byte_fallback
        and not given.keys() & {"character_coverage", "vocabulary_size"}
    ):
        characters = counts.common_characters
        yield Choice(
            "tokenizer.character_coverage",
            0.9995,
            f"of {counts.characters:,} characters {characters:,} are nearly all of the text; the "
            "others are spelled in bytes",
        )
    if "vocabulary_size" in given:
        return
    words = counts.source_words + counts.target_words
    if tokenizer.sharing == "separate":
        words = min(counts.source_words, counts.target_words)
    # A vocabulary that the text cannot fill is refused: far fewer merges than it has words.
    most = counts.distinct_words // (2 if tokenizer.model_type == "bpe" else 4)
    least = SPECIAL_AND_SPACE + characters + (BYTES if tokenizer.byte_fallback else 0)
    wanted = least + min(round(MERGES_PER_ROOT * math.sqrt(words)), most)
    size = max(least, min(LARGEST_VOCABULARY, _rounded(wanted)))
    yield Choice(
        "tokenizer.vocabulary_size",
        size,
        f"few enough that {_millions(words)} words show each subword often",
    )


def _propose_training(
    recipe: Recipe, counts: TextCounts, advice: _SizeAdvice, *, is_new: bool
) -> list[Choice]:
    """A whole course of training, around what the recipe fixes of it."""
    training, words = recipe.training, counts.target_words
    pace = next(pace for pace in PACES if words <= pace.up_to)
    given = training.model_fields_set
    tokens = training.max_tokens_per_batch if "max_tokens_per_batch" in given else pace.tokens
    epochs = pace.epochs if is_new else max(1, pace.epochs // 2)
    an_epoch = counts.epoch_words * SUBWORDS_PER_WORD / (tokens * FULLNESS * training.accumulate)
    steps = _rounded(min(MOST_STEPS, max(FEWEST_STEPS, epochs * an_epoch)))
    interval = max(1, steps // VALIDATIONS)
    width = recipe.model.d_model if advice.width < recipe.model.d_model else advice.width
    rate = _peak_rate(width) / (1 if is_new else 4)
    dropout = 0.1
    if words < advice.more_dropout_below:
        dropout = 0.3 if words < advice.strong_dropout_below else 0.2
    span = max(1, round(steps / max(1, an_epoch)))
    peak = f"what a model of width {width} bears"
    return [
        Choice(
            "training.max_tokens_per_batch",
            tokens,
            f"about {max(1, round(an_epoch)):,} updates an epoch",
        ),
        Choice(
            "training.learning_rate",
            rate,
            peak if is_new else f"a quarter of {peak}, to keep what it knows",
        ),
        Choice("training.schedule", "linear", "the rate ends at zero, where the model is best"),
        Choice("training.warmup_steps", min(LONGEST_WARMUP, steps // 8), "an eighth of all steps"),
        Choice(
            "training.dropout", dropout, f"{_millions(words)} target words for a model of this size"
        ),
        Choice(
            "training.averaging",
            "running",
            "an average of late weights translates better than the last",
        ),
        Choice("training.average_decay", _decay(steps), "it spans a twentieth of the steps"),
        Choice("training.max_steps", steps, f"{span:,} epochs"),
        Choice("training.validate_every", interval, f"{VALIDATIONS} validations"),
        Choice("training.patience", 5, "stops after a third of them without a better BLEU"),
    ]


def _choose_warmup(given: Mapping[str, Any], recipe: Recipe, width: int) -> list[Choice]:
    """Keep the warm-up within a run whose length was given."""
    training = recipe.training
    if "warmup_steps" in given or training.warmup_steps * 10 <= training.max_steps:
        return []
    warmup = max(1, training.max_steps // 10)
    choices = [Choice("training.warmup_steps", warmup, f"a tenth of {training.max_steps:,} steps")]
    if not training.learning_rate:
        # The paper's peak follows from the warm-up, and would be far too high after a short one.
        choices.append(
            Choice(
                "training.learning_rate", _peak_rate(width), f"what a model of width {width} bears"
            )
        )
    return choices


def _peak_rate(width: int) -> float:
    return float(f"{RATE_AT_128 * (128 / width) ** RATE_FALLS:.2g}")


def _decay(steps: int) -> float:
    return round(1 - 20 / steps, 5)


def _rounded(number: float) -> int:
    """Cut down to two digits."""
    unit = 10 ** max(0, len(str(int(number))) - 2)
    return int(number) // unit * unit


def _millions(words: float) -> str:
    return f"{words / 1e6:.1f} million" if words >= 0.95e5 else f"{words:,.0f}"


def count_text(recipe: Recipe, base: Path) -> TextCounts:
    """Count the training text, in one pass.

    Args:
        recipe: its data and tokenizer sections.
        base: where its relative names start.

    Raises:
        InputError: the text cannot be read.
    """
    form = recipe.tokenizer.normalization
    sides = (_SideCounts(), _SideCounts())
    pairs, epoch_words = 0, 0.0
    for corpus, weight in _corpora(recipe.data):
        before = sides[1].words
        for pair in read_pairs(corpus, "train", base):
            pairs += 1
            sides[0].add(normalize(pair.source, form))
            sides[1].add(normalize(pair.target, form))
        epoch_words += weight * (sides[1].words - before)
    per_side = [side.finish() for side in sides]
    joint = recipe.tokenizer.sharing == "joint"
    frequencies = [per_side[0] + per_side[1]] if joint else per_side
    distinct = [len(side.distinct) for side in sides]
    return TextCounts(
        pairs=pairs,
        source_words=sides[0].words,
        target_words=sides[1].words,
        epoch_words=epoch_words,
        characters=max(int(np.count_nonzero(found)) for found in frequencies),
        common_characters=max(_needed(found, 0.9995) for found in frequencies),
        distinct_words=max(distinct) if joint else min(distinct),
    )


def _corpora(data: DataConfig) -> Iterator[tuple[DataConfig, float]]:
    """Each training corpus as data of its own, with its weight."""
    weights = iter(data.train_weights or [1.0] * (len(data.train_source) + len(data.train)))
    nothing: dict[str, Any] = {"train_source": (), "train_target": (), "train": ()}
    for source, target in zip(data.train_source, data.train_target, strict=True):
        only = nothing | {"train_source": (source,), "train_target": (target,)}
        yield data.model_copy(update=only), next(weights)
    for name in data.train:
        yield data.model_copy(update=nothing | {"train": (name,)}), next(weights)


class _SideCounts:
    """Words and characters of one side."""

    _CHUNK = 1 << 20

    def __init__(self) -> None:
        self.words = 0
        self.distinct: set[str] = set()
        self._frequencies = np.zeros(0x110000, dtype=np.int64)
        self._waiting: list[str] = []
        self._num_waiting = 0

    def add(self, line: str) -> None:
        num_words = len(line.split())
        if len(line) > 12 * num_words:  # a script without spaces
            num_words = max(num_words, len(line) // 2)
        self.words += num_words
        if len(self.distinct) < _MOST_DISTINCT:
            self.distinct.update(_WORD.findall(line))
        self._waiting.append(line)
        self._num_waiting += len(line)
        if self._num_waiting >= self._CHUNK:
            self._count()

    def finish(self) -> NDArray[np.int64]:
        """How often every character occurs."""
        self._count()
        self._frequencies[ord(" ")] = 0
        return self._frequencies

    def _count(self) -> None:
        text = "".join(self._waiting).encode("utf-32-le", "replace")
        points = np.frombuffer(text, dtype="<u4")
        self._frequencies += np.bincount(points, minlength=len(self._frequencies))
        self._waiting, self._num_waiting = [], 0


def _needed(frequencies: NDArray[np.int64], share: float) -> int:
    """How many of the most frequent characters make up so much of the text."""
    running = np.cumsum(np.sort(frequencies)[::-1])
    return int(np.searchsorted(running, share * int(running[-1]))) + 1
