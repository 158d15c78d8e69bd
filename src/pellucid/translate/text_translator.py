"""Translation of texts: one at once, many, or one piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, overload

from pellucid.arguments import check_count, check_kind, check_text, list_texts, named
from pellucid.config import DecodingConfig, Precision, Splitting, TreatmentConfig, validate
from pellucid.config.typed_options import DecodingOptions
from pellucid.decode.constraints.request import Constraints, LineConstraints
from pellucid.decode.hypothesis import Hypothesis
from pellucid.errors import InputError
from pellucid.languages.codes import direction
from pellucid.text.link_choices import UnitRule
from pellucid.text.word_forms import Match
from pellucid.translate.attended_words import AttentionReader
from pellucid.translate.call_options import (
    TranslationOptions,
    check_names,
    cross_head,
    refuse_several,
)
from pellucid.translate.constraints import (
    UNCONSTRAINED,
    GivenGlossary,
    Phrases,
    as_list,
    fit_glossary,
    require_terms,
    used_terms,
)
from pellucid.translate.judging import against_repetition
from pellucid.translate.line_translation import LineTranslation
from pellucid.translate.loaded_model import LoadedModel
from pellucid.translate.masking import Hidden
from pellucid.translate.preparing import Ready, Treatment, constraints_of_each
from pellucid.translate.results import Notes, Translation
from pellucid.translate.translation_stream import TranslationStream, stream_line
from pellucid.translate.written_lines import TranslationWriter, Unknown, with_sources

if TYPE_CHECKING:
    from pellucid.inside.changes.given_changes import GivenChanges
    from pellucid.translate.links.aligning import Aligner

BATCH_TOKENS = 4096


class TextTranslator(LoadedModel):
    """What a `Translator` does with texts."""

    @property
    def computes(self) -> Precision:
        """The precision that translations are computed in unless a call asks for another."""
        return self.options().precision

    def options(self, **options: Unpack[DecodingOptions]) -> DecodingConfig:
        """Return all decoding options of a call: the given ones on top of the model's defaults.

        Sampling replaces a beam that only the defaults ask for, and a beam such sampling. The
        ``precision`` is what computes: float32 in the place of int8 where only PyTorch can.

        Raises:
            ConfigurationError: an option is unknown, impossible, or contradicts another.
            InputError: another precision than float32 under a change.
        """
        # Most calls give no options. The result holds as long as the defaults are this object.
        if not options and self._plain is not None and self._plain[0] is self.decoding:
            return self._plain[1]
        check_names(options, self.translate)
        found = self.decoding.with_options(options)
        computes = self.decoder.computes(found.precision)
        if computes != found.precision:
            if self.decoder.change is not None and "precision" in options:
                raise InputError(
                    f"precision must be float32 under a change of vectors or weights, but is "
                    f"{found.precision!r}. Leave it out."
                )
            found = found.model_copy(update={"precision": computes})
        if not options:
            self._plain = self.decoding, found
        return found

    @overload
    def translate(  # type: ignore[overload-overlap]  # a text is an iterable of texts, too
        self, texts: str, **how: Unpack[TranslationOptions]
    ) -> Translation: ...

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, texts: Iterator[str], **how: Unpack[TranslationOptions]
    ) -> Iterator[Translation]: ...

    @overload
    def translate(
        self, texts: Iterable[str], **how: Unpack[TranslationOptions]
    ) -> list[Translation]: ...

    @named()
    def translate(
        self,
        texts: str | Iterable[str],
        *,
        prefix: str = "",
        forbid: str | Sequence[str] = (),
        require: str | Sequence[str] = (),
        glossary: GivenGlossary | None = None,
        glossary_match: Match = "auto",
        constraints: Constraints | Sequence[LineConstraints] = UNCONSTRAINED,
        clean: bool = True,
        split: Splitting = "sentences",
        unknown: Unknown = "token",
        retry: bool = False,
        align: bool | Aligner = False,
        source_language: str | None = None,
        to: str | None = None,
        changes: GivenChanges | None = None,
        batch_tokens: int = BATCH_TOKENS,
        **options: Any,
    ) -> Translation | list[Translation] | Iterator[Translation]:
        """Translate one text, or many.

        A text gives one `Translation`, a list or another collection a list of them. An iterator,
        such as a generator or an open file, gives an iterator that reads a thousand texts at a
        time; the line end of each is cut.

        Texts of similar length are searched together; results come back in the given order. White
        space at the edges of a line is put around its translation, and a blank line stays as it
        is. The lines of a text with line breaks are translated one by one. A text that cannot be
        translated has no hypothesis and an ``error``; the others are translated. Each
        translation's ``notes`` say what is unusual about it.

        Args:
            texts: lines of one sentence or paragraph each, or texts of several lines.
            prefix: the beginning of every translation.
            forbid: a phrase that no translation may contain, or several.
            require: a phrase that every translation must contain, or several; for texts of one
                line.
            glossary: a file of source term, tab, target term on each line; several files; or a
                dict of these terms. The translation of a text with a source term gets its target
                term, in one of the forms that ``|`` separates, and with ``*free*`` among them
                with any ending; the result's ``terms`` say in which, or why not.
            glossary_match: the forms in which terms are found: ``exact``, ``forms`` such as a
                plural, or what suits the source language.
            constraints: the same for programs: one for all texts, or for each one, or for each a
                list with one for each of its lines.
            clean: replace or drop characters that the model has not learned, if it is known what
                it learned from (as it is for a model that `load` read).
            split: ``"sentences"`` splits a line at sentence ends if it has more sentences than the
                lines that the model learned from, or is too long for it, and joins the
                translations; ``"long"`` splits only a line that is too long for the model, and
                ``"none"`` none.
            unknown: ``"source-word"`` puts the source's word, found by attention, in the place of
                a word that the vocabulary cannot write.
            retry: search again, against repetitions, for a translation whose notes say that it
                repeats itself, is too long, unfinished, stuck or empty.
            align: link the words of each hypothesis and the source (its ``alignment``). An
                `Aligner` says how, and keeps its choice of a head for later calls.
            source_language: the language to translate from, for a model that must be told, as
                NLLB: ``fra_Latn``, ``fr`` or ``French``.
            to: the language to translate into, for a model that has several. Every line gets its
                code, such as ``>>fra<<``, instead of its own.
            changes: of the model, as for `changed`.
            batch_tokens: approximate number of positions to compute at once.
            options: decoding options such as ``beam=5``, the fields of `DecodingConfig`, on top of
                the model's defaults.

        Raises:
            ConfigurationError: the options are impossible.
            DataError: something is no text, or constraints and texts differ in number.
            InputError: an argument is impossible, or the model has no code for that language.
        """
        chosen = self if changes is None else self.changed(changes)
        how = {"clean": clean, "split": split, "unknown": unknown, "retry": retry}
        given = Phrases.read(prefix, forbid, require, glossary, constraints, glossary_match)
        to = direction(source_language, to)
        phrases = chosen._fit(given, to)
        lines = chosen._line_translation(how, align, to, batch_tokens, options)
        if isinstance(texts, str):
            return lines.translate([texts], phrases.for_texts([texts]))[0]
        if isinstance(texts, Iterator):
            return lines.translate_lazily(texts, phrases.for_texts)
        several = list_texts("texts", texts)
        return lines.translate(several, phrases.for_texts(several))

    def _fit(self, phrases: Phrases, to: str | None) -> Phrases:
        """Put the terms of a glossary into the forms of the source language."""
        if phrases.glossary is None:
            return phrases
        fitted = fit_glossary(phrases.glossary, self.tokenizer, self.languages, to)
        return replace(phrases, glossary=fitted)

    def _line_translation(
        self,
        treatment: Mapping[str, Any],
        align: bool | Aligner,
        to: str | None,
        batch_tokens: int,
        options: Mapping[str, Any],
    ) -> LineTranslation:
        """Gather what decides how lines are translated, and check it."""
        how = validate(TreatmentConfig, treatment, "")
        check_count("batch_tokens", batch_tokens)
        config = self.options(**options)
        again = config
        if how.retry:
            again = self.options(**{**options, **against_repetition(config)})
        aligner = None
        if align is not False:
            from pellucid.translate.links.aligning import Aligner

            check_kind("align", align, bool | Aligner, "True, False or an Aligner")
            aligner = self.aligner() if isinstance(align, bool) else align
        reader = self.attention_reader()
        writer = TranslationWriter(
            reader, self._preparer.learned, how.unknown, self._bundle, self.decoder.change
        )
        return LineTranslation(
            self._preparer,
            self.decoder,
            writer,
            config,
            again,
            how,
            aligner,
            to,
            batch_tokens,
        )

    @named()
    def stream(
        self,
        text: str,
        *,
        prefix: str = "",
        forbid: str | Sequence[str] = (),
        require: str | Sequence[str] = (),
        glossary: GivenGlossary | None = None,
        glossary_match: Match = "auto",
        constraints: LineConstraints = UNCONSTRAINED,
        clean: bool = True,
        split: Splitting = "sentences",
        source_language: str | None = None,
        to: str | None = None,
        **options: Unpack[DecodingOptions],
    ) -> TranslationStream:
        """Translate one text and yield it piece by piece, as soon as it is decided.

        With a beam, text is decided once all hypotheses agree on it. After the last piece the
        result's ``translation`` has the scores and the notes. All arguments are those of
        `translate`, except those that ask for several hypotheses.

        Raises:
            DataError: the text is none.
            InputError: an argument is impossible, or the text cannot be translated.
        """
        given = Phrases.read(
            prefix, forbid, require, glossary, as_list(constraints), glossary_match
        )
        to = direction(source_language, to)
        phrases = self._fit(given, to)
        refuse_several(options, "stream")
        check_kind("split", split, Splitting)
        how = Treatment(clean, split)
        line, hidden, config = self._prepare_line(text, phrases, how, to, options)
        writer = TranslationWriter(
            self.attention_reader(),
            self._preparer.learned,
            bundle=self._bundle,
            change=self.decoder.change,
        )
        found: list[tuple[Hypothesis, ...]] = []
        pieces = hidden.show_pieces(stream_line(self.decoder, line, config, writer, found))

        def finish() -> Translation:
            written = writer.translations([line], found, config)
            shown = hidden.show(with_sources(written, [text], to), [text])[0]
            (own,) = constraints_of_each(phrases.for_texts([text]), 1)
            return replace(shown, terms=used_terms(own, text, shown.text))

        return TranslationStream(filter(None, pieces), finish)

    @named()
    def aligner(self, units: UnitRule = "auto", head: str | None = None) -> Aligner:
        """Make what links the words of translations, for several calls of `translate`.

        Args:
            units: how lines are cut into the words that links count.
            head: the head to read links from, such as ``decoder.1.cross.0``; ``decoder.1`` is the
                mean of a layer; chosen unless given.

        Raises:
            InputError: the head does not exist.
        """
        from pellucid.translate.links.aligning import Aligner

        check_kind("units", units, UnitRule)
        return Aligner(self.attention_reader(), units, *cross_head(head))

    def attention_reader(self) -> AttentionReader:
        """Make what computes the attention of given pairs, in C if the engine can."""
        return AttentionReader(
            self.decoder, self.config, self.tokenizer, lambda: self.model, self._bundle
        )

    def _prepare_line(
        self,
        text: str,
        phrases: Phrases,
        how: Treatment,
        to: str | None,
        options: Mapping[str, Any],
    ) -> tuple[Ready, Hidden, DecodingConfig]:
        """Make one text ready for a search with some options."""
        check_text("text", text)
        config = self.options(**options)
        (own,) = constraints_of_each(phrases.for_texts([text]), 1)
        # What is written piece by piece cannot be searched for again.
        own = require_terms(own, text)
        return (*self._preparer.prepare_line(text, own, config, how, to), config)


def examine(
    translator: TextTranslator,
    text: str,
    *,
    constraints: LineConstraints = UNCONSTRAINED,
    clean: bool = True,
    split: Splitting = "sentences",
    to: str | None = None,
    **options: Any,
) -> Notes:
    """Say what is unusual about a line, without translating it; see `TextTranslator.stream`."""
    phrases = Phrases.read("", (), (), None, as_list(constraints))
    how = Treatment(clean, split)
    return translator._prepare_line(text, phrases, how, to, options)[0].notes
