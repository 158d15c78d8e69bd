"""A loaded model that takes text and gives text."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pellucid.bundle import Bundle, open_bundle, resolve_model
from pellucid.config import DecodingConfig, ModelConfig
from pellucid.decode.constraints.build_request import RequestBuilder
from pellucid.decode.constraints.request import Constraints, LineConstraints
from pellucid.decode.decoder import Decoder, make_decoder
from pellucid.decode.native import StoredModel
from pellucid.errors import DataError, InputError
from pellucid.machine.hardware import set_threads, use_threads
from pellucid.native.precision import AskedPrecision, configure_fastest, read_precisions
from pellucid.text.language_tokens import with_codes
from pellucid.text.learned import LearnedText
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.attended_words import AttentionReader
from pellucid.translate.judging import against_repetition, retry_flagged
from pellucid.translate.masking import hide
from pellucid.translate.model_weights import check_vocabularies, find_stored
from pellucid.translate.preparing import Preparer, Treatment, constraints_of_each
from pellucid.translate.results import Notes, Scored, Translation
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

BATCH_TOKENS = 4096
UNCONSTRAINED = Constraints()


class Translator:
    """Translate, score and look inside with one model, or with several together.

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

    def configure(self, **options: Any) -> DecodingConfig:
        """Put options on top of the model's defaults.

        Sampling replaces a beam that only the defaults ask for, and a beam such sampling.

        Raises:
            ConfigurationError: an option is unknown, impossible, or contradicts another.
        """
        # Most calls give no options. The result holds as long as the defaults are this object.
        if not options and self._plain is not None and self._plain[0] is self.decoding:
            return self._plain[1]
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
        return self.decoder.describe(self.configure(**options), rule)

    def translate(
        self,
        texts: Sequence[str],
        *,
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
    ) -> list[Translation]:
        """Translate lines.

        Lines of similar length are searched together; results come back in the given order. White
        space at the edges of a line is put around its translation, and a blank line stays as it
        is. The lines of a text with line breaks are translated one by one. A text that cannot be
        translated has no hypothesis and an ``error``; the others are translated. Each
        translation's ``notes`` say what is unusual about it.

        Args:
            texts: lines of one sentence or paragraph each, or texts of several lines.
            constraints: what translations may and must contain: one for all texts, or for each
                one, or for each a list with one for each of its lines. A prefix begins the first
                line; phrases can be required of texts of one line only, or of a single line.
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
            options: fields of `DecodingConfig`, on top of the model's defaults.

        Raises:
            ConfigurationError: the options are impossible.
            DataError: constraints and texts differ in number, or the texts are one string.
            InputError: the model has no code for that language.
        """
        if isinstance(texts, str):  # a string is a sequence too, of letters
            raise DataError("The texts must be a list of lines, but are one string.")
        # Results show the texts as they were given, without added codes and masks.
        given = texts
        texts = with_codes(self.tokenizer, to, texts)
        chosen = self if changes is None else self.changed(changes)
        config = chosen.configure(**options)
        each = constraints_of_each(constraints, len(texts))
        hidden = hide(self.tokenizer, texts, each, is_copying=unknown == "source-word")
        texts = hidden.texts
        each = hidden.constraints
        lines = self._preparer.prepare(texts, each, config, Treatment(clean, split, split_long))
        requests = [request for line in lines for request in line.requests]
        found = chosen.decoder.decode(requests, config, batch_tokens=batch_tokens)
        known = self._preparer.learned
        writer = TranslationWriter(chosen.attention_reader(), known, unknown, chosen.bundle)
        translations = writer.translations(lines, found, config)
        if align:
            from pellucid.translate.aligning import Aligner

            if isinstance(align, bool):
                align = Aligner(chosen.model, self.tokenizer, bundle=self.bundle)
            translations = align.align(lines, translations)

        def search_again(rows: Sequence[int]) -> list[Translation]:
            how: dict[str, Any] = {"clean": clean, "split": split, "split_long": split_long}
            how |= {"unknown": unknown, "align": align, "batch_tokens": batch_tokens}
            # These texts have codes and masks already; `align` is the aligner that chose.
            some = [texts[row] for row in rows], [each[row] for row in rows]
            search = {**options, **against_repetition(config)}
            return chosen.translate(some[0], constraints=some[1], **how, **search)

        if retry:
            translations = retry_flagged(translations, search_again)
        return hidden.show(with_sources(translations, given, to), given)

    def stream(
        self,
        text: str,
        *,
        constraints: LineConstraints = UNCONSTRAINED,
        clean: bool = True,
        split: bool = True,
        split_long: bool = False,
        to: str | None = None,
        **options: Any,
    ) -> Iterator[str]:
        """Translate one line and yield its text piece by piece, as soon as it is decided.

        With a beam, text is decided once all hypotheses agree on it.

        Args:
            text: the line.
            constraints: what its translation may and must contain.
            clean: as for `translate`.
            split: as for `translate`.
            split_long: as for `translate`.
            to: as for `translate`.
            options: fields of `DecodingConfig`; only the best hypothesis is returned.

        Raises:
            InputError: the line cannot be translated.
        """
        config = self.configure(**options)
        how = Treatment(clean, split, split_long)
        line, hidden = self._preparer.prepare_line(text, constraints, config, how, to)
        # Nothing is judged: text that is already out cannot be searched for again.
        writer = TranslationWriter(self.attention_reader(), None)
        yield from hidden.show_pieces(stream_line(self.decoder, line, config, writer))

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
        how = Treatment(clean, split, split_long)
        config = self.configure(**options)
        return self._preparer.prepare_line(text, constraints, config, how, to)[0].notes

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        to: str | None = None,
        changes: GivenChanges | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[Scored]:
        """Compute log-probabilities of given translations, in float32.

        Args:
            sources: the lines to translate.
            targets: a translation of each; an empty one is only ``</s>``.
            to: as for `translate`.
            changes: as for `changed`.
            batch_tokens: maximum number of positions of one side to compute at once.

        Raises:
            DataError: sources and targets differ in number.
        """
        from pellucid.translate.text_scoring import score_pairs

        coded = with_codes(self.tokenizer, to, sources)
        builder = self._request_builder
        decoder = self.decoder if changes is None else self.changed(changes).decoder
        scored = score_pairs(
            decoder, self.tokenizer, coded, targets, builder=builder, batch_tokens=batch_tokens
        )
        return with_sources(scored, sources, to)

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
        from pellucid.translate.looking import look_at_line

        return look_at_line(
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
        from pellucid.translate.looking import look_at_lines

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
        from pellucid.translate.looking import pair_of_line

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
    precision: AskedPrecision | None = None,
    ensemble: Sequence[str | Path] = (),
) -> Translator:
    """Load a model to translate with.

    Args:
        model: a bundle folder, a run folder, or the word ``demo``.
        threads: processor threads to use; unless given as before, at first as the machine allows.
        precision: precision of the products; ``auto`` unless given, as for `Translator.configure`.
        ensemble: further models with the same vocabulary, whose softmaxes are averaged with its.

    Raises:
        InputFileNotFoundError: a folder does not exist.
        BundleError: a folder is damaged, incomplete, or not a bundle.
        InputError: the models of an ensemble have different vocabularies.
        ConfigurationError: the number of threads is out of range.
    """
    use_threads(threads)
    bundles = [open_bundle(resolve_model(name)) for name in (model, *ensemble)]
    bundle, *others = bundles
    stored = None if others else find_stored(bundle, threads)
    # This imports PyTorch, which stored weights do not need until they are loaded.
    if stored is None:
        set_threads(threads)
    check_vocabularies(bundles)
    translator = Translator(
        stored or bundle.model,
        bundle.tokenizer,
        decoding=bundle.config.decoding,
        bundle=bundle,
        others=[other.model for other in others],
        other_hashes=[other.model_hash for other in others],
        learned=LearnedText.read(bundle.manifest, bundle.tokenizer),
    )
    if precision is not None and precision != "auto":
        translator.decoding = translator.configure(precision=precision)
        # A precision that the user named is not replaced by the fastest one measured.
        translator._measured = {}
    return translator
