"""Places to patch: arrays of a model, one head of them, or the path from there to what reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import filter as filter_names
from typing import NamedTuple

from pellucid.arguments import list_some
from pellucid.config import ModelConfig
from pellucid.config.head_address import KINDS, PARTS, Part
from pellucid.errors import InputError, suggestion
from pellucid.inside.ask import arrays_of, check_number, require_transformer
from pellucid.inside.pair import PairData, states_of

PATH = ">"
"""What stands between the sender of a path and its readers: ``encoder.0 > decoder.*.cross``."""

_READING = ("query", "key", "value", "inner", "gate", "candidate", "forget", "logits")
"""The arrays that a sub-layer makes of what it reads, before anything else."""

_OF_SOURCE = ("cross.key", "cross.value")
"""Those of the decoder that read the encoder."""


class OneArray(NamedTuple):
    """An array, or one head of it.

    Attributes:
        name: such as ``encoder.0.self.value``.
        head: the head; None for all together.
    """

    name: str
    head: int | None = None

    def __str__(self) -> str:
        """As it is written: ``encoder.0.self.3.value``."""
        site, _, stage = self.name.rpartition(".")
        return self.name if self.head is None else f"{site}.{self.head}.{stage}"


class PatchedPlace(NamedTuple):
    """A place to patch.

    Attributes:
        array: that is patched.
        readers: the arrays that read what is patched; none if everything does.
        written: how the readers were written.
    """

    array: OneArray
    readers: tuple[OneArray, ...] = ()
    written: str = ""

    def __str__(self) -> str:
        """As it is written: ``encoder.0.self.3.context > decoder.1.cross``."""
        return f"{self.array} {PATH} {self.written}" if self.readers else str(self.array)


def way_of(places: Sequence[PatchedPlace]) -> str:
    """Name the readers that all places share, for titles: ``, by way of decoder.*.cross.key``."""
    ways = {place.written for place in places}
    way = ways.pop()
    return f", by way of {way}" if way and not ways else ""


def list_sites(sites: str | Iterable[str] | None) -> list[str]:
    """List sites that are given as one, as several, or not at all.

    Raises:
        InputError: the list is empty.
    """
    return ["encoder"] if sites is None else list_some("site", sites, "encoder.0")


_OF_HEAD = re.compile(
    r"((?:encoder|decoder)\.(?:\d+|\*)\.(?:self|cross))\.(\d{1,18}|\*)(\.\w+)?", re.ASCII
)


def expand_sites(pair: PairData, sites: Sequence[str]) -> list[PatchedPlace]:
    """Name the arrays that sites mean: ``encoder`` and ``encoder.0`` are results of layers.

    Raises:
        InputError: one does not exist, or nothing leads from a sender to its readers.
    """
    known = [wanted.name for wanted in arrays_of(pair.model.config)]
    parts: tuple[Part, Part] = ("encoder", "decoder")
    states = {part: states_of(pair.model, part) for part in parts}
    short = {part: list(names) for part, names in states.items()} | {
        f"{part}.{layer}": [names[1 + layer]]
        for part, names in states.items()
        for layer in range(len(names) - 1)
    }
    found: list[PatchedPlace] = []
    for site in sites:
        sender, path, reader = (one.strip() for one in site.partition(PATH))
        name, heads = _with_heads(sender, pair.model.config.num_heads)
        names = short.get(name) or filter_names(known, name)
        if not names:
            raise InputError(
                f"A site must be a layer such as encoder.0, or an array such as "
                f"encoder.0.self.value, but is {site!r}. {suggestion(sender, [*short, *known])}"
            )
        for each in names:
            readers = _readers(pair.model.config, each, reader) if path else ()
            found += [PatchedPlace(OneArray(each, head), readers, reader) for head in heads]
    return found


def _with_heads(site: str, num_heads: int) -> tuple[str, Sequence[int | None]]:
    """Split the head off a site; what a head hands on is its context."""
    of_head = _OF_HEAD.fullmatch(site)
    if of_head is None:
        return site, [None]
    name = of_head[1] + (of_head[3] or ".context")
    return name, range(num_heads) if of_head[2] == "*" else [int(of_head[2])]


def _readers(model: ModelConfig, sender: str, text: str) -> tuple[OneArray, ...]:
    """Find the arrays that a sender reaches by residual connections only.

    Raises:
        InputError: the name fits no array, or only arrays that do not read the sender.
    """
    require_transformer(model, "A path", "Patch without one.")
    known = [wanted.name for wanted in arrays_of(model)]
    reading = [name for name in known if name.rpartition(".")[2] in _READING]
    name, heads = _with_heads(text, model.num_heads)
    last = text.rpartition(".")[2]
    # What reads is meant where the stage is left out.
    if last == "*" or last.isdigit() or last in KINDS:
        name = f"{text if name == text else name.rpartition('.')[0]}.*"
    if len(heads) > 1:
        heads = [None]
    for head in heads:
        if head is not None:
            check_number("head", head, model.num_heads)
    named = filter_names(reading, name)
    if not named:
        near = [*reading, *dict.fromkeys(one.rpartition(".")[0] for one in reading)]
        raise InputError(
            "A path must lead to what reads, such as decoder.*.cross.value or "
            f"decoder.1.feed_forward, but leads to {text!r}. "
            f"{suggestion(text, near) if text else 'Write it behind the sign.'}"
        )
    found = [one for one in named if _is_read(known, sender, one)]
    if not found:
        raise InputError(
            f"A path must lead to what reads the sender, but {text} does not read {sender}: it "
            "comes before it, or reads the other part of the model. Name another reader."
        )
    return tuple(OneArray(one, head) for one in found for head in heads)


def _is_read(known: Sequence[str], sender: str, reader: str) -> bool:
    """Tell whether residual connections lead from an array to another one."""
    # Names are in the order of the run.
    is_later = known.index(reader) > known.index(sender)
    part = "encoder" if reader.endswith(_OF_SOURCE) else reader.partition(".")[0]
    site, _, stage = sender.rpartition(".")
    # Inside a sub-layer only what enters it is read.
    is_inside = reader.startswith(f"{site}.") and stage not in ("input", "norm")
    return is_later and sender.startswith(part) and (not is_inside or site in PARTS)


def length_of(axes: Mapping[str, str], places: Sequence[PatchedPlace]) -> str:
    """Return the axis of positions that arrays have: of the source (S), or decoder rows (T).

    Raises:
        InputError: some have the one, some the other.
    """
    lengths = {axes[place.array.name].removeprefix("H")[0] for place in places}
    if len(lengths) > 1:
        raise InputError(
            "A map must be of source positions or of decoder rows, but the sites have both. Ask "
            "for them one after the other."
        )
    return lengths.pop()
