r"""From texts to the requests of a search: characters that the model knows, usual lengths.

White space at the edges of a line is not text: it is cut off, and put around the translation. The
lines of a text with line breaks are translated one by one, and the breaks stay where they are.

Nearly every text is one line of one sentence in known characters; it is made ready in one go.
`pellucid.translate.splitting` takes the others apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from pellucid.config import DecodingConfig, Splitting
from pellucid.decode.constraints.build_request import RequestBuilder
from pellucid.decode.constraints.request import Constraints, LineConstraints, Request
from pellucid.decode.constraints.terms import WantedTerm
from pellucid.documents.placeholder_masks import has_only_symbols
from pellucid.errors import DataError, InputError, LibraryError
from pellucid.machine.turns import give_way
from pellucid.text.cleaning import Cleaned, Cleaner
from pellucid.text.language_tokens import find_fault, with_codes
from pellucid.text.learned import LearnedText, byte_or_unknown_ids
from pellucid.text.outside import unknown_words
from pellucid.text.reading.lines import CutLine, not_a_line
from pellucid.text.sentences import may_be_several
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.masking import Hidden, hide
from pellucid.translate.results import NO_NOTES, Notes
from pellucid.translate.splitting import Layout, sentences_of, split_line, together

_MANY_RARE = 0.25
"""The share of rare tokens from which a line counts as unlike the training text."""

_FAR_LONGER = 1.5
"""The factor from which a part without sentence ends counts as longer than the training lines."""


@dataclass(frozen=True)
class Treatment:
    """The treatment of lines before they are translated.

    Attributes:
        clean: replace or drop characters that the model has not learned.
        split: split lines that have more sentences than the model's training lines
            (``sentences``), or only lines that are too long for the model (``long``).
    """

    clean: bool = False
    split: Splitting = "none"


@dataclass(frozen=True)
class Ready:
    """A text that can be searched for.

    Attributes:
        source: the text as given.
        parts: its parts; none if it is blank or cannot be translated.
        gaps: white space and marks before, between and after the parts, which the translation gets
            too; None between two sentences of one line.
        requests: the request of each part.
        error: the reason that it cannot be translated.
        notes: what is unusual about it.
        terms: those of a glossary in each part.
    """

    source: str
    parts: tuple[str, ...] = ()
    gaps: tuple[str | None, ...] = ("",)
    requests: tuple[Request, ...] = ()
    error: str | None = None
    notes: Notes = NO_NOTES
    terms: tuple[tuple[WantedTerm, ...], ...] = ()


@final
class Preparer:
    """Makes texts ready for a search, and compares them with the text that the model learned from.

    Args:
        tokenizer: the model's.
        builder: makes requests.
        learned: the text; None if nothing is known about it, so that lines stay as they are.
        has_vector: True if the model puts a source into one vector of fixed length.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        builder: RequestBuilder,
        learned: LearnedText | None,
        *,
        has_vector: bool = False,
    ) -> None:
        self._tokenizer = tokenizer
        self.builder = builder
        self._has_vector = has_vector
        self._has_codes = bool(tokenizer.language_codes)
        self.learned = learned
        self._cleaner = None if learned is None else Cleaner(learned.characters, tokenizer)
        self._outside = byte_or_unknown_ids(tokenizer)

    def prepare(
        self,
        texts: Sequence[str],
        constraints: Sequence[LineConstraints],
        config: DecodingConfig,
        how: Treatment,
    ) -> list[Ready]:
        """Make texts ready.

        Args:
            texts: the texts, normally of one line each.
            constraints: what the translation of each may and must hold.
            config: the options of the search.
            how: what to do with the lines.
        """
        layouts = [self._lay_out(text, how) for text in texts]
        lines = [line.text for layout in layouts for line in layout.lines]
        # All lines in one call, which SentencePiece spreads over the cores.
        encoded = iter(self._tokenizer.encode_sources(lines))
        return [
            self._make(text, layout, [next(encoded) for _ in layout.lines], one, config, how)
            for text, layout, one in zip(texts, layouts, constraints, strict=True)
        ]

    def prepare_line(
        self,
        text: str,
        constraints: LineConstraints,
        config: DecodingConfig,
        how: Treatment,
        to: str | None,
    ) -> tuple[Ready, Hidden]:
        """Make one line ready, with the code of a language and with masks if the model has any."""
        hidden = hide(self._tokenizer, with_codes(self._tokenizer, to, [text]), [constraints])
        return self.prepare(hidden.texts, hidden.constraints, config, how)[0], hidden

    def _lay_out(self, text: str, how: Treatment) -> Layout:
        # ASCII holds no half characters, so most lines need no check.
        is_plain = text.isascii() and not isinstance(text, CutLine)
        if not is_plain and (damage := not_a_line(text)) is not None:
            return Layout(error=damage)
        # What has nothing but placeholders is a gap between texts.
        is_text = not (self._tokenizer.has_masks and has_only_symbols(text))
        is_line = "\n" not in text and "\r" not in text and text == text.strip()
        if is_text and is_line and not self._has_codes:
            only = self._clean(text, how)
            if only.text.strip():  # nearly always
                return Layout((only,), (0,), (only.before, only.after))
        return Layout.of(text, self._tokenizer, lambda line: self._clean(line, how))

    def _clean(self, text: str, how: Treatment) -> Cleaned:
        """Replace the characters of a line that the model does not know, see `Cleaner`."""
        give_way()
        if self._cleaner is None or not how.clean:
            return Cleaned(text)
        if self._cleaner.known.issuperset(self._tokenizer.normalized(text)):
            return Cleaned(text)
        # A code is one token: its signs need not be characters that training had.
        code = self._tokenizer.language_code(text)
        body = text.removeprefix(code)
        cleaned = self._cleaner.clean(body)
        if not code:
            return cleaned
        if cleaned.text == body:
            return Cleaned(text, unknown=cleaned.unknown)
        return cleaned._replace(text=code + cleaned.text)

    def _make(
        self,
        source: str,
        layout: Layout,
        ids: list[list[int]],
        constraints: LineConstraints,
        config: DecodingConfig,
        how: Treatment,
    ) -> Ready:
        """Make the requests of a text: one for each line, or for each part of a split line."""
        if layout.error is not None:
            return Ready(source, error=layout.error)
        if not layout.lines:
            return Ready(source, gaps=layout.gaps, notes=layout.notes)
        parts: list[str] = []
        gaps: list[str | None] = [layout.gaps[0]]
        requests: list[Request] = []
        terms: list[tuple[WantedTerm, ...]] = []
        encoded: list[list[int]] = []
        has_whole = False
        fault = ""
        try:
            each = _of_lines(constraints, layout.numbers)
            for line, one, own, gap in zip(layout.lines, ids, each, layout.gaps[1:], strict=True):
                text = line.text
                found, is_whole = self._parts(text, one, own, config, how)
                has_whole |= is_whole
                cut = [one] if len(found) == 1 else self._encode_parts(found, one)
                for part, part_ids in zip(found, cut, strict=True):
                    requests.append(self.builder.build(part, part_ids, own, config))
                    if own.glossary is not None:
                        code = self._tokenizer.language_code(part) if self._has_codes else ""
                        terms.append(own.glossary.terms_for(part.removeprefix(code)))
                parts += found
                encoded += cut
                gaps += [*[None] * (len(found) - 1), gap]
                # A note holds one fault, that of the first line with one.
                if not fault and (self._has_codes or ">>" in text):
                    fault = find_fault(self._tokenizer, text)
        except LibraryError:
            raise
        except InputError as error:
            # A line that cannot be translated must not cost the others of its call.
            return Ready(source, error=str(error))
        notes = self._note(layout.lines, parts, encoded, is_whole=has_whole)
        if fault:
            notes = replace(notes, language_code=fault)
        return Ready(
            source, tuple(parts), tuple(gaps), tuple(requests), notes=notes, terms=tuple(terms)
        )

    def _parts(
        self,
        text: str,
        ids: list[int],
        constraints: Constraints,
        config: DecodingConfig,
        how: Treatment,
    ) -> tuple[list[str], bool]:
        """Split one line if it should be; tell whether its constraints keep it whole instead."""
        give_way()
        is_too_long = len(ids) > self.builder.max_source_length
        is_split = how.split == "sentences" and self.learned is not None
        may_split = is_split or how.split == "long"
        parts = [text]
        if (is_split or (may_split and is_too_long)) and may_be_several(text):
            parts = split_line(text, self._tokenizer, self.learned, is_too_long=is_too_long)
        # A prefix, phrases and lengths speak of the whole translation, not of a part.
        is_whole = len(parts) > 1 and not _may_split(constraints, config)
        if is_too_long and is_whole:
            raise InputError(
                "A line with a prefix, required phrases or a given length is too long, and "
                "cannot be split automatically. Split it yourself, and give each part what "
                "belongs to it."
            )
        if is_too_long and len(parts) == 1:
            advice = " One of its sentences is too long by itself." if may_split else ""
            raise InputError(f"{self.builder.too_long(ids)}{advice}")
        return [text] if is_whole else parts, is_whole

    def _encode_parts(self, parts: list[str], whole: list[int]) -> list[list[int]]:
        """Cut parts into tokens; if one is too long, cut all again into single sentences."""
        too_long = self.builder.too_long
        encoded = self._tokenizer.encode_sources(parts)
        if any(map(too_long, encoded)):
            # In place, because the caller adds these parts to its text.
            parts[:] = [one for part in parts for one in sentences_of(part, self._tokenizer)]
            encoded = self._tokenizer.encode_sources(parts)
        for ids in encoded:
            if (sentence := too_long(ids)) is not None:
                # Users see lines, not parts: name the length of the line if it is too long.
                problem = too_long(whole) or sentence
                raise InputError(f"{problem} One of its sentences is too long by itself.")
        return encoded

    def _note(
        self,
        lines: Sequence[Cleaned],
        parts: Sequence[str],
        ids: Sequence[Sequence[int]],
        *,
        is_whole: bool,
    ) -> Notes:
        """Gather what is unusual about a text.

        Args:
            lines: its lines.
            parts: the parts that are translated.
            ids: their tokens.
            is_whole: True if a line was kept whole though it has too many sentences.
        """
        cleaned = lines[0] if len(lines) == 1 else together(lines)
        tokens = [id_ for part in ids for id_ in part[:-1]]
        outside = 0.0
        # A quick test of sets first: most lines have no such token.
        if not self._outside.isdisjoint(tokens):
            outside = sum(map(self._outside.__contains__, tokens)) / len(tokens)
        rare = 0.0
        is_long = False
        learned = self.learned
        if learned is not None:
            if not learned.rare_tokens.isdisjoint(tokens):
                rare = sum(map(learned.rare_tokens.__contains__, tokens)) / len(tokens)
            longest = max(map(len, map(str.strip, parts)))
            is_long = 0 < learned.most_characters * _FAR_LONGER < longest
        is_strange = bool(cleaned.unknown) or rare >= _MANY_RARE
        exceeds_vector = self._has_vector and self._exceeds_vector(ids)
        is_known = not (cleaned.replaced or cleaned.dropped or outside or is_strange)
        # The user's own line breaks do not count as cuts.
        num_parts = len(parts) - len(lines) + 1
        if is_known and num_parts == 1 and not (is_long or is_whole or exceeds_vector):
            return NO_NOTES
        share = 0.0
        if is_strange and self._cleaner is not None:
            share = self._cleaner.rare_share(cleaned.text)
        return Notes(
            cleaned.replaced,
            cleaned.dropped,
            cleaned.unknown,
            rare_characters=share,
            rare_tokens=rare if is_strange else 0.0,
            unknown_tokens=outside,
            unknown_words=unknown_words(self._tokenizer, cleaned.text) if outside else (),
            parts=num_parts,
            is_long=is_long,
            is_whole=is_whole,
            exceeds_vector=exceeds_vector,
        )

    def _exceeds_vector(self, ids: Sequence[Sequence[int]]) -> bool:
        """Tell whether a part has more tokens than any source that the vector learned to hold."""
        longest = None if self.learned is None else self.learned.longest_targets
        return max(map(len, ids)) > max(longest) if longest else False


def _may_split(constraints: Constraints, config: DecodingConfig) -> bool:
    """Tell whether the parts of a line may be translated by themselves."""
    has_prefix = constraints.prefix or constraints.prefix_ids
    is_whole = constraints.required or has_prefix or config.alternatives
    return not (is_whole or config.max_length or config.min_length)


def _of_lines(constraints: LineConstraints, numbers: Sequence[int]) -> Sequence[Constraints]:
    """Choose the constraints of the lines of a text that have these numbers."""
    if not isinstance(constraints, Constraints):
        return [constraints[number] for number in numbers]
    if len(numbers) == 1:  # nearly always
        return [constraints]
    if constraints.required:
        raise InputError(
            "A text with required phrases must be one line, but has line breaks. Give each of its "
            "lines by itself, with its own phrases."
        )
    # A prefix begins the text, so it belongs to the first line only.
    return [constraints, *[replace(constraints, prefix="", prefix_ids=())] * (len(numbers) - 1)]


def constraints_of_each(
    given: Constraints | Sequence[LineConstraints], num_texts: int
) -> Sequence[LineConstraints]:
    """Give each text its constraints, or all the same.

    Raises:
        DataError: constraints and texts differ in number.
    """
    each: Sequence[LineConstraints] = (
        [given] * num_texts if isinstance(given, Constraints) else given
    )
    if len(each) != num_texts:
        raise DataError(
            "There must be one set of constraints for each text, but there are "
            f"{len(each)} for {num_texts} texts."
        )
    return each
