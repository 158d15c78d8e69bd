"""A summary of a training in one screen, before it starts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

WIDTH = 100
HEIGHT = 24
INDENT = 11
MOST_CORPORA = 4
PARTS = ("embedding", "encoder", "decoder", "output")


@dataclass(frozen=True)
class CorpusOutlook:
    """One training corpus: its name, the number of pairs after filtering, and its weight."""

    name: str
    pairs: int
    weight: float = 1.0


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
        memory_bytes: the memory that training needs, as predicted.
        available_bytes: the memory of the device; None if it is not known.
        steps: the most updates to make.
        epochs: passes over the data in these steps.
        seconds: time that these steps take, as predicted; None until it was measured.
        device: such as ``cpu``.
        threads: of the processor.
        processes: that share the threads and every batch.
        precision: of the products.
        kernels: a description of the kernels that passes run on.
        settings: optimizer, schedule, batch and regularization, one sentence each.
        choices: settings chosen for the user and why, one sentence each.
        outside: a description of the share of unknown and byte tokens; empty if it is not known.
    """

    corpora: Sequence[CorpusOutlook]
    dropped: Mapping[str, int]
    source_tokens: int
    target_tokens: int
    validation_pairs: int
    source_vocabulary_size: int
    target_vocabulary_size: int
    is_joint: bool
    parameters: Mapping[str, int]
    memory_bytes: int
    available_bytes: int | None
    steps: int
    epochs: float
    seconds: float | None
    device: str
    threads: int
    processes: int
    precision: str
    kernels: str
    settings: Sequence[str] = field(default=())
    choices: Sequence[str] = field(default=())
    outside: str = ""


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


def screen(outlook: TrainingOutlook) -> str:
    """Describe a training in at most 24 lines of at most 100 columns.

    If there are more corpora or choices than fit, their last line tells how many were left out.
    """
    blocks = {
        "Data": _data(outlook),
        "Model": _model(outlook),
        "Training": [*_wrapped(_length(outlook)), *_wrapped(" ".join(outlook.settings))],
        "Memory": [_memory(outlook)],
        "Machine": _wrapped(
            f"{outlook.device}, {_plural(outlook.threads, 'thread')}{_processes(outlook)}, "
            f"{outlook.precision}, {outlook.kernels}"
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
    kept = sum(corpus.pairs for corpus in outlook.corpora)
    total = kept + sum(outlook.dropped.values())
    dropped = "; ".join(
        f"{count:,} {reason}"
        for reason, count in sorted(outlook.dropped.items(), key=lambda item: (-item[1], item[0]))
    )
    lines = _wrapped(f"{kept:,} of {total:,} pairs (dropped: {dropped or 'none'})", most=3)
    if len(outlook.corpora) > 1:
        shown = outlook.corpora[:MOST_CORPORA]
        lines += [_shorten(f"  {_corpus(corpus)}") for corpus in shown]
        if len(outlook.corpora) > len(shown):
            lines.append(f"  and {len(outlook.corpora) - len(shown):,} more corpora")
    vocabulary = (
        f"vocabulary {outlook.source_vocabulary_size:,}, joint"
        if outlook.is_joint
        else f"vocabularies {outlook.source_vocabulary_size:,} and "
        f"{outlook.target_vocabulary_size:,}"
    )
    tokens = f"{outlook.source_tokens:,} source tokens, {outlook.target_tokens:,} target tokens"
    validation = _plural(outlook.validation_pairs, "validation pair")
    facts = (tokens, validation, vocabulary, outlook.outside)
    return [*lines, *_wrapped("; ".join(filter(None, facts)))]


def _corpus(corpus: CorpusOutlook) -> str:
    weight = "" if corpus.weight == 1 else f" × {corpus.weight:g}"
    return f"{corpus.pairs:,} pairs{weight}  {' '.join(corpus.name.split())}"


def _model(outlook: TrainingOutlook) -> list[str]:
    parts = ", ".join(
        f"{part} {count:,}" if count else f"{part} shared"
        for part, count in outlook.parameters.items()
    )
    return _wrapped(f"{sum(outlook.parameters.values()):,} parameters: {parts}")


def _length(outlook: TrainingOutlook) -> str:
    time = "time known after the first steps"
    if outlook.seconds is not None:
        time = f"about {describe_seconds(outlook.seconds)}"
    epochs = f"{outlook.epochs:,.0f}" if outlook.epochs >= 10 else f"{outlook.epochs:.1f}"
    return f"at most {_plural(outlook.steps, 'step')} ({epochs} epochs), {time}."


def _memory(outlook: TrainingOutlook) -> str:
    needed = f"about {describe_bytes(outlook.memory_bytes)}"
    if outlook.available_bytes is None:
        return needed
    return f"{needed} of {describe_bytes(outlook.available_bytes)} available"


def _processes(outlook: TrainingOutlook) -> str:
    return "" if outlook.processes == 1 else f" in {outlook.processes} processes"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _shorten(line: str) -> str:
    room = WIDTH - INDENT
    return line if len(line) <= room else f"{line[: room - 1]}…"


def _wrapped(text: str, *, most: int = 4) -> list[str]:
    """Break a text into at most so many lines; an empty text gives no line."""
    return textwrap.wrap(text, WIDTH - INDENT, max_lines=most, placeholder=" …")


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
