"""Several models one after the other, as one translator: French to English, English to German."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from pellucid.arguments import check_kind, check_text, list_texts, named, refuse
from pellucid.bundle import names_of_chain
from pellucid.config import DecodingConfig, ModelConfig, Precision
from pellucid.config.typed_options import DecodingOptions
from pellucid.decode.constraints.request import LineConstraints
from pellucid.errors import InputError
from pellucid.languages.codes import direction
from pellucid.text.link_choices import UnitRule
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.chain.legs import find_legs, find_middles
from pellucid.translate.chain.paths import follow
from pellucid.translate.constraints import (
    UNCONSTRAINED,
    Phrases,
    as_list,
    require_terms,
    used_terms,
)
from pellucid.translate.line_translation import windows_of
from pellucid.translate.preparing import constraints_of_each
from pellucid.translate.results import ModelLanguages, Translation
from pellucid.translate.translation_stream import TranslationStream
from pellucid.translate.translator import Translator, load

if TYPE_CHECKING:
    from pellucid.inside.changes.given_changes import GivenChanges
    from pellucid.translate.links.aligning import Aligner
    from pellucid.translate.text_translator import TextTranslator

_OF_THE_LAST = ("prefix", "forbid", "require", "glossary", "constraints", "glossary_match")
"""Arguments of `translate` that say something about the text that the last model writes."""


@named()
def chain(
    *models: Translator | str | Path,
    threads: int | None = None,
    device: str | None = None,
    **decoding: Unpack[DecodingOptions],
) -> Chain:
    """Join models, so that a text goes through one after the other.

    Args:
        models: two or more, in their order: names, folders, or loaded models. A text may name
            several with commas between them, as ``pellucid translate fr-en,en-de`` does.
        threads: as for `pellucid.load`, for models that are named.
        device: as for `pellucid.load`, for models that are named.
        decoding: as for `pellucid.load`, for models that are named.

    Returns:
        A translator from the first model's source language to the last one's target language.

    Raises:
        InputError: there are fewer than two, or the languages of two neighbors do not meet.
        BundleError: a folder is damaged, incomplete, or not a bundle.
    """
    names: list[str] = []
    loaded: list[Translator] = []
    for number, one in enumerate(models):
        check_kind(f"models[{number}]", one, Translator | str | Path, "a model, or its name")
        if isinstance(one, Translator):
            loaded.append(one)
            names.append(one._bundle.folder.name if one._bundle else f"model {number + 1}")
            continue
        for name in names_of_chain(one):
            loaded.append(load(name, threads=threads, device=device, **decoding))
            path = Path(name)
            names.append(path.parent.name if path.name == "bundle" else path.name)
    return Chain(loaded, names)


class Chain(Translator):
    """A `Translator` that leads texts through several models; `pellucid.chain` makes one.

    Scores and log-probabilities are sums over the models, and links are the product of their
    matrices: two words are linked if some word of the middle text is linked to both. Prefixes,
    phrases and glossaries say what the last model writes; all other options hold for each model.

    Attributes:
        models: the models, in their order.
        names: their names.
        middles: the language between each model and the next; empty if unknown.
    """

    def __init__(
        self, models: Sequence[Translator], names: Sequence[str], middles: Sequence[str] = ()
    ) -> None:
        # None of a single model's parts exist here, so its constructor is not called.
        if len(models) < 2:
            raise InputError(
                f"A chain must have two models or more, but has {len(models)}. Name them with "
                "commas between them, such as fr-en,en-de."
            )
        self.models = tuple(models)
        self.names = tuple(names)
        self.middles = tuple(middles) or find_middles(self.models, self.names)
        self.tokenizer = models[-1].tokenizer
        self.decoding = models[-1].decoding
        self.model_hashes = (",".join(one for model in models for one in model.model_hashes),)
        self.changes = None
        self.decoder = _Decoders(models)  # type: ignore[assignment]
        self._bundle = None
        self._plain = None

    def __repr__(self) -> str:
        languages = self.languages
        pair = f", {languages.source} to {languages.target}" if languages.source else ""
        return f"<Chain {', '.join(self.names)}{pair}>"

    @property
    def languages(self) -> ModelLanguages:
        """The first model's source language, and what the last one translates into."""
        last = self.models[-1].languages
        return ModelLanguages(self.models[0].languages.source, last.target, last.targets)

    @property
    def tokenizers(self) -> Sequence[Tokenizer]:
        """Those of the models."""
        return tuple(one.tokenizer for one in self.models)

    @property
    def config(self) -> ModelConfig:
        """The configuration of the last model."""
        return self.models[-1].config

    @property
    def own_precision(self) -> Precision:
        """The precision of the last model."""
        return self.models[-1].own_precision

    def options(self, **options: Unpack[DecodingOptions]) -> DecodingConfig:
        """Return the decoding options of the last model, as `Translator.options` does.

        Raises:
            ConfigurationError: an option is impossible for one of the models.
        """
        return [model.options(**options) for model in self.models][-1]

    @named()
    def translate(
        self,
        texts: str | Iterable[str],
        *,
        align: bool | Aligner = False,
        source_language: str | None = None,
        to: str | None = None,
        changes: GivenChanges | None = None,
        **how: Any,
    ) -> Any:
        """Translate texts through all models; arguments as for `Translator.translate`.

        Each translation's ``through`` says what every model made of it.

        Raises:
            ConfigurationError: the options are impossible.
            DataError: something is no text.
            InputError: an argument is impossible, or the models cannot be changed together.
        """
        if changes is not None:
            self.changed(changes)
        given_direction = direction(source_language, to)
        phrases = self._phrases(how, given_direction)
        legs = self.legs(given_direction)
        aligners = self._aligners(align)

        def run(given: Sequence[str]) -> list[Translation]:
            each = constraints_of_each(phrases.for_texts(given), len(given))
            return self._follow(given, each, aligners, legs, how)

        if isinstance(texts, str):
            return run([texts])[0]
        if isinstance(texts, Iterator):
            return (one for window in windows_of(texts) for one in run(window))
        return run(list_texts("texts", texts))

    def legs(self, to: str | None) -> tuple[str | None, ...]:
        """Find what each model is told about its languages; ``to`` may be both, as ``fr:de``."""
        return find_legs(self.models, self.names, self.middles, to)

    def _phrases(self, how: dict[str, Any], to: str | None) -> Phrases:
        """Take the arguments that say what the last model writes out of those for all models."""
        given = {name: how.pop(name) for name in _OF_THE_LAST if name in how}
        phrases = Phrases.read(
            given.get("prefix", ""),
            given.get("forbid", ()),
            given.get("require", ()),
            given.get("glossary"),
            given.get("constraints", UNCONSTRAINED),
            given.get("glossary_match", "auto"),
        )
        return self._fit(phrases, to)

    def _follow(
        self,
        texts: Sequence[str],
        constraints: Sequence[LineConstraints],
        aligners: Sequence[bool | Aligner],
        legs: Sequence[str | None],
        how: dict[str, Any],
    ) -> list[Translation]:
        options = {name: one for name, one in how.items() if name in DecodingConfig.model_fields}
        config = self.options(**options)
        following = follow(texts, self.names, config.n_best)
        last = len(self.models) - 1
        found: list[Translation] | None = None
        try:
            while True:
                step = next(following) if found is None else following.send(found)
                own = how | step_options(config, step.number, last)
                if step.number == last:
                    own["constraints"] = [
                        require_terms(constraints[row], texts[row]) for row in step.rows
                    ]
                found = self.models[step.number].translate(
                    step.texts,
                    to=legs[step.number],
                    align=aligners[step.number],
                    **own,
                )
        except StopIteration as end:
            translations: list[Translation] = end.value
            rows = zip(translations, constraints, texts, strict=True)
            return [replace(one, terms=used_terms(own, text, one.text)) for one, own, text in rows]

    def _aligners(self, align: bool | Aligner) -> Sequence[bool | Aligner]:
        if isinstance(align, bool):
            return [align] * len(self.models)
        from pellucid.translate.chain.chain_aligner import ChainAligner

        if isinstance(align, ChainAligner):
            return align.each
        refuse("align", "True, False or what aligner() makes of this chain", align)

    @named()
    def stream(
        self, text: str, *, source_language: str | None = None, to: str | None = None, **how: Any
    ) -> TranslationStream:
        """Translate one text, the last model piece by piece; see `Translator.stream`.

        Raises:
            DataError: the text is none.
            InputError: an argument is impossible, or the text cannot be translated.
        """
        check_text("text", text)
        if "constraints" in how:
            how["constraints"] = as_list(how["constraints"])
        given_direction = direction(source_language, to)
        phrases = self._phrases(how, given_direction)
        legs = self.legs(given_direction)
        (own,) = constraints_of_each(phrases.for_texts([text]), 1)
        following = follow([text], self.names, 1)
        step = next(following)
        for model, leg in zip(self.models[:-1], legs[:-1], strict=True):
            found = model.translate(step.texts, to=leg, **how)
            if found[0].error is not None:
                raise InputError(f"{self.names[step.number]}: {found[0].error}")
            step = following.send(found)
        last = require_terms(own, text)
        pieces = self.models[-1].stream(step.texts[0], to=legs[-1], constraints=last, **how)

        def finish() -> Translation:
            assert pieces.translation is not None
            try:
                following.send([pieces.translation])
            except StopIteration as end:
                (whole,) = end.value
            translation: Translation = whole
            return replace(translation, terms=used_terms(own, text, translation.text))

        return TranslationStream(pieces, finish)

    @named()
    def aligner(self, units: UnitRule = "auto", head: str | None = None) -> Aligner:
        """Make what links words through the middle text, for several calls of `translate`.

        Raises:
            InputError: a head is named, which each model has its own of, or links are to count
                subwords, which the models cut in different ways.
        """
        if head is not None:
            raise InputError(
                f"--align-head cannot be combined with a chain of models ({', '.join(self.names)}):"
                " each has heads of its own. Leave it out."
            )
        if units == "subwords":
            raise InputError(
                f"--words-by subwords cannot be combined with a chain of models "
                f"({', '.join(self.names)}): each cuts the middle text in its own way. Leave it "
                "out."
            )
        from pellucid.translate.chain.chain_aligner import ChainAligner

        return ChainAligner(self.names, [model.aligner(units) for model in self.models])

    @property
    def model(self) -> NoReturn:
        """Refuse to be one model."""
        raise self._refuse("model")

    @property
    def bundle(self) -> NoReturn:
        """Refuse to be one bundle."""
        raise self._refuse("bundle")

    def _refuse(self, name: str) -> InputError:
        return InputError(
            f"{name} needs one model, but this is a chain of {' and '.join(self.names)}. Ask one "
            f"of chain.models: chain.models[0].{name} of a text, chain.models[1].{name} of its "
            "translation."
        )


def _refusing(name: str) -> Any:
    def refuse_here(self: Chain, *_: object, **__: object) -> NoReturn:
        raise self._refuse(name)

    refuse_here.__name__ = name
    refuse_here.__doc__ = "Refuse what only one model does; see `Chain.models`."
    return refuse_here


for _name in ("changed", "align", "score", "look", "look_at_each", "pair", "why"):
    setattr(Chain, _name, _refusing(_name))


def step_options(config: DecodingConfig, number: int, last: int) -> dict[str, Any]:
    """Find the decoding options that one model of a chain needs in place of the given ones.

    Args:
        config: all options.
        number: of the model.
        last: the number of the last model.
    """
    changed: dict[str, Any] = {}
    # Alternatives differ in how the translation begins, which only the last model writes.
    if config.alternatives and number < last:
        changed |= {"alternatives": False, "n_best": 1}
    # Each sample of the first model gets one of the next, so that all stay samples.
    if config.sample and number > 0:
        changed["n_best"] = 1
    return changed


class _Decoders:
    """The search of all models of a chain, as far as it is asked about."""

    def __init__(self, models: Sequence[TextTranslator]) -> None:
        self._models = models

    def find_reason(self, config: DecodingConfig) -> str | None:
        """Say why the engine in C does not answer; None if it does for all models."""
        found = (one.decoder.find_reason(config) for one in self._models)
        return next(filter(None, found), None)

    def describe(self, config: DecodingConfig, rule: str | None = None) -> str:
        """Describe what answers requests, each way once."""
        return " and ".join(
            dict.fromkeys(one.decoder.describe(config, rule) for one in self._models)
        )
