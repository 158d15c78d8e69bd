"""A loaded model that takes text and gives text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from pellucid.arguments import check_count, check_kind, list_pairs, list_texts, named, refuse
from pellucid.bundle import open_bundle, resolve_model
from pellucid.config.typed_options import DecodingOptions
from pellucid.decode.constraints.request import Constraints
from pellucid.errors import need_library
from pellucid.languages.codes import direction
from pellucid.machine.devices import device_in_use, resolve_device
from pellucid.machine.hardware import set_threads, use_threads
from pellucid.text.language_tokens import with_codes
from pellucid.text.learned import LearnedText
from pellucid.text.link_choices import Symmetrization, UnitRule
from pellucid.translate.call_options import check_names, cross_head
from pellucid.translate.constraints import UNCONSTRAINED
from pellucid.translate.model_weights import check_vocabularies, explain_pytorch, find_stored
from pellucid.translate.results import Scored
from pellucid.translate.text_translator import BATCH_TOKENS, TextTranslator
from pellucid.translate.written_lines import with_sources

if TYPE_CHECKING:
    from pellucid.inside.ask import Ask
    from pellucid.inside.changes.given_changes import GivenChanges
    from pellucid.inside.line_traces import Replaying
    from pellucid.inside.measures.contrast import Contrast
    from pellucid.inside.sentence_pair import Pair
    from pellucid.inside.traces import Trace
    from pellucid.translate.links.pair_links import PairLinks


class Translator(TextTranslator):
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
        changes: GivenChanges | None = None,
        source_language: str | None = None,
        to: str | None = None,
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
        changes: GivenChanges | None = None,
        source_language: str | None = None,
        to: str | None = None,
    ) -> list[PairLinks]: ...

    @named()
    def align(
        self,
        sources: str | Iterable[str],
        targets: str | Iterable[str],
        *,
        head: str | None = None,
        words: UnitRule = "auto",
        reverse: Translator | None = None,
        symmetrize: Symmetrization = "grow-diag-final",
        changes: GivenChanges | None = None,
        source_language: str | None = None,
        to: str | None = None,
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
            changes: as for `changed`; ``reverse`` stays as it is.
            source_language: as for `translate`; ``reverse`` reads and writes them the other way.
            to: as for `translate`.

        Raises:
            DataError: something is no text, or sources and targets differ in number.
            InputError: the head does not exist, there are several models, or a change cannot be
                made.
        """
        from pellucid.translate.links.pair_links import align_texts
        from pellucid.translate.looking_inside import bundle_to_look_at

        is_one, given, each = list_pairs(sources, targets)
        check_kind("words", words, UnitRule)
        check_kind("symmetrize", symmetrize, Symmetrization)
        models: list[Translator] = [self if changes is None else self.changed(changes)]
        if reverse is not None:
            check_kind("reverse", reverse, Translator, "a Translator")
            models.append(reverse)
        found = align_texts(
            [(bundle_to_look_at(one), one.changes) for one in models],
            cross_head(head),
            given,
            each,
            words,
            symmetrize,
            direction(source_language, to),
        )
        return found[0] if is_one else found

    @overload
    def score(  # type: ignore[overload-overlap]  # a text is an iterable of texts, too
        self,
        sources: str,
        targets: str,
        *,
        source_language: str | None = None,
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
        source_language: str | None = None,
        to: str | None = None,
        changes: GivenChanges | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[Scored]: ...

    @named()
    def score(
        self,
        sources: str | Iterable[str],
        targets: str | Iterable[str],
        *,
        source_language: str | None = None,
        to: str | None = None,
        changes: GivenChanges | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> Scored | list[Scored]:
        """Compute log-probabilities of given translations, in float32.

        Two texts give one `Scored`, two collections a list.

        Args:
            sources: the line to translate, or several.
            targets: a translation of each; an empty one is only ``</s>``.
            source_language: as for `translate`.
            to: as for `translate`.
            changes: as for `changed`.
            batch_tokens: maximum number of positions of one side to compute at once.

        Raises:
            DataError: something is no text, or sources and targets differ in number.
        """
        from pellucid.translate.text_scoring import score_pairs

        check_count("batch_tokens", batch_tokens)
        is_one, given, each = list_pairs(sources, targets)
        to = direction(source_language, to)
        coded = with_codes(self.tokenizer, to, given)
        builder = self._request_builder
        decoder = self.decoder if changes is None else self.changed(changes).decoder
        scored = score_pairs(
            decoder, self.tokenizer, coded, each, builder=builder, batch_tokens=batch_tokens
        )
        scored = with_sources(scored, given, to)
        return scored[0] if is_one else scored

    @named()
    def look(
        self,
        text: str,
        *,
        translation: str | None = None,
        ask: Ask | str | None = None,
        everything: bool = False,
        float64: bool = False,
        changes: GivenChanges | None = None,
        decode_changed: bool = False,
        source_language: str | None = None,
        to: str | None = None,
        **options: Any,
    ) -> Trace:
        """Look inside the best translation of a line, or inside a given one.

        Args:
            text: the line.
            translation: the text to look at instead of decoding one.
            ask: arrays to keep, or an address such as ``decoder.1``; all attention weights unless
                given.
            everything: keep every stage, so that nothing is missing from token to token.
            float64: keep arrays in double precision instead of rounding them to float32.
            changes: what changes during the replay, as for `translate`; words of the line, too.
            decode_changed: translate under the changes, too; otherwise the trace is of what the
                unchanged model writes.
            source_language: as for `translate`.
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
            translation=translation,
            ask=ask,
            everything=everything,
            float64=float64,
            changes=changes,
            decode_changed=decode_changed,
            to=direction(source_language, to),
            options=options,
        )

    @named()
    def look_at_each(
        self,
        texts: Sequence[str],
        how: Replaying | None = None,
        *,
        constraints: Constraints | Sequence[Constraints] = UNCONSTRAINED,
        source_language: str | None = None,
        to: str | None = None,
        **options: Any,
    ) -> Iterator[list[Trace]]:
        """Look inside every hypothesis of every line: a list of traces per line, the best first.

        Lines are decoded as `translate` does, and replayed in float32.

        Args:
            texts: the lines.
            how: arrays to keep, and where; all attention weights unless given.
            constraints: what the translations may and must contain.
            source_language: as for `translate`.
            to: as for `translate`.
            options: fields of `DecodingConfig`, on top of the model's defaults.

        Raises:
            InputError: a line is empty or cannot be translated, or ``how`` names something that
                does not exist.
        """
        from pellucid.translate.looking_inside import look_at_lines

        coded = with_codes(
            self.tokenizer, direction(source_language, to), list_texts("texts", texts)
        )
        yield from look_at_lines(self, coded, how, constraints=constraints, options=options)

    @named()
    def pair(
        self,
        text: str,
        translation: str | None = None,
        *,
        changes: GivenChanges | None = None,
        float64: bool = False,
        source_language: str | None = None,
        to: str | None = None,
        **options: Any,
    ) -> Pair:
        """Pair a line with its translation, to measure, change and patch it.

        Args:
            text: the line.
            translation: its text; the model's own unless given.
            changes: what changes every run of the pair, as for `translate`. The line is translated
                without them. Some measures take cuts of whole heads only.
            float64: compute in double precision.
            source_language: as for `translate`.
            to: as for `translate`.
            options: fields of `DecodingConfig`, on top of the model's defaults.

        Raises:
            InputError: the line is empty or cannot be translated, or arguments contradict each
                other.
        """
        from pellucid.translate.looking_inside import pair_of_line

        check_names(options, self.pair)
        return pair_of_line(
            self,
            text,
            translation,
            changes=changes,
            float64=float64,
            to=direction(source_language, to),
            options=options,
        )

    @named()
    def why(
        self,
        text: str,
        word: str | int,
        other: str | None = None,
        *,
        translation: str | None = None,
        **options: Any,
    ) -> Contrast:
        """Explain why the model writes a word, and not another one; see `Pair.why`.

        Args:
            text: the line.
            word: a word of its translation, or its number, from 0.
            other: what might stand there instead; the word that the model finds likeliest after
                the one that it writes unless given.
            translation: its text; the model's own unless given.
            options: as for `pair`.

        Raises:
            InputError: the line cannot be translated, its translation has no such word, or several,
                or the other one cannot be compared.
        """
        from pellucid.inside.measures.contrast import find_contrast

        pair = self.pair(text, translation, **options)
        if translation is None:
            return pair.why(word, other)
        # A word that the model does not know is named as it was given, and not as <unk>.
        return find_contrast(pair, translation, str(word), other)


@named()
def load(
    model: str | Path,
    *,
    threads: int | None = None,
    device: str | None = None,
    ensemble: Sequence[str | Path] = (),
    **decoding: Unpack[DecodingOptions],
) -> Translator:
    """Load a model to translate with.

    Args:
        model: a bundle folder, a run folder, or the word ``demo``.
        threads: processor threads to use; unless given as before, at first as the machine allows.
        device: ``cpu``, ``cuda``, ``cuda:N``, or ``auto`` for a CUDA device if one works; the
            processor unless given, which writes the same words as everywhere else.
        ensemble: further models with the same vocabulary, whose softmaxes are averaged with its.
        decoding: decoding options of every call, such as ``beam=5``, the fields of
            `DecodingConfig`, on top of the model's defaults. In another ``precision`` than the
            model's own a translation may have other words; its notes then name the precision.

    Raises:
        InputFileNotFoundError: a folder does not exist.
        BundleError: a folder is damaged, incomplete, or not a bundle.
        InputError: an argument has the wrong type, or the models of an ensemble have different
            vocabularies.
        ConfigurationError: an option is impossible, the number of threads out of range, or there is
            no such device.
        PellucidError: the device does not work.
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
    if device is None:
        place = device_in_use()
    else:
        check_kind("device", device, str, "the name of a device")
        # A device that does not work shows before files are read.
        place = resolve_device(device)
    bundles = [open_bundle(resolve_model(name), place) for name in (model, *several)]
    bundle, *others = bundles
    configuration = bundle.config.decoding.with_options(decoding)
    stored = None if others else find_stored(bundle, threads)
    # PyTorch, which stored weights do not need until they are loaded.
    if stored is None:
        need_library("torch", explain_pytorch(is_ensemble=bool(others)))
        set_threads(threads)
    check_vocabularies(bundles)
    return Translator(
        stored or bundle.model,
        bundle.tokenizer,
        decoding=configuration,
        bundle=bundle,
        others=[other.model for other in others],
        other_hashes=[other.model_hash for other in others],
        learned=LearnedText.read(bundle.manifest, bundle.tokenizer),
    )
