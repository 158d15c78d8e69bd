"""A loaded model that takes text and gives text."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from pellucid.arguments import check_count, check_kind, check_text, list_pairs, list_texts, refuse
from pellucid.bundle import Bundle, open_bundle, resolve_model
from pellucid.config import DecodingConfig, ModelConfig, TreatmentConfig, validate
from pellucid.config.typed_options import DecodingOptions
from pellucid.decode.constraints.build_request import RequestBuilder
from pellucid.decode.constraints.request import Constraints, LineConstraints
from pellucid.decode.decoder import Decoder, make_decoder
from pellucid.decode.native import StoredModel
from pellucid.errors import InputError
from pellucid.machine.hardware import set_threads, use_threads
from pellucid.native.precision import configure_fastest, put_on_top, read_precisions
from pellucid.text.language_tokens import with_codes
from pellucid.text.learned import LearnedText
from pellucid.text.link_choices import Symmetrization, UnitRule
from pellucid.text.tokenizers.tokenizer import Tokenizer
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
)
from pellucid.translate.judging import against_repetition
from pellucid.translate.line_translation import LineTranslation
from pellucid.translate.masking import Hidden
from pellucid.translate.model_weights import check_vocabularies, find_stored
from pellucid.translate.preparing import Preparer, Ready, Treatment, constraints_of_each
from pellucid.translate.results import ModelLanguages, Notes, Scored, Translation
from pellucid.translate.written_lines import (
    TranslationWriter,
    Unknown,
    stream_line,
    with_sources,
)

if TYPE_CHECKING:
    from pellucid.attention.probe import Probe
    from pellucid.inside.ask import Ask
    from pellucid.inside.changes.changed_decoding import ReplayDecoder
    from pellucid.inside.changes.given_changes import GivenChanges
    from pellucid.inside.line_traces import Replaying
    from pellucid.inside.measures.contrast import Contrast
    from pellucid.inside.sentence_pair import Pair
    from pellucid.inside.traces import Trace
    from pellucid.model import EncoderDecoder
    from pellucid.translate.aligning import Aligner
    from pellucid.translate.pair_links import PairLinks

BATCH_TOKENS = 4096


class Translator:
    """Translate, score and look inside with one model, or with several together.

    `pellucid.load` makes one. Several threads may use it at once. As a context manager it gives
    the memory of its weights back at the end.

    Args:
        model: the weights; those of a stored model are loaded for PyTorch only if need be.
        tokenizer: text to ids and back.
        decoding: default options of a translation.
        bundle: the bundle that the model was loaded from, if any.
        others: further models with the same vocabulary; all softmaxes are averaged.
        other_hashes: the hashes of those that were loaded from disk.
        learned: the text that the model learned from; unless given, lines are neither cleaned nor
            split nor judged.
    """

    def __init__(
        self,
        model: EncoderDecoder | StoredModel,
        tokenizer: Tokenizer,
        *,
        decoding: DecodingConfig | None = None,
        bundle: Bundle | None = None,
        others: Sequence[EncoderDecoder] = (),
        other_hashes: Sequence[str] = (),
        learned: LearnedText | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.decoding = decoding or DecodingConfig()
        self.bundle = bundle
        self.other_hashes = tuple(other_hashes)
        self._given = (model, *others)
        # In an ensemble the shortest limits hold, so it needs every configuration.
        self._request_builder = RequestBuilder(tokenizer, [one.config for one in self._given])
        has_vector = not model.config.has_attention
        self._preparer = Preparer(tokenizer, self._request_builder, learned, has_vector=has_vector)
        self.decoder: Decoder | ReplayDecoder = make_decoder(self._given, tokenizer)
        self.changes: Probe | None = None
        self._measured = {} if bundle is None else read_precisions(bundle.manifest)
        self._plain: tuple[DecodingConfig, DecodingConfig] | None = None

    def __repr__(self) -> str:
        name = "a model in memory" if self.bundle is None else self.bundle.folder.name
        more = f" and {len(self._given) - 1} more" if len(self._given) > 1 else ""
        languages = self.languages
        pair = f", {languages.source} to {languages.target}" if languages.source else ""
        config = self.config
        layers = f"{config.num_encoder_layers}+{config.num_decoder_layers} layers"
        changed = ", changed" if self.changes is not None else ""
        return f"<Translator {name}{more}{pair}, {layers} of width {config.d_model}{changed}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Weights, and what the engine prepared of them, are held by nothing else.
        self.__dict__.clear()

    def __getattr__(self, name: str) -> Any:
        # Only reached for names that are not there. Copying asks for special ones.
        if not self.__dict__ and not name.startswith("__"):
            raise InputError(
                "This translator was closed with its with block. Load the model again."
            )
        raise AttributeError(f"'Translator' object has no attribute {name!r}", name=name, obj=self)

    @property
    def languages(self) -> ModelLanguages:
        """The languages of the model."""
        targets = tuple(code[2:-2] for code in self.tokenizer.language_codes)
        if self.bundle is None:
            return ModelLanguages("", "", targets)
        languages = self.bundle.config.languages
        return ModelLanguages(languages.source, languages.target, targets)

    @property
    def model(self) -> EncoderDecoder:
        """The only model, or the first of several, for PyTorch."""
        return self._models[0]

    @property
    def config(self) -> ModelConfig:
        """The configuration of the only model, or of the first."""
        return self._given[0].config

    @property
    def is_ensemble(self) -> bool:
        """True for several models together."""
        return len(self._given) > 1

    @cached_property
    def _models(self) -> tuple[EncoderDecoder, ...]:
        return tuple(one.load() if isinstance(one, StoredModel) else one for one in self._given)

    def changed(self, changes: GivenChanges) -> Translator:
        """Return a translator of the same model under changes, by default in float32.

        Changes are a text such as ``"cut decoder.1.cross.0"``, several, or a probe. Cuts of whole
        heads of a Transformer keep the engine in C and every search. With other changes each line
        is decoded greedily by the replay, which is slow.

        Raises:
            InputError: a change names what the model does not have, or there are several models.
        """
        from pellucid.inside.changes.cutting import change_model
        from pellucid.inside.changes.given_changes import join_probes, read_changes

        if len(self._given) > 1:
            raise InputError("Changes need one model. Leave the others out.")
        # The copy shares the tokenizer and the text learned from; only the model differs.
        found = copy.copy(self)
        found.changes = join_probes(self.changes, read_changes(changes, self.config))
        assert found.changes is not None
        model, found.decoder = change_model(self.model, self.tokenizer, found.changes)
        found.decoding = self.decoding.greedy() if found.decoder.is_slow else self.decoding
        found._given = (model,)
        # The cached property came along with the old models in it.
        found.__dict__["_models"] = (model,)
        # The precisions were measured without the changes.
        found._measured = {}
        found._plain = None
        return found

    def options(self, **options: Unpack[DecodingOptions]) -> DecodingConfig:
        """Return all decoding options of a call: the given ones on top of the model's defaults.

        Sampling replaces a beam that only the defaults ask for, and a beam such sampling.

        Raises:
            ConfigurationError: an option is unknown, impossible, or contradicts another.
        """
        # Most calls give no options. The result holds as long as the defaults are this object.
        if not options and self._plain is not None and self._plain[0] is self.decoding:
            return self._plain[1]
        check_names(options, self.translate)
        find_obstacle = self.decoder.find_obstacle
        found = configure_fastest(self.decoding, options, self._measured, find_obstacle)
        if not options:
            self._plain = self.decoding, found
        return found

    def describe_engine(self, rule: str | None = None, **options: Any) -> str:
        """Describe what translates: one call of the engine in C, its steps, or PyTorch.

        Args:
            rule: what lines ask for beyond the options, such as "phrases are required".
            options: fields of the decoding options.
        """
        return self.decoder.describe(self.options(**options), rule)

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

    def translate(
        self,
        texts: str | Iterable[str],
        *,
        prefix: str = "",
        forbid: str | Sequence[str] = (),
        require: str | Sequence[str] = (),
        glossary: GivenGlossary | None = None,
        constraints: Constraints | Sequence[LineConstraints] = UNCONSTRAINED,
        clean: bool = True,
        split: bool = True,
        split_long: bool = False,
        unknown: Unknown = "token",
        retry: bool = False,
        align: bool | Aligner = False,
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
                dict of these terms. A text with a source term gets its target term.
            constraints: the same for programs: one for all texts, or for each one, or for each a
                list with one for each of its lines.
            clean: replace or drop characters that the model has not learned, if it is known what
                it learned from (as it is for a model that `load` read).
            split: split a line at sentence ends if it has more sentences than the lines that the
                model learned from, or is too long for it, and join the translations.
            split_long: split only a line that is too long for the model.
            unknown: ``"source-word"`` puts the source's word, found by attention, in the place of
                a word that the vocabulary cannot write.
            retry: search again, against repetitions, for a translation whose notes say that it
                repeats itself, is too long, unfinished, stuck or empty.
            align: link the words of each hypothesis and the source (its ``alignment``). An
                `Aligner` says how, and keeps its choice of a head for later calls.
            to: the language whose code, such as ``>>fra<<``, every line gets instead of its code.
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
        how: dict[str, Any] = {"clean": clean, "split": split, "split_long": split_long}
        how |= {"unknown": unknown, "retry": retry}
        phrases = chosen._phrases(prefix, forbid, require, glossary, constraints)
        lines = chosen._line_translation(how, align, to, batch_tokens, options)
        if isinstance(texts, str):
            return lines.translate([texts], phrases.for_texts([texts]))[0]
        if isinstance(texts, Iterator):
            return lines.translate_lazily(texts, phrases.for_texts)
        several = list_texts("texts", texts)
        return lines.translate(several, phrases.for_texts(several))

    def _phrases(
        self,
        prefix: str,
        forbid: str | Sequence[str],
        require: str | Sequence[str],
        glossary: GivenGlossary | None,
        constraints: Constraints | Sequence[LineConstraints],
    ) -> Phrases:
        """Read the phrases of a call, with the glossary's terms in the forms of the language."""
        found = Phrases.read(prefix, forbid, require, glossary, constraints)
        if found.glossary is None:
            return found
        fitted = fit_glossary(found.glossary, self.tokenizer, self.languages.source)
        return replace(found, glossary=fitted)

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
            from pellucid.translate.aligning import Aligner

            check_kind("align", align, bool | Aligner, "True, False or an Aligner")
            aligner = self.aligner() if isinstance(align, bool) else align
        reader = self.attention_reader()
        writer = TranslationWriter(reader, self._preparer.learned, how.unknown, self.bundle)
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

    def stream(
        self,
        text: str,
        *,
        prefix: str = "",
        forbid: str | Sequence[str] = (),
        require: str | Sequence[str] = (),
        glossary: GivenGlossary | None = None,
        constraints: LineConstraints = UNCONSTRAINED,
        clean: bool = True,
        split: bool = True,
        split_long: bool = False,
        to: str | None = None,
        **options: Unpack[DecodingOptions],
    ) -> Iterator[str]:
        """Translate one text and yield it piece by piece, as soon as it is decided.

        With a beam, text is decided once all hypotheses agree on it. All arguments are those of
        `translate`, except those that ask for several hypotheses.

        Raises:
            DataError: the text is none.
            InputError: an argument is impossible, or the text cannot be translated.
        """
        phrases = self._phrases(prefix, forbid, require, glossary, as_list(constraints))
        refuse_several(options, "stream")
        how = Treatment(clean, split, split_long)
        line, hidden, config = self._prepare_line(text, phrases, how, to, options)
        # Nothing is judged: text that is already out cannot be searched for again.
        writer = TranslationWriter(self.attention_reader(), None)
        return filter(None, hidden.show_pieces(stream_line(self.decoder, line, config, writer)))

    def aligner(self, units: UnitRule = "auto", head: str | None = None) -> Aligner:
        """Make what links the words of translations, for several calls of `translate`.

        Args:
            units: how lines are cut into the words that links count.
            head: the head to read links from, such as ``decoder.1.cross.0``; ``decoder.1`` is the
                mean of a layer; chosen unless given.

        Raises:
            InputError: the head does not exist.
        """
        from pellucid.translate.aligning import Aligner

        check_kind("units", units, UnitRule)
        layer, number = cross_head(head)
        return Aligner(
            self.model, self.tokenizer, bundle=self.bundle, units=units, layer=layer, head=number
        )

    @overload
    def align(  # type: ignore[overload-overlap]  # a text is an iterable of texts, too
        self,
        sources: str,
        targets: str,
        *,
        head: str | None = None,
        words: UnitRule = "auto",
        reverse: Translator | None = None,
        symmetrize: Symmetrization = "grow-diag-final",
    ) -> PairLinks: ...

    @overload
    def align(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        *,
        head: str | None = None,
        words: UnitRule = "auto",
        reverse: Translator | None = None,
        symmetrize: Symmetrization = "grow-diag-final",
    ) -> list[PairLinks]: ...

    def align(
        self,
        sources: str | Iterable[str],
        targets: str | Iterable[str],
        *,
        head: str | None = None,
        words: UnitRule = "auto",
        reverse: Translator | None = None,
        symmetrize: Symmetrization = "grow-diag-final",
    ) -> PairLinks | list[PairLinks]:
        """Link the words of given translations and their sources, by cross-attention.

        Two texts give one `PairLinks`, two collections a list. Unless a head is named, links are
        read from the head that was taught them; or, given 50 pairs or more, from the view with the
        most consistent links; or else from the mean of the last layer's heads.

        Args:
            sources: the line, or several.
            targets: a translation of each.
            head: the head to read links from, such as ``decoder.1.cross.0``; ``decoder.1`` is the
                mean of a layer.
            words: how lines are cut into the words that links count.
            reverse: a translator from the target into the source, whose links are joined with
                these.
            symmetrize: how they are joined.

        Raises:
            DataError: something is no text, or sources and targets differ in number.
            InputError: the head does not exist, or there are several models.
        """
        from pellucid.translate.pair_links import align_texts

        is_one, given, each = list_pairs(sources, targets)
        check_kind("words", words, UnitRule)
        check_kind("symmetrize", symmetrize, Symmetrization)
        bundles = [self.own_bundle]
        if reverse is not None:
            check_kind("reverse", reverse, Translator, "a Translator")
            bundles.append(reverse.own_bundle)
        found = align_texts(bundles, cross_head(head), given, each, words, symmetrize)
        return found[0] if is_one else found

    def attention_reader(self) -> AttentionReader:
        """Make what computes the attention of given pairs, in C if the engine can."""
        return AttentionReader(self.decoder, self.config, self.tokenizer, lambda: self.model)

    def examine(
        self,
        text: str,
        *,
        constraints: LineConstraints = UNCONSTRAINED,
        clean: bool = True,
        split: bool = True,
        split_long: bool = False,
        to: str | None = None,
        **options: Any,
    ) -> Notes:
        """Say what is unusual about a line, without translating it; arguments as for `stream`."""
        phrases = Phrases.read("", (), (), None, as_list(constraints))
        how = Treatment(clean, split, split_long)
        return self._prepare_line(text, phrases, how, to, options)[0].notes

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
        return (*self._preparer.prepare_line(text, own, config, how, to), config)

    @overload
    def score(  # type: ignore[overload-overlap]  # a text is an iterable of texts, too
        self,
        sources: str,
        targets: str,
        *,
        to: str | None = None,
        changes: GivenChanges | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> Scored: ...

    @overload
    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        *,
        to: str | None = None,
        changes: GivenChanges | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[Scored]: ...

    def score(
        self,
        sources: str | Iterable[str],
        targets: str | Iterable[str],
        *,
        to: str | None = None,
        changes: GivenChanges | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> Scored | list[Scored]:
        """Compute log-probabilities of given translations, in float32.

        Two texts give one `Scored`, two collections a list.

        Args:
            sources: the line to translate, or several.
            targets: a translation of each; an empty one is only ``</s>``.
            to: as for `translate`.
            changes: as for `changed`.
            batch_tokens: maximum number of positions of one side to compute at once.

        Raises:
            DataError: something is no text, or sources and targets differ in number.
        """
        from pellucid.translate.text_scoring import score_pairs

        check_count("batch_tokens", batch_tokens)
        is_one, given, each = list_pairs(sources, targets)
        coded = with_codes(self.tokenizer, to, given)
        builder = self._request_builder
        decoder = self.decoder if changes is None else self.changed(changes).decoder
        scored = score_pairs(
            decoder, self.tokenizer, coded, each, builder=builder, batch_tokens=batch_tokens
        )
        scored = with_sources(scored, given, to)
        return scored[0] if is_one else scored

    def look(
        self,
        text: str,
        *,
        target: str | None = None,
        ask: Ask | str | None = None,
        everything: bool = False,
        float64: bool = False,
        changes: GivenChanges | None = None,
        to: str | None = None,
        **options: Any,
    ) -> Trace:
        """Look inside the best translation of a line, or inside a given target.

        Args:
            text: the line.
            target: a translation to look at instead of decoding one.
            ask: arrays to keep, or an address such as ``decoder.1``; all attention weights unless
                given.
            everything: keep every stage, so that nothing is missing from token to token.
            float64: keep arrays in double precision instead of rounding them to float32.
            changes: what changes during the replay, as for `translate`. The line is translated
                without them; ``t.changed(changes).look(text)`` also translates under them.
            to: as for `translate`; the trace shows the code, which the model reads.
            options: as for `look_at_each`.

        Raises:
            InputError: the line is empty or cannot be translated, ``ask`` names something that
                does not exist, or arguments contradict each other.
        """
        from pellucid.translate.looking_inside import look_inside

        check_names(options, self.look)
        return look_inside(
            self,
            text,
            target=target,
            ask=ask,
            everything=everything,
            float64=float64,
            changes=changes,
            to=to,
            options=options,
        )

    def look_at_each(
        self,
        texts: Sequence[str],
        how: Replaying | None = None,
        *,
        constraints: Constraints | Sequence[Constraints] = UNCONSTRAINED,
        **options: Any,
    ) -> Iterator[list[Trace]]:
        """Look inside every hypothesis of every line: a list of traces per line, the best first.

        Lines are decoded in float32 unless ``precision`` says otherwise.

        Args:
            texts: the lines.
            how: arrays to keep, and where; all attention weights unless given.
            constraints: what the translations may and must contain.
            options: fields of `DecodingConfig`, on top of the model's defaults.

        Raises:
            InputError: a line is empty or cannot be translated, or ``how`` names something that
                does not exist.
        """
        from pellucid.translate.looking_inside import look_at_lines

        yield from look_at_lines(self, texts, how, constraints=constraints, options=options)

    def pair(
        self,
        text: str,
        target: str | None = None,
        *,
        changes: GivenChanges | None = None,
        float64: bool = False,
        to: str | None = None,
        **options: Any,
    ) -> Pair:
        """Pair a line with its translation, to measure, change and patch it.

        Args:
            text: the line.
            target: a translation; the model's own unless given.
            changes: what changes every run of the pair, as for `translate`. The line is translated
                without them, and measures take only unchanged pairs.
            float64: compute in double precision.
            to: as for `translate`.
            options: fields of `DecodingConfig`, on top of the model's defaults.

        Raises:
            InputError: the line is empty or cannot be translated, or arguments contradict each
                other.
        """
        from pellucid.translate.looking_inside import pair_of_line

        return pair_of_line(
            self, text, target, changes=changes, float64=float64, to=to, options=options
        )

    def why(
        self,
        text: str,
        word: str,
        other: str | None = None,
        *,
        target: str | None = None,
        **options: Any,
    ) -> Contrast:
        """Explain why the model writes a word, and not another one; see `Pair.why`.

        Args:
            text: the line.
            word: a word of its translation, or its number, from 0.
            other: what might stand there instead; the word that the model finds likeliest after
                the one that it writes unless given.
            target: a translation; the model's own unless given.
            options: as for `pair`.

        Raises:
            InputError: the line cannot be translated, its translation has no such word, or several,
                or the other one cannot be compared.
        """
        return self.pair(text, target, **options).why(word, other)

    @property
    def own_bundle(self) -> Bundle:
        """The bundle of the only model, which looking inside needs.

        Raises:
            InputError: the model was not loaded from disk, or there are several.
        """
        if self.bundle is None or self.is_ensemble or self.changes is not None:
            raise InputError(
                "Looking inside needs one model that was loaded from disk, but this is a model in "
                "memory, a changed model or an ensemble. Load one model."
            )
        return self.bundle


def load(
    model: str | Path,
    *,
    threads: int | None = None,
    ensemble: Sequence[str | Path] = (),
    **decoding: Unpack[DecodingOptions],
) -> Translator:
    """Load a model to translate with.

    Args:
        model: a bundle folder, a run folder, or the word ``demo``.
        threads: processor threads to use; unless given as before, at first as the machine allows.
        ensemble: further models with the same vocabulary, whose softmaxes are averaged with its.
        decoding: decoding options of every call, such as ``beam=5``, the fields of
            `DecodingConfig`. The ``precision`` is ``auto`` unless given: the fastest of those that
            cost next to nothing on validation text.

    Raises:
        InputFileNotFoundError: a folder does not exist.
        BundleError: a folder is damaged, incomplete, or not a bundle.
        InputError: an argument has the wrong type, or the models of an ensemble have different
            vocabularies.
        ConfigurationError: an option is impossible, or the number of threads out of range.
    """
    check_names(decoding, load)
    several = ensemble if isinstance(ensemble, Sequence) and not isinstance(ensemble, str) else None
    if several is None:
        refuse("ensemble", "a list of models", ensemble)
    for name, one in (("model", model), *(("ensemble", one) for one in several)):
        check_kind(name, one, str | Path, "the name of a model or its folder")
    if threads is not None:
        check_count("threads", threads)
    use_threads(threads)
    bundles = [open_bundle(resolve_model(name)) for name in (model, *several)]
    bundle, *others = bundles
    defaults = bundle.config.decoding
    settings = put_on_top(defaults, decoding)
    is_named = settings["precision"] != "auto" and "precision" in decoding
    if settings["precision"] == "auto":
        settings["precision"] = defaults.precision
    configuration = validate(DecodingConfig, settings, "")
    stored = None if others else find_stored(bundle, threads)
    # This imports PyTorch, which stored weights do not need until they are loaded.
    if stored is None:
        set_threads(threads)
    check_vocabularies(bundles)
    translator = Translator(
        stored or bundle.model,
        bundle.tokenizer,
        decoding=configuration,
        bundle=bundle,
        others=[other.model for other in others],
        other_hashes=[other.model_hash for other in others],
        learned=LearnedText.read(bundle.manifest, bundle.tokenizer),
    )
    if is_named:
        # A precision that the user named is not replaced by the fastest one measured.
        translator._measured = {}
    return translator
