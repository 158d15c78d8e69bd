"""A loaded model that takes text and gives text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pellucid.attention.probe import Probe
from pellucid.bundle import Bundle, load_bundle, resolve_model
from pellucid.config import DecodingConfig, Precision, validate
from pellucid.decode import (
    Constraints,
    Decoder,
    Hypothesis,
    Request,
    RequestBuilder,
    SpecialIds,
)
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
    """Translates and scores with one model, or several together, and a tokenizer.

    Args:
        model: the weights.
        tokenizer: text to ids and back.
        decoding: how to translate where nothing else is said.
        bundle: where the model came from, if from disk.
        others: further models with the same vocabulary; all softmaxes are averaged.
        workers: processes that translate many lines with the same models, as `make_workers`
            makes them.
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
        never = {ids.pad_id, ids.target_start_id, ids.eos_id if ids.bos_id is None else ids.bos_id}
        special = SpecialIds(ids.target_start_id, ids.eos_id, tuple(never - {ids.eos_id}))
        self.decoder = Decoder(self._models, special)

    def configure(self, **options: Any) -> DecodingConfig:
        """Join options with the model's own defaults.

        Sampling takes the place of a beam that only the defaults ask for.

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

        Lines of about one length are searched side by side, and come back in their order. An
        empty or blank line gives an empty translation. A line that cannot be translated gives
        no hypothesis and an ``error``; the others are translated.

        Args:
            texts: one sentence or paragraph a line.
            constraints: what the translations may and must hold: one for all, or one each.
            split_long: whether a line that is too long for the model is split at sentence ends.
            batch_tokens: how many positions are computed at once, about.
            options: those of `DecodingConfig`, over the model's defaults.

        Raises:
            ConfigurationError: the options are impossible.
            DataError: there are not as many constraints as texts, or the texts are one string.
        """
        if isinstance(texts, str):  # A sequence too, of letters.
            raise DataError("The texts must be a list of lines, but are one string.")
        config = self.configure(**options)
        each = [constraints] * len(texts) if isinstance(constraints, Constraints) else constraints
        if len(each) != len(texts):
            raise DataError(
                "There must be one set of constraints for each text, but there are "
                f"{len(each)} for {len(texts)}."
            )
        translations = [Translation(text, (NOTHING,)) for text in texts]
        filled = [index for index, text in enumerate(texts) if text.strip()]
        encoded = self.tokenizer.encode_sources([texts[index] for index in filled])
        asked: dict[int, list[Request]] = {}
        for index, ids in zip(filled, encoded, strict=True):
            try:
                asked[index] = self._ask(texts[index], ids, each[index], config, split_long)
            except InputError as error:
                translations[index] = Translation(texts[index], (), error=str(error))
        requests = [request for parts in asked.values() for request in parts]
        decoder: Decoder | WorkerPool = self.decoder
        if self.workers is not None and is_worth(len(requests), self.workers.workers):
            decoder = self.workers
        answers = iter(decoder.decode(requests, config, batch_tokens=batch_tokens))
        for index, parts in asked.items():
            found = [next(answers) for _ in parts]
            translations[index] = self._to_translation(texts[index], parts, found)
        return translations

    def stream(
        self, text: str, *, constraints: Constraints = UNCONSTRAINED, **options: Any
    ) -> Iterator[str]:
        """Translate one line and hand its text out piece by piece, as soon as it is decided.

        With a beam, text is decided once all hypotheses agree on it.

        Args:
            text: the line.
            constraints: what its translation may and must hold.
            options: those of `DecodingConfig`; of several hypotheses there is only the best.

        Yields:
            Pieces whose concatenation is the translation.

        Raises:
            InputError: the line cannot be translated.
        """
        config = self.configure(**options)
        if not text.strip():
            return
        source_ids = self.tokenizer.encode_source(text)
        (request,) = self._ask(text, source_ids, constraints, config, split_long=False)
        ids: tuple[int, ...] = ()
        said = whole = ""
        for ids in self.decoder.stream(request, config):
            whole = self._to_text(ids)
            # The end may still change: a space before what comes, or half a character's bytes.
            sure = whole.rstrip(" \ufffd")
            if sure.startswith(said) and len(sure) > len(said):
                yield sure[len(said) :]
                said = sure
        if not ids:
            raise InputError(_unmet(request))
        yield whole[len(said) :]

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[Scored]:
        """Say how likely the model finds given translations, in float32.

        Args:
            sources: one line each.
            targets: the translation of each; an empty one is ``</s>`` alone.
            batch_tokens: the most source positions computed at once.

        Returns:
            One result for each pair, in order.

        Raises:
            DataError: there are not as many targets as sources.
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
        """Look inside the best translation of a line, or inside a target that is given.

        Args:
            text: the line.
            target: look at this translation of it, without decoding.
            ask: what to keep; the weights of everything unless given.
            everything: keep every stage, so that nothing is missing from token to token.
            float64: keep arrays in double precision instead of rounding them to float32.
            changes: a probe that changes results of the replay on the way.
            options: as for `look_at_each`.

        Raises:
            InputError: the line is empty or cannot be translated, or what is asked for does not
                exist.
        """
        if (everything and ask is not None) or (target is not None and options):
            raise InputError(
                "What to look at must be said once: leave out everything where ask is given, and "
                "the options of a search where the target is."
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
        """Look inside every hypothesis of every line.

        The decode is in float32 unless ``precision`` says otherwise.

        Args:
            texts: the lines.
            how: what to keep, and where; the weights of everything unless given.
            constraints: what the translations may and must hold.
            options: those of `DecodingConfig`, over the model's defaults.

        Yields:
            For each line the traces of its hypotheses, the best first.

        Raises:
            InputError: a line is empty or cannot be translated, or what is asked for does not
                exist.
        """
        bundle = self.own_bundle
        options = {"precision": "float32", **options}
        decoding = self.configure(**options).model_dump()
        for translation in self.translate(texts, constraints=constraints, **options):
            if translation.error is not None:
                raise InputError(translation.error)
            hypotheses = translation.hypotheses
            yield look_at_hypotheses(
                bundle, translation.source, hypotheses, how or Replaying(), decoding=decoding
            )

    @property
    def own_bundle(self) -> Bundle:
        """The one bundle that this was loaded from, which looking inside needs.

        Raises:
            InputError: there is none, or there are several.
        """
        if self.bundle is None or len(self._models) > 1:
            raise InputError(
                "To look inside there must be one model that was loaded from disk, but there is "
                f"{'none' if self.bundle is None else 'an ensemble'}. Load one by itself."
            )
        return self.bundle

    def _ask(
        self,
        text: str,
        ids: list[int],
        constraints: Constraints,
        config: DecodingConfig,
        split_long: bool,
    ) -> list[Request]:
        """The requests of a line: one, or one for each part of a line that is split."""
        damage, problem = not_utf8(text), self._request_builder.too_long(ids)
        if problem is None and damage is None:
            return [self._request_builder.build(text, ids, constraints, config)]
        if damage is not None or not split_long:
            raise InputError(damage or problem)
        if constraints.required or constraints.prefix:
            raise InputError(
                "A line with a prefix or required phrases must not be split, but is too long. "
                "Split it yourself, and say what belongs to which part."
            )
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
        joined = TranslatedHypothesis(
            " ".join(one.text for one in best),
            tuple(token for one in best for token in one.tokens),
            tuple(id_ for one in best for id_ in one.ids),
            tuple(log for one in best for log in one.token_log_probabilities),
            sum(one.log_probability for one in best),
            sum(one.score for one in best),
        )
        return Translation(source, (joined,))

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
        # Bytes may spell a line break, which would put the lines out of step.
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
        threads: processor threads to use; PyTorch's own choice unless given.
        precision: of the products; what the bundle says unless given.
        ensemble: further models, of the same vocabulary, whose softmaxes are averaged with its.
        workers: processes that share the threads and translate side by side wherever there are
            some dozens of lines for each; each has the models in its own memory.

    Raises:
        InputFileNotFoundError: there is no such folder.
        BundleError: a folder is damaged, incomplete, or not a bundle.
        InputError: the models of an ensemble have different vocabularies.
        ConfigurationError: there cannot be as many threads or workers.
    """
    set_threads(threads)
    bundles = [load_bundle(resolve_model(name)) for name in (model, *ensemble)]
    bundle, *others = bundles
    for other in others:
        _check_vocabulary(bundle, other)
    decoding = bundle.config.decoding
    if precision is not None:
        decoding = validate(
            DecodingConfig, decoding.model_dump() | {"precision": precision}, "options"
        )
    return Translator(
        bundle.model,
        bundle.tokenizer,
        decoding=decoding,
        bundle=bundle,
        others=[other.model for other in others],
        workers=None if workers == 1 else make_workers(bundles, workers),
    )


def make_workers(bundles: Sequence[Bundle], workers: int) -> WorkerPool:
    """Make processes that search with the models of bundles; they start when they are needed.

    Args:
        bundles: as loaded from disk; of several the softmaxes are averaged.
        workers: how many; they share the processor threads in use.

    Raises:
        ConfigurationError: there cannot be as many.
    """
    models = [(str(bundle.folder.resolve()), bundle.model_hash) for bundle in bundles]
    return WorkerPool(f"{__name__}:load_for_worker", {"models": models}, workers=workers)


def load_for_worker(models: Sequence[tuple[str, str]]) -> tuple[Decoder, Tokenizer]:
    """Load in a worker what its parent has loaded.

    Args:
        models: the folder and the hash of each bundle.

    Raises:
        BundleError: a folder is not any more what the parent loaded.
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


def _check_vocabulary(bundle: Bundle, other: Bundle) -> None:
    for side in ("source", "target"):
        if bundle.tokenizer.vocabulary(side) != other.tokenizer.vocabulary(side):
            raise InputError(
                f"The models of an ensemble must have one {side} vocabulary, but that of "
                f"{other.folder} is not that of {bundle.folder}. Train them with one tokenizer."
            )


def _unmet(request: Request) -> str:
    return (
        f"A translation within {request.max_length} tokens must be possible, but none meets the "
        "constraints. Loosen them, widen the beam, or allow more with max_length."
    )
