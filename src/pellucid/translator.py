"""A loaded model that takes text and gives text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pellucid.attention.probe import Probe
from pellucid.bundle import Bundle, load_bundle, resolve_model
from pellucid.config import DecodingConfig, Precision, validate
from pellucid.decode import Constraints, Decoder, Hypothesis, Request, RequestBuilder, SpecialIds
from pellucid.decode.workers import WorkerPool, is_worth
from pellucid.errors import BundleError, DataError, InputError
from pellucid.files import not_utf8
from pellucid.hardware import set_threads
from pellucid.inside.ask import Ask
from pellucid.inside.look import Replaying, look_at_given, look_at_hypotheses
from pellucid.inside.traces import Trace
from pellucid.model import Transformer
from pellucid.scoring import score_pairs
from pellucid.text import Tokenizer
from pellucid.text.sentences import split_sentences
from pellucid.translation import NOTHING, Scored, TranslatedHypothesis, Translation

__all__ = ["Translator", "load", "load_for_worker", "make_workers"]

BATCH_TOKENS = 4096
UNCONSTRAINED = Constraints()


class Translator:
    """Translate, score and look inside with one model, or with several together.

    Args:
        model: the weights.
        tokenizer: text to ids and back.
        decoding: default options of a translation.
        bundle: the bundle that the model was loaded from, if any.
        others: further models with the same vocabulary; all softmaxes are averaged.
        workers: processes that translate many lines with the same models, from `make_workers`.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        *,
        decoding: DecodingConfig | None = None,
        bundle: Bundle | None = None,
        others: Sequence[Transformer] = (),
        workers: WorkerPool | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.decoding = decoding or DecodingConfig()
        self.bundle = bundle
        self._models = (model, *others)
        self.workers = workers
        self._request_builder = RequestBuilder(tokenizer, [one.config for one in self._models])
        ids = tokenizer.config
        # Tokens that a translation never holds; models of Marian have no `<s>`.
        never = {ids.pad_id, ids.target_start_id, ids.eos_id if ids.bos_id is None else ids.bos_id}
        special = SpecialIds(ids.target_start_id, ids.eos_id, tuple(never - {ids.eos_id}))
        self.decoder = Decoder(self._models, special)

    def configure(self, **options: Any) -> DecodingConfig:
        """Put options on top of the model's defaults.

        Sampling replaces a beam that only the defaults ask for.

        Raises:
            ConfigurationError: an option is unknown, impossible, or contradicts another.
        """
        defaults = self.decoding.model_dump()
        if options.get("sample"):
            defaults |= {"beam": 1, "diverse_groups": 1, "strict": False}
        return validate(DecodingConfig, defaults | options, "options")

    def translate(
        self,
        texts: Sequence[str],
        *,
        constraints: Constraints | Sequence[Constraints] = UNCONSTRAINED,
        split_long: bool = False,
        batch_tokens: int = BATCH_TOKENS,
        **options: Any,
    ) -> list[Translation]:
        """Translate lines.

        Lines of similar length are searched together; results come back in the given order. A
        blank line has an empty translation. A line that cannot be translated has no hypothesis
        and an ``error``; the others are translated.

        Args:
            texts: lines of one sentence or paragraph each.
            constraints: what translations may and must contain: one for all, or one for each.
            split_long: split a line that is too long for the model at sentence ends.
            batch_tokens: approximate number of positions to compute at once.
            options: fields of `DecodingConfig`, on top of the model's defaults.

        Raises:
            ConfigurationError: the options are impossible.
            DataError: constraints and texts differ in number, or the texts are one string.
        """
        if isinstance(texts, str):  # a string is a sequence too, of letters
            raise DataError("The texts must be a list of lines, but are one string.")
        config = self.configure(**options)
        each = [constraints] * len(texts) if isinstance(constraints, Constraints) else constraints
        if len(each) != len(texts):
            raise DataError(
                "There must be one set of constraints for each text, but there are "
                f"{len(each)} for {len(texts)} texts."
            )
        translations = [Translation(text, (NOTHING,)) for text in texts]
        filled = [index for index, text in enumerate(texts) if text.strip()]
        encoded = self.tokenizer.encode_sources([texts[index] for index in filled])
        requests_of: dict[int, list[Request]] = {}
        for index, ids in zip(filled, encoded, strict=True):
            try:
                requests_of[index] = self._make_requests(
                    texts[index], ids, each[index], config, split_long
                )
            except InputError as error:
                translations[index] = Translation(texts[index], (), error=str(error))
        requests = [request for parts in requests_of.values() for request in parts]
        decoder: Decoder | WorkerPool = self.decoder
        if self.workers is not None and is_worth(len(requests), self.workers.workers):
            decoder = self.workers
        answers = iter(decoder.decode(requests, config, batch_tokens=batch_tokens))
        for index, parts in requests_of.items():
            found = [next(answers) for _ in parts]
            translations[index] = self._to_translation(texts[index], parts, found)
        return translations

    def stream(
        self, text: str, *, constraints: Constraints = UNCONSTRAINED, **options: Any
    ) -> Iterator[str]:
        """Translate one line and yield its text piece by piece, as soon as it is decided.

        With a beam, text is decided once all hypotheses agree on it.

        Args:
            text: the line.
            constraints: what its translation may and must contain.
            options: fields of `DecodingConfig`; only the best hypothesis is returned.

        Raises:
            InputError: the line cannot be translated.
        """
        config = self.configure(**options)
        if not text.strip():
            return
        source_ids = self.tokenizer.encode_source(text)
        (request,) = self._make_requests(text, source_ids, constraints, config, split_long=False)
        ids: tuple[int, ...] = ()
        said = whole = ""
        for ids in self.decoder.stream(request, config):
            whole = self._to_text(ids)
            # The end may still change: a space, or half of a character's bytes (U+FFFD so far).
            sure = whole.rstrip(" \ufffd")
            if sure.startswith(said) and len(sure) > len(said):
                yield sure[len(said) :]
                said = sure
        if not ids:
            raise InputError(_unmet(request))
        yield whole[len(said) :]

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, batch_tokens: int = BATCH_TOKENS
    ) -> list[Scored]:
        """Compute log-probabilities of given translations, in float32.

        Args:
            sources: the lines to translate.
            targets: a translation of each; an empty one is only ``</s>``.
            batch_tokens: maximum number of positions of one side to compute at once.

        Raises:
            DataError: sources and targets differ in number.
        """
        return score_pairs(
            self._models,
            self.tokenizer,
            sources,
            targets,
            too_long=self._request_builder.too_long,
            batch_tokens=batch_tokens,
        )

    def look(
        self,
        text: str,
        *,
        target: str | None = None,
        ask: Ask | None = None,
        everything: bool = False,
        float64: bool = False,
        changes: Probe | None = None,
        **options: Any,
    ) -> Trace:
        """Look inside the best translation of a line, or inside a given target.

        Args:
            text: the line.
            target: a translation to look at instead of decoding one.
            ask: arrays to keep; all attention weights unless given.
            everything: keep every stage, so that nothing is missing from token to token.
            float64: keep arrays in double precision instead of rounding them to float32.
            changes: a probe that changes results during the replay.
            options: as for `look_at_each`.

        Raises:
            InputError: the line is empty or cannot be translated, ``ask`` names something that
                does not exist, or arguments contradict each other.
        """
        if everything and ask is not None:
            raise InputError("everything cannot be combined with ask. Leave one of them out.")
        if target is not None and options:
            raise InputError(
                f"{next(iter(options))} cannot be combined with target, which is not searched for. "
                "Leave one of them out."
            )
        how = Replaying(ask or Ask(everything=everything), float64=float64, changes=changes)
        if target is not None:
            return look_at_given(self.own_bundle, text, target, how)
        (traces,) = self.look_at_each([text], how, **options)
        return traces[0]

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
        bundle, how = self.own_bundle, how or Replaying()
        options = {"precision": "float32", **options}
        decoding = self.configure(**options).model_dump()
        for translation in self.translate(texts, constraints=constraints, **options):
            if translation.error is not None:
                raise InputError(translation.error)
            source, hypotheses = translation.source, translation.hypotheses
            yield look_at_hypotheses(bundle, source, hypotheses, how, decoding=decoding)

    @property
    def own_bundle(self) -> Bundle:
        """The bundle of the only model, which looking inside needs.

        Raises:
            InputError: the model was not loaded from disk, or there are several.
        """
        if self.bundle is None or len(self._models) > 1:
            raise InputError(
                "Looking inside needs one model that was loaded from disk, but this is "
                f"{'a model in memory' if self.bundle is None else 'an ensemble'}. Load one model."
            )
        return self.bundle

    def _make_requests(
        self,
        text: str,
        ids: list[int],
        constraints: Constraints,
        config: DecodingConfig,
        split_long: bool,
    ) -> list[Request]:
        """Make the requests of a line: one, or one for each part of a line that is split."""
        damage, problem = not_utf8(text), self._request_builder.too_long(ids)
        if problem is None and damage is None:
            return [self._request_builder.build(text, ids, constraints, config)]
        if damage is not None or not split_long:
            raise InputError(damage or problem)
        if constraints.required or constraints.prefix:
            raise InputError(
                "A line with a prefix or required phrases is too long, and cannot be split "
                "automatically. Split it yourself, and give each part what belongs to it."
            )
        # Each part needs the code of the target language that the line of a multilingual model has.
        code = self.tokenizer.language_code(text)
        parts = [f"{code} {part}".lstrip() for part in split_sentences(text.removeprefix(code))]
        encoded = self.tokenizer.encode_sources(parts)
        if any(map(self._request_builder.too_long, encoded)):
            raise InputError(f"{problem} One of its sentences is too long by itself.")
        return [
            self._request_builder.build(part, ids, constraints, config)
            for part, ids in zip(parts, encoded, strict=True)
        ]

    def _to_translation(
        self, source: str, parts: Sequence[Request], found: Sequence[tuple[Hypothesis, ...]]
    ) -> Translation:
        for request, hypotheses in zip(parts, found, strict=True):
            if not hypotheses:
                return Translation(source, (), error=_unmet(request))
        if len(parts) == 1:
            return Translation(source, tuple(self._to_hypothesis(one) for one in found[0]))
        best = [self._to_hypothesis(hypotheses[0]) for hypotheses in found]
        return Translation(source, (TranslatedHypothesis.joined(best),))

    def _to_hypothesis(self, hypothesis: Hypothesis) -> TranslatedHypothesis:
        return TranslatedHypothesis(
            self._to_text(hypothesis.ids),
            tokens=tuple(self.tokenizer.target_tokens(hypothesis.ids)),
            ids=hypothesis.ids,
            token_log_probabilities=hypothesis.token_log_probabilities,
            log_probability=hypothesis.log_probability,
            score=hypothesis.score,
        )

    def _to_text(self, ids: Sequence[int]) -> str:
        # Byte tokens may spell a line break, which would shift all following lines.
        return self.tokenizer.decode_target(ids).replace("\r", " ").replace("\n", " ")


def load(
    model: str | Path,
    *,
    threads: int | None = None,
    precision: Precision | None = None,
    ensemble: Sequence[str | Path] = (),
    workers: int = 1,
) -> Translator:
    """Load a model to translate with.

    Args:
        model: a bundle folder, a run folder, or the word ``demo``.
        threads: processor threads to use; PyTorch's choice unless given.
        precision: precision of the products; the bundle's unless given.
        ensemble: further models with the same vocabulary, whose softmaxes are averaged with its.
        workers: processes that share the threads and translate in parallel if each gets some
            dozens of lines; each has the models in its own memory.

    Raises:
        InputFileNotFoundError: a folder does not exist.
        BundleError: a folder is damaged, incomplete, or not a bundle.
        InputError: the models of an ensemble have different vocabularies.
        ConfigurationError: the number of threads or workers is out of range.
    """
    set_threads(threads)
    bundles = [load_bundle(resolve_model(name)) for name in (model, *ensemble)]
    bundle, *others = bundles
    for other in others:
        for side in ("source", "target"):
            if bundle.tokenizer.vocabulary(side) != other.tokenizer.vocabulary(side):
                raise InputError(
                    f"The models of an ensemble must have one {side} vocabulary, but that of "
                    f"{other.folder} is not that of {bundle.folder}. Train them with one tokenizer."
                )
    translator = Translator(
        bundle.model,
        bundle.tokenizer,
        decoding=bundle.config.decoding,
        bundle=bundle,
        others=[other.model for other in others],
        workers=None if workers == 1 else make_workers(bundles, workers),
    )
    if precision is not None:
        translator.decoding = translator.configure(precision=precision)
    return translator


def make_workers(bundles: Sequence[Bundle], workers: int) -> WorkerPool:
    """Make processes that translate with bundles' models; they start when they are needed.

    Args:
        bundles: one bundle, or several whose softmaxes are averaged.
        workers: number of processes; they share the processor threads in use.

    Raises:
        ConfigurationError: the number of workers is out of range.
    """
    models = [(str(bundle.folder.resolve()), bundle.model_hash) for bundle in bundles]
    return WorkerPool(f"{__name__}:load_for_worker", {"models": models}, workers=workers)


def load_for_worker(models: Sequence[tuple[str, str]]) -> tuple[Decoder, Tokenizer]:
    """Load in a worker the models that its parent has loaded.

    Args:
        models: the folder and the hash of each bundle.

    Raises:
        BundleError: a folder has changed since the parent loaded it.
    """
    bundles = []
    for folder, model_hash in models:
        bundles.append(load_bundle(Path(folder)))
        if bundles[-1].model_hash != model_hash:
            raise BundleError(
                f"A model must stay as it is while it translates, but {folder} was replaced. "
                "Start again, or translate with a copy."
            )
    first, *others = bundles
    translator = Translator(first.model, first.tokenizer, others=[one.model for one in others])
    return translator.decoder, translator.tokenizer


def _unmet(request: Request) -> str:
    return (
        f"No translation within {request.max_length} tokens meets the constraints. "
        "Loosen them, widen the beam, or allow more with max_length."
    )
