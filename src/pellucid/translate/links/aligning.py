"""Word links of translations, from the cross-attention of the model that wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pellucid.inside.align.choice import FEW_PAIRS, SAMPLE_PAIRS
from pellucid.inside.align.link_views import View, all_views, guided_view
from pellucid.inside.align.linked_units import Aligned, Units, links_of_maps, words_of_units
from pellucid.machine.turns import give_way
from pellucid.terminal.text import count_of
from pellucid.text.language_tokens import split_code
from pellucid.text.line_words import is_without_spaces, line_words, parts_of_words
from pellucid.text.link_choices import UnitRule
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.attended_words import AttentionReader
from pellucid.translate.preparing import Ready
from pellucid.translate.results import TranslatedHypothesis, Translation

if TYPE_CHECKING:
    from pellucid.evaluation.word_links import Link


class Aligner:
    """Links the words of translations and their sources.

    Links are read from one view of cross-attention, chosen once: the one that is named; or the
    head that was taught word links; or by the consistency of links, if the first call has enough
    translations; or else the mean of the last layer's heads.

    Attention is computed by the engine in C where it can be. PyTorch is imported for what else it
    takes: the choice of a view by consistency, and links of given pairs.

    Args:
        reader: computes the attention of the model that wrote the translations, the first of an
            ensemble.
        units: how lines are cut into the words that links count.
        layer: the layer of the decoder to read links from.
        head: the head of that layer.

    Raises:
        InputError: the layer or the head does not exist.
    """

    def __init__(
        self,
        reader: AttentionReader,
        units: UnitRule = "auto",
        layer: int | None = None,
        head: int | None = None,
    ) -> None:
        self._reader = reader
        self._tokenizer = reader.tokenizer
        self._units = units
        self._views = tuple(all_views(reader.config, layer=layer, head=head))
        self._layer = layer
        self._head = head
        self._guided = None
        # A layer or head that the user names counts more than the one that was taught links.
        if reader.bundle is not None and (layer, head) == (None, None):
            self._guided = guided_view(reader.bundle)
        self._view: View | None = None
        self._why = ""
        self._num_by_script = 0

    def align(
        self, lines: Sequence[Ready], translations: Sequence[Translation]
    ) -> list[Translation]:
        """Add links to every hypothesis.

        Args:
            lines: the lines.
            translations: their translations.
        """
        # Chosen once, so that all calls, and all windows of a text, link by the same head.
        if self._view is None:
            self._view = self._choose(lines, translations)
        named: list[tuple[str, ...]] = []
        parts: list[_Part] = []
        for number, (line, translation) in enumerate(zip(lines, translations, strict=True)):
            names, held = self._source_words(line)
            named.append(names)
            # A blank line was not searched for, and has no tokens to link.
            if translation.error is not None or not line.requests:
                continue
            for place, hypothesis in enumerate(translation.hypotheses):
                # A line that was not split is its own only part.
                written = hypothesis.parts or (hypothesis,)
                targets = self._target_words(hypothesis)[1]
                parts += [
                    _Part(
                        (number, place),
                        text,
                        line.requests[k].source_ids,
                        held[k],
                        written[k],
                        targets[k],
                    )
                    for k, text in enumerate(line.parts)
                ]
        links = self._link(parts, self._view)
        return [
            self._with_links(number, translation, names, links)
            for number, (translation, names) in enumerate(zip(translations, named, strict=True))
        ]

    def link_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[Aligned]:
        """Link the words of given sources and targets, after the first call of `align`.

        Links of the head that was taught them are all that it has, as in ``pellucid align``.
        """
        from pellucid.inside.align.attention_links import align_pairs  # It needs PyTorch.

        assert self._view is not None
        found = align_pairs(
            self._reader.load_model(),
            self._tokenizer,
            [source for source, _ in pairs],
            [target for _, target in pairs],
            [self._view],
            rule="both" if self._guided is None else "all",
            units=self._units,
        )
        return list(found)

    @property
    def settings(self) -> dict[str, Any]:
        """What links depend on, besides the model and the lines."""
        return {"words": self._units, "layer": self._layer, "head": self._head}

    def take_sentence(self) -> str:
        """Say which view was chosen and why, after the first call; ``""`` later."""
        why = self._why
        self._why = ""
        return why

    def closing_sentence(self) -> str:
        """Say how many lines were cut by script; ``""`` if none was."""
        count = self._num_by_script
        if not count:
            return ""
        lines = count_of(count, "line or translation has", "lines have")
        return (
            f"{lines} no spaces between words and {'is' if count == 1 else 'are'} cut by script, "
            "to be linked: each Chinese character, run of kana, or Thai, Lao, Khmer or Burmese "
            "letter with its marks is a word. See --words-by."
        )

    def _choose(self, lines: Sequence[Ready], translations: Sequence[Translation]) -> View:
        """Choose the view that links are read from."""
        if self._guided is not None:
            self._why = f"Links are read from {self._guided}, which was taught word links."
            return self._guided
        # Parts of a line are no lines: split ones are left out. Lines that repeat each other would
        # confirm any links.
        found = dict.fromkeys(
            (line.parts[0], translation.text)
            for line, translation in zip(lines, translations, strict=True)
            if len(line.parts) == 1 and translation.text.strip()
        )
        pairs = list(found)[:SAMPLE_PAIRS]
        if len(pairs) < FEW_PAIRS:
            predicting = [view for view in self._views if view.convention == "predicts"]
            # If the user named a head, the views have no mean over heads.
            means = [view for view in predicting if view.map == "layer-mean"]
            fallback = means[-1] if means else predicting[0]
            self._why = f"Links are read from {fallback}."
            if (self._layer, self._head) == (None, None):
                self._why += (
                    f" Name another with --align-head, or give {FEW_PAIRS} lines or more, which "
                    "are enough to choose by."
                )
            return fallback
        from pellucid.inside.align.direction import Direction  # It needs PyTorch.

        model = self._reader.load_model()
        direction = Direction(model, self._tokenizer, self._views, "both", units=self._units)
        sources = [source for source, _ in pairs]
        targets = [target for _, target in pairs]
        best = direction.recommend(sources, targets)[0]
        self._why = (
            f"Links are read from {best.view}, whose links are the most consistent of "
            f"{len(self._views)} views ({best.consistency:.2f} of 1, by {len(pairs)} lines)."
        )
        return best.view

    def _source_words(self, line: Ready) -> tuple[tuple[str, ...], list[_Held]]:
        """Find the words of a source, and those of each of its parts."""
        if self._units == "subwords":
            ids = [request.source_ids for request in line.requests]
            return _hold_tokens(self._tokenizer.source_tokens, ids)
        # Every line of a text may begin with a code, which is not a word.
        without_code = partial(_without_code, self._tokenizer)
        text = "\n".join(map(without_code, line.source.split("\n")))
        return self._words(text, list(map(without_code, line.parts)))

    def _target_words(
        self, hypothesis: TranslatedHypothesis
    ) -> tuple[tuple[str, ...], list[_Held]]:
        """Find the words of a translation, and those of each of its parts."""
        parts = hypothesis.parts or (hypothesis,)
        if self._units == "subwords":
            return _hold_tokens(self._tokenizer.target_tokens, [part.ids for part in parts])
        return self._words(hypothesis.text, [part.text for part in parts])

    def _words(self, text: str, parts: Sequence[str]) -> tuple[tuple[str, ...], list[_Held]]:
        assert self._units != "subwords"
        self._num_by_script += self._units == "auto" and is_without_spaces(text)
        give_way()
        names = tuple(line_words(text, self._units))
        return names, [
            _Held(tuple(number for number, _ in held), Units(letters, letters))
            for held in parts_of_words(names, parts)
            for letters in [tuple(one for _, one in held)]
        ]

    def _link(self, parts: Sequence[_Part], view: View) -> dict[tuple[int, int], set[Link]]:
        """Link the words of parts, many together: the links of each hypothesis."""
        tokenizer = self._tokenizer
        config = self._reader.config
        ids = [part.ids(tokenizer.config.eos_id, config.max_target_length) for part in parts]
        # The parts of a hypothesis share a set, because links count the words of the whole text.
        links: dict[tuple[int, int], set[Link]] = {part.place: set() for part in parts}
        for maps in self._reader.read_maps(ids, view):
            give_way()
            part = parts[maps.index]
            source = part.source_words
            target = part.target_words
            words = words_of_units(
                tokenizer,
                (source.units, target.units),
                (part.text, part.hypothesis.text),
                ids[maps.index],
            )
            # That function takes a stack of maps; here it is one.
            (found,) = links_of_maps(maps.get(view)[None], words, "both")
            links[part.place].update((source.numbers[i], target.numbers[j]) for i, j in found)
        return links

    def _with_links(
        self,
        number: int,
        translation: Translation,
        names: tuple[str, ...],
        links: Mapping[tuple[int, int], set[Link]],
    ) -> Translation:
        """Put the links of each hypothesis into it."""
        hypotheses = tuple(
            replace(
                one,
                alignment=tuple(sorted(links.get((number, place), ()))),
                words=self._names(one),
            )
            for place, one in enumerate(translation.hypotheses)
        )
        return replace(translation, hypotheses=hypotheses, source_words=names)

    def _names(self, hypothesis: TranslatedHypothesis) -> tuple[str, ...]:
        if self._units == "subwords":
            return hypothesis.tokens
        return tuple(line_words(hypothesis.text, self._units))


@dataclass(frozen=True)
class _Held:
    """The words of a part of a line.

    Attributes:
        numbers: their numbers among the words of the whole line.
        units: what the part holds of each.
    """

    numbers: tuple[int, ...]
    units: Units


@dataclass(frozen=True)
class _Part:
    """A part of a line, and its translation in one hypothesis.

    Attributes:
        place: the number of the line and of the hypothesis.
        text: the part.
        source_ids: its tokens, ending in ``</s>``.
        source_words: its words.
        hypothesis: its translation.
        target_words: the words of that.
    """

    place: tuple[int, int]
    text: str
    source_ids: Sequence[int]
    source_words: _Held
    hypothesis: TranslatedHypothesis
    target_words: _Held

    def ids(self, eos_id: int, longest: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the tokens of both sides, ending in ``</s>`` though a search may not end in it.

        A translation of the maximum length is read without its last token, which has no link.
        """
        target = self.hypothesis.ids
        if target[-1:] != (eos_id,) and len(target) < longest:
            target = (*target, eos_id)
        return tuple(self.source_ids), target


def _without_code(tokenizer: Tokenizer, line: str) -> str:
    return split_code(tokenizer, line)[1]


def _hold_tokens(
    read: Callable[[Sequence[int]], list[str]], each: Sequence[Sequence[int]]
) -> tuple[tuple[str, ...], list[_Held]]:
    """Take the tokens of parts as their words, counted over all parts; ``</s>`` has no link."""
    names: list[str] = []
    held = []
    for ids in each:
        tokens = read(ids)
        numbers = range(len(names), len(names) + len(tokens))
        held.append(_Held(tuple(numbers), Units(tuple(tokens), None)))
        names += tokens
    return tuple(names), held
