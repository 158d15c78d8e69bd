"""What training is going to be, in one screen, before it starts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

__all__ = [
    "CorpusOutlook",
    "TrainingOutlook",
    "count_by_part",
    "describe_bytes",
    "describe_seconds",
    "parameters_by_part",
    "screen",
]

WIDTH = 100
HEIGHT = 24
INDENT = 11
MOST_CORPORA = 4
PARTS = ("embedding", "encoder", "decoder", "output")


@dataclass(frozen=True)
class CorpusOutlook:
    """One training corpus: what it is called, how many pairs were kept, and its weight."""

    name: str
    pairs: int
    weight: float = 1.0


@dataclass(frozen=True)
class TrainingOutlook:
    """Everything that is known of a training before it starts.

    Attributes:
        corpora: what is trained on.
        dropped: pairs left out, by reason.
        source_tokens: of all kept pairs, as the model reads them; likewise ``target_tokens``.
        validation_pairs: what is validated on.
        source_vocabulary_size: and ``target_vocabulary_size``: entries.
        is_joint: whether the two sides have one vocabulary.
        parameters: by part, as `parameters_by_part` gives them.
        memory_bytes: what training is expected to need.
        available_bytes: what the device has; None where that is not known.
        steps: updates to make at most.
        epochs: passes over the data that they are.
        seconds: how long they are expected to take; None until that was measured.
        device: what computes, such as ``cpu``.
        threads: of the processor.
        processes: which share them, and every batch.
        precision: of the products.
        kernels: what they run on, in words.
        words: optimizer, schedule, batch and regularization, one sentence each.
        choices: what was chosen for the user and why, one sentence each.
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
    words: Sequence[str] = field(default=())
    choices: Sequence[str] = field(default=())


def parameters_by_part(model: nn.Module) -> dict[str, int]:
    """Count a model's weights by part; a matrix that several parts share counts once.

    Returns:
        At least ``embedding``, ``encoder``, ``decoder`` and ``output``, which has none of its own
        where it is tied to the embedding.
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
    """Say what training is going to be: at most 24 lines of at most 100 columns.

    Where there is more to say about corpora or choices than fits, the last line of them says how
    much was left out.
    """
    blocks = {
        "Data": _data(outlook),
        "Model": _model(outlook),
        "Training": [*_wrapped(_length(outlook)), *_wrapped(" ".join(outlook.words))],
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
    """Put a duration into words: ``45 s``, ``27 min``, ``3 h 05 min``."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60:,} h {minutes % 60:02} min"


def describe_bytes(size: int) -> str:
    """Put an amount of memory into words: ``310 MiB``, ``7.7 GiB``."""
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
    return [*lines, *_wrapped(f"{tokens}; {validation}; {vocabulary}")]


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
    """Break a text into at most so many lines; none for no text."""
    return textwrap.wrap(text, WIDTH - INDENT, max_lines=most, placeholder=" …")


def _fitting(sentences: Sequence[str], room: int) -> list[str]:
    """As many sentences as there is room for, and how many there are besides."""
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
