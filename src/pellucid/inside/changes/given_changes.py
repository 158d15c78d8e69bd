"""Changes as they are given everywhere: a text, a change, a probe, or several; made one probe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from torch import Tensor

from pellucid.arguments import refuse, warn_caller
from pellucid.attention.checks import fitted
from pellucid.attention.probe import Probe, is_watched, parts_of, wants
from pellucid.config import ModelConfig
from pellucid.config.head_address import ATTENTION_KINDS
from pellucid.decode.probing.under_probe import HasPieces, Noting
from pellucid.errors import InputError, suggestion
from pellucid.inside.ask import arrays_of
from pellucid.inside.changes.change import Change, Changes, parse_change
from pellucid.inside.changes.written_changes import CutWord, is_of_word, parse_changes
from pellucid.model.cross_attention import refuse_late
from pellucid.text.tokenizers.tokenizer import Tokenizer

GivenChanges = str | Change | Probe | Sequence[str | Change | Probe]
"""A change or several: as text that `parse_change` reads, as a `Change`, or any probe."""

BY_A_PROBE = "by a probe"
"""The description of a change that was given as a probe."""

_RULE = (
    "a text such as 'cut decoder.1.cross.0', a Change, a probe (an object with a method "
    "see(site, stage, tensor)), or several of these"
)


@dataclass(frozen=True)
class ChangedSentence:
    """The one sentence that changes are made in, so that they can name its words.

    Attributes:
        tokenizer: splits it.
        text: the source; empty if it is not known.
        ids: its tokens.
        target_length: decoder rows.
    """

    tokenizer: Tokenizer
    text: str
    ids: Sequence[int]
    target_length: int


class ChangesOfLines(Changes):
    """Changes of many sentences; a warning names those whose positions none of them has."""

    def __init__(self, *changes: Change) -> None:
        super().__init__(*changes)
        self._missed: dict[Change, None] = {}
        self._met: set[Change] = set()

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Return the changed result, and note whether it has the positions."""
        for change in self.changes:
            if change.stage == stage and change.place.is_at(site):
                if change.place.cut_from(tensor).numel():
                    self._met.add(change)
                else:
                    self._missed[change] = None
        return super().see(site, stage, tensor)

    see_rows = see

    def warn(self) -> None:
        """Warn of changes that met no sentence with their positions, once."""
        for change in self._missed:
            if change not in self._met:
                warn_caller(
                    f"'{change}' changed nothing, since no sentence has such positions. They count "
                    "tokens from 0, </s> included: name some that exist, or * for all."
                )
        self._met.update(self._missed)


class SeveralProbes:
    """Several probes as one: each is handed what those before it made of a result.

    Args:
        probes: in the order in which they act.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self.probes = tuple(probes)
        self.parts = set().union(*map(parts_of, probes))
        self.takes_batches = all(getattr(one, "takes_batches", False) for one in probes)
        self._noting = [Noting(one) for one in probes]
        self._of_rows = [one for one in self._noting if getattr(one, "see_rows", None) is not None]
        # A recurrent decoder hands on rows only if a probe takes them.
        self.see_rows = self._see_rows if self._of_rows else None
        self._late: set[tuple[str, str]] = set()

    def begin(self, pair: object) -> None:
        """Tell each which sentence comes next."""
        for probe in self._noting:
            probe.begin(pair)

    def warn(self) -> None:
        """Warn if one of them replaced nothing."""
        for probe in self._noting:
            probe.warn()

    def missed(self, pair: HasPieces) -> list[str]:
        """Return the changes that a sentence has nothing for."""
        asked = [probe for probe in self.probes if isinstance(probe, CutWord)]
        return [text for probe in asked for text in probe.missed(pair)]

    def wants(self, site: str, stage: str) -> bool:
        """True for what one of them may change."""
        return any(wants(probe, site, stage) for probe in self.probes)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Hand a result to all, and return it if one of them changed it."""
        is_attention = site.rpartition(".")[2] in ATTENTION_KINDS
        is_late = (site, stage) in self._late
        changed = None
        for probe in self._noting:
            # It has had its say, row by row.
            if is_late and probe in self._of_rows:
                continue
            # A probe that names its sites is not asked about attention elsewhere.
            if is_attention and not is_watched(probe, site):
                continue
            found = probe.see(site, stage, tensor)
            if found is not None and is_late:
                refuse_late(site, stage)
            if found is not None:
                changed = tensor = fitted(found, tensor, site, stage)
        return changed

    def _see_rows(self, site: str, stage: str, rows: Tensor) -> Tensor | None:
        self._late.add((site, stage))
        changed = None
        for probe in self._of_rows:
            found = probe.see_rows(site, stage, rows)
            if found is not None:
                changed = rows = fitted(found, rows, site, stage)
        return changed

    def __str__(self) -> str:
        """List them, separated by commas."""
        return ", ".join(map(describe_probe, self.probes))


def describe_probe(probe: Probe) -> str:
    """Describe what a probe changes; only changes from text can say it in words."""
    return str(probe) if isinstance(probe, Changes | CutWord | SeveralProbes) else BY_A_PROBE


def read_changes(
    given: GivenChanges, model: ModelConfig, sentence: ChangedSentence | None = None
) -> Probe:
    """Turn changes into one probe, and check them against a model.

    Args:
        given: the changes.
        model: its sizes.
        sentence: the sentence that they are made in. Without one they are for many sentences: a
            query or key that a sentence does not have changes nothing in it.

    Raises:
        InputError: a change cannot be read, names what the model or the sentence does not have, or
            none was given.
    """
    probes: list[Probe] = []
    for one in _items(given):
        probe = _to_probe(one, sentence)
        last = probes[-1] if probes else None
        if isinstance(probe, Changes) and isinstance(last, Changes):
            # Neighbors are one probe, which knows what a mask allows after each of them.
            probes[-1] = Changes(*[*last.changes, *probe.changes])
        else:
            probes.append(probe)
    longest = model.max_source_length, model.max_target_length
    lengths = longest if sentence is None else (len(sentence.ids), sentence.target_length)
    for probe in probes or [Changes()]:
        check_probe(probe, model)
        if isinstance(probe, Changes):
            probe.check(model, *lengths)
    if sentence is None:
        probes = [
            ChangesOfLines(*one.changes) if isinstance(one, Changes) else one for one in probes
        ]
    return probes[0] if len(probes) == 1 else SeveralProbes(probes)


def join_probes(first: Probe | None, second: Probe | None) -> Probe | None:
    """Make one probe of two, of which each may be missing."""
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, Changes) and isinstance(second, Changes):
        return Changes(*[*first.changes, *second.changes])
    return SeveralProbes([first, second])


def _items(given: GivenChanges) -> list[object]:
    is_one = isinstance(given, str | Change) or callable(getattr(given, "see", None))
    if is_one:
        return [given]
    # A class has the method too, but is no probe.
    if not isinstance(given, Iterable) or isinstance(given, bytes | type | Mapping):
        refuse("changes", _RULE, given)
    return list(given)


def _to_probe(one: object, sentence: ChangedSentence | None) -> Probe:
    if isinstance(one, str):
        if not is_of_word(one):
            return Changes(parse_change(one))
        if sentence is None or not sentence.text:
            return CutWord(one)
        found = parse_changes([one], sentence.tokenizer, sentence.text, sentence.ids)
        return Changes(*found)
    if isinstance(one, Change):
        return Changes(one)
    if isinstance(one, type) or not callable(getattr(one, "see", None)):
        refuse("changes", _RULE, one)
    return cast(Probe, one)


def check_probe(probe: Probe | None, config: ModelConfig) -> None:
    """Make sure that an object is a probe, and that the sites and results that it names exist.

    Raises:
        InputError: it has no method ``see``, or a site or a result does not exist.
    """
    if probe is None:
        return
    if isinstance(probe, SeveralProbes):
        for one in probe.probes:
            check_probe(one, config)
        return
    if isinstance(probe, type) or not callable(getattr(probe, "see", None)):
        refuse("probe", _RULE, probe)
    sites = getattr(probe, "sites", None) or ()
    arrays = [wanted.name for wanted in arrays_of(config)]
    known = {name.rpartition(".")[0] for name in arrays}
    names = getattr(probe, "names", None) or ()
    # A single name is a likely slip, and would be read letter by letter.
    for name in [names] if isinstance(names, str) else names:
        if name not in arrays:
            raise InputError(
                f"A probe's names must be results of this model, but {name!r} does not exist. "
                f"{suggestion(str(name), arrays)}"
            )
    for site in [sites] if isinstance(sites, str) else sites:
        if site not in known:
            raise InputError(
                f"A probe's sites must exist in this model, but {site!r} does not. "
                f"{suggestion(str(site), known)}"
            )
