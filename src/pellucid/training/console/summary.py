"""A summary of a training in one screen, before it starts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from pellucid.native.quantization import SCALE
from pellucid.terminal.text import count_of, wrap

if TYPE_CHECKING:
    from torch import nn

    from pellucid.training.start.plan import TrainingPlan
    from pellucid.training.start.training_pairs import CorpusCount

WIDTH = 100
HEIGHT = 24
INDENT = 11
MOST_CORPORA = 4
PARTS = ("embedding", "encoder", "decoder", "output")


@dataclass(frozen=True)
class TrainingOutlook:
    """Everything that is known about a training before it starts.

    Attributes:
        corpora: the training data.
        dropped: number of pairs left out, by reason.
        source_tokens: of all remaining pairs, as the model reads them.
        target_tokens: the same of the targets.
        validation_pairs: number of pairs to validate on.
        source_vocabulary_size: number of entries.
        target_vocabulary_size: number of entries.
        is_joint: True if both sides share one vocabulary.
        parameters: by part, as `parameters_by_part` gives them.
        plan: what it computes on.
        steps: the most updates to make.
        epochs: passes over the data in these steps.
        settings: optimizer, schedule, batch and regularization, one sentence each.
        choices: settings chosen for the user and why, one sentence each.
        outside: a description of the share of unknown and byte tokens; empty if it is not known.
        direction: both languages, and the columns that hold them; empty if it is not known.
    """

    corpora: Sequence[CorpusCount]
    dropped: Mapping[str, int]
    source_tokens: int
    target_tokens: int
    validation_pairs: int
    source_vocabulary_size: int
    target_vocabulary_size: int
    is_joint: bool
    parameters: Mapping[str, int]
    plan: TrainingPlan
    steps: int
    epochs: float
    settings: Sequence[str] = ()
    choices: Sequence[str] = ()
    outside: str = ""
    direction: str = ""

    @property
    def num_pairs(self) -> int:
        """The number of pairs, also those left out."""
        return sum(corpus.kept for corpus in self.corpora) + sum(self.dropped.values())

    @property
    def losses(self) -> str:
        """The numbers of pairs left out by reason, the most frequent first."""
        by_number = sorted(self.dropped.items(), key=lambda item: (-item[1], item[0]))
        return "; ".join(f"{count:,} {reason}" for reason, count in by_number)


def parameters_by_part(model: nn.Module) -> dict[str, int]:
    """Count a model's weights by part; a matrix that several parts share counts once.

    Returns:
        At least ``embedding``, ``encoder``, ``decoder`` and ``output``, which is 0 if it is tied to
        the embedding.
    """
    return count_by_part({name: weight.numel() for name, weight in model.named_parameters()})


def count_by_part(sizes: Mapping[str, int]) -> dict[str, int]:
    """Add up the sizes of weights by the part that their names begin with."""
    counts = dict.fromkeys(PARTS, 0)
    for name, size in sizes.items():
        first = name.partition(".")[0]
        part = "embedding" if first.endswith("embedding") else first
        counts[part] = counts.get(part, 0) + size
    return counts


def count_stored(path: Path) -> dict[str, int]:
    """Count the weights of a file by part, without reading them; empty if it is damaged."""
    try:
        with safe_open(path, "numpy") as stored:
            names = [name for name in stored.keys() if not name.endswith(SCALE)]  # noqa: SIM118
            return count_by_part({n: math.prod(stored.get_slice(n).get_shape()) for n in names})
    except (OSError, SafetensorError):
        return {}


def screen(outlook: TrainingOutlook) -> str:
    """Describe a training in at most 24 lines of at most 100 columns.

    If there are more corpora or choices than fit, their last line tells how many were left out.
    """
    plan = outlook.plan
    parameters = ", ".join(
        f"{part} {count:,}" if count else f"{part} shared"
        for part, count in outlook.parameters.items()
    )
    epochs = f"{outlook.epochs:,.0f}" if outlook.epochs >= 10 else f"{outlook.epochs:.1f}"
    length = (
        f"at most {count_of(outlook.steps, 'step')} ({epochs} epochs), "
        "time known after the first steps."
    )
    memory = f"about {describe_bytes(plan.memory_bytes)}"
    if plan.available_bytes is not None:
        memory += f" of {describe_bytes(plan.available_bytes)} available"
    processes = "" if plan.ranks == 1 else f" in {plan.ranks} processes"
    blocks = {
        "Data": _data(outlook),
        "Model": _wrapped(f"{sum(outlook.parameters.values()):,} parameters: {parameters}"),
        "Training": [*_wrapped(length), *_wrapped(" ".join(outlook.settings))],
        "Memory": [memory],
        "Machine": _wrapped(
            f"{plan.device}, {count_of(plan.threads, 'thread')}{processes}, "
            f"{plan.precision}, {plan.kernels.description}"
        ),
    }
    lines = [line for title, block in blocks.items() for line in _block(title, block)]
    room = HEIGHT - len(lines)
    return "\n".join([*lines, *_block("Chosen", _fitting(outlook.choices, room))][:HEIGHT])


def describe_seconds(seconds: float) -> str:
    """Write a duration: ``45 s``, ``27 min``, ``3 h 05 min``."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60:,} h {minutes % 60:02} min"


def describe_bytes(size: int) -> str:
    """Write an amount of memory: ``310 MiB``, ``7.7 GiB``."""
    if size < 1 << 20:
        return f"{size / (1 << 10):,.0f} KiB"
    if size < 1000 << 20:
        return f"{size / (1 << 20):,.0f} MiB"
    return f"{size / (1 << 30):,.1f} GiB"


def _data(outlook: TrainingOutlook) -> list[str]:
    kept = outlook.num_pairs - sum(outlook.dropped.values())
    losses = outlook.losses or "none"
    lines = _wrapped(outlook.direction)
    lines += _wrapped(f"{kept:,} of {outlook.num_pairs:,} pairs (dropped: {losses})", most=3)
    if len(outlook.corpora) > 1:
        shown = outlook.corpora[:MOST_CORPORA]
        lines += [_shorten(f"  {_corpus(corpus)}") for corpus in shown]
        if len(outlook.corpora) > len(shown):
            lines.append(f"  and {len(outlook.corpora) - len(shown):,} more corpora")
    source_size = f"{outlook.source_vocabulary_size:,}"
    vocabulary = f"vocabularies {source_size} and {outlook.target_vocabulary_size:,}"
    if outlook.is_joint:
        vocabulary = f"vocabulary {source_size}, joint"
    tokens = f"{outlook.source_tokens:,} source tokens, {outlook.target_tokens:,} target tokens"
    validation = count_of(outlook.validation_pairs, "validation pair")
    facts = (tokens, validation, vocabulary, outlook.outside)
    return [*lines, *_wrapped("; ".join(filter(None, facts)))]


def _corpus(corpus: CorpusCount) -> str:
    weight = "" if corpus.weight == 1 else f" × {corpus.weight:g}"
    return f"{corpus.kept:,} pairs{weight}  {' '.join(corpus.name.split())}"


def _shorten(line: str) -> str:
    room = WIDTH - INDENT
    return line if len(line) <= room else f"{line[: room - 1]}…"


def _wrapped(text: str, *, most: int = 4) -> list[str]:
    """Break a text into at most so many lines; an empty text gives no line."""
    return wrap(text, WIDTH - INDENT, most=most, breaks_words=True)


def _fitting(sentences: Sequence[str], room: int) -> list[str]:
    """Wrap as many sentences as there is room for, and count the others."""
    lines: list[str] = []
    for index, sentence in enumerate(sentences):
        more = _wrapped(sentence, most=3)
        is_last = index == len(sentences) - 1
        if len(lines) + len(more) > room - (0 if is_last else 1):
            lines.append(f"and {len(sentences) - index:,} more settings (recipe.toml)")
            return lines[: max(room, 0)]
        lines += more
    return lines


def _block(title: str, lines: Sequence[str]) -> Iterator[str]:
    for index, line in enumerate(lines):
        yield f"{title if index == 0 else '':<{INDENT}}{line}"
