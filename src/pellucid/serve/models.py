"""The models of a server, by name and by language."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pellucid.bundle import names_of_chain
from pellucid.errors import InputError, suggestion
from pellucid.languages.codes import are_same_language, direction, short_code
from pellucid.machine.devices import CPU, is_out_of_memory
from pellucid.serve.answers.responses import Problem, about
from pellucid.text.language_tokens import near_names
from pellucid.wording.value_rules import show_value

if TYPE_CHECKING:
    from pellucid.config import Precision
    from pellucid.config.typed_options import DecodingOptions
    from pellucid.text.link_choices import UnitRule
    from pellucid.translate.links.aligning import Aligner
    from pellucid.translate.results import Translation
    from pellucid.translate.translator import Translator

Result = TypeVar("Result")

log = logging.getLogger("pellucid.serve")

# Decoding options by name, in the order of their names.
Options = tuple[tuple[str, Any], ...]

# The sizes of a model that its description names.
SIZES = (
    "max_source_length",
    "max_target_length",
    "num_encoder_layers",
    "num_decoder_layers",
    "num_heads",
)

# Combinations of options that are remembered, because it takes longer to check them than to
# translate a short text.
MOST_DECIDED = 256


@dataclass(eq=False)
class ServedModel:
    """A loaded model and its name.

    Attributes:
        name: the name that requests use.
        translator: the model.
    """

    name: str
    translator: Translator
    _aligners: dict[tuple[Any, ...], Aligner] = field(default_factory=dict)
    _decided: dict[tuple[Any, ...], Options] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Code of the source language; empty if unknown."""
        return self.translator.languages.source

    @property
    def target(self) -> str:
        """Code of the target language; empty if unknown or if there are several."""
        return self.translator.languages.target

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Codes of all target languages; requests name one of several."""
        codes = tuple(code[2:-2] for code in self.translator.tokenizer.language_codes)
        return codes or ((self.target,) if self.target else ())

    @property
    def sources(self) -> tuple[str, ...]:
        """Codes of all source languages: those of its targets if it knows every direction."""
        return self.targets if self.is_for_all else ((self.source,) if self.source else ())

    @property
    def is_for_several(self) -> bool:
        """True if each text must name its target language."""
        return bool(self.translator.tokenizer.language_codes)

    @property
    def is_for_all(self) -> bool:
        """True if every one of its languages may be translated into every other one."""
        return self.translator.tokenizer.needs_code

    def code_of(self, source: str | None, target: str | None) -> str | None:
        """Return the languages that each text must name; None for a model of one direction."""
        if not self.is_for_several:
            return None
        return direction(source, target) if self.is_for_all else target

    def has(self, source: str | None, target: str | None) -> bool:
        """Tell whether the model translates between two languages; None is any."""
        if not self.is_for_all:
            return source in (None, self.source) and (target is None or target in self.targets)
        asked = [one for one in (source, target) if one is not None]
        return all(len(near_names(self.targets, one)) == 1 for one in asked)

    def reads(self, language: str) -> bool:
        """Tell whether the model reads a language."""
        if self.is_for_all:
            return bool(near_names(self.targets, language))
        return bool(self.source) and are_same_language(language, self.source)

    def writes(self, language: str) -> bool:
        """Tell whether the model writes a language."""
        return any(are_same_language(code, language) for code in self.targets)

    def decide(self, given: Mapping[str, Any], *, is_plain: bool) -> Options:
        """Check decoding options, and ask for the same text in any batch unless they say otherwise.

        Args:
            given: the options that a request gives.
            is_plain: True without required or forbidden phrases and without a second search. Then
                the engine in C may answer, whose results never depend on the batch.

        Raises:
            ConfigurationError: the options are impossible.
        """
        key = (is_plain, *sorted(given.items()))
        if (known := self._decided.get(key)) is not None:
            return known
        options = dict(given)
        translator = self.translator
        # The engine in C gives the same bits in any batch. What computes in Python does so only
        # with `strict` (docs/decisions/0020-service.md).
        if "strict" not in options:
            config = translator.options(**options)
            if not is_plain or translator.decoder.find_reason(config) is not None:
                options["strict"] = config.precision == "float32" and not config.sample
        translator.options(**options)
        if len(self._decided) >= MOST_DECIDED:
            self._decided.clear()
        self._decided[key] = decided = tuple(sorted(options.items()))
        return decided

    def changed(self, changes: Sequence[str]) -> Translator:
        """Return the translator under changes; for the computing thread only.

        Raises:
            Problem: 422, a change cannot be read, or names what the model does not have.
        """
        if not changes:
            return self.translator
        with about("changes"):
            return self.translator.changed(list(changes))

    def move_to_processor(self) -> bool:
        """Compute on the processor from now on; return False if the model does already.

        For the computing thread only.
        """
        from pellucid.translate.translator import load

        bundle = self.translator.bundle
        if bundle.device == CPU:
            return False
        decoding = self.translator.decoding
        self.translator = load(bundle.folder, device=CPU)
        self.translator.decoding = decoding
        # What was decided and made for the other device.
        self._decided.clear()
        self._aligners.clear()
        log.warning("%s is computed on the processor now: its device has no memory left", self.name)
        return True

    def in_memory(self, work: Callable[[], Result]) -> Result:
        """Call a function, and again on the processor if the device has no memory left.

        For the computing thread only.
        """
        try:
            return work()
        except Exception as error:
            if not (is_out_of_memory(error) and self.move_to_processor()):
                raise
        # Only here, since an error that is being handled keeps its tensors.
        return work()

    def stream_in_memory(
        self, make: Callable[[], Iterator[str | Translation | None]]
    ) -> Iterator[str | Translation | None]:
        """Yield what a stream yields; if the device has no memory left, begin it on the processor.

        What was yielded is not yielded again. For the computing thread only.

        Args:
            make: makes the stream: pieces of text, then the whole.

        Raises:
            Problem: 503, the processor would write other words than those that are out.
        """
        said = ""
        try:
            for piece in make():
                said += piece if isinstance(piece, str) else ""
                yield piece
            return
        except Exception as error:
            if not (is_out_of_memory(error) and self.move_to_processor()):
                raise
        written = ""
        for piece in make():
            if not isinstance(piece, str):
                yield piece
                continue
            written += piece
            # Words differ only in close calls, but text that is out cannot be taken back.
            if not (written.startswith(said) or said.startswith(written)):
                raise Problem(
                    503, "The memory of the device ran out in the middle. Send the text again."
                )
            if len(written) > len(said):
                yield written[len(said) :]
                said = written

    def aligner(
        self, units: UnitRule = "auto", layer: int | None = None, head: int | None = None
    ) -> Aligner:
        """Return what links words, always by the same head; for the computing thread only.

        Raises:
            InputError: the layer or the head does not exist.
        """
        from pellucid.translate.links.aligning import Aligner

        key = (units, layer, head)
        if key not in self._aligners:
            aligner = Aligner(self.translator.attention_reader(), units, layer, head)
            aligner.align([], [])  # Otherwise the head would be chosen by the first texts.
            self._aligners[key] = aligner
        return self._aligners[key]

    def describe(self) -> dict[str, Any]:
        """Describe the model as an answer does."""
        bundle = self.translator.bundle
        config = bundle.config
        return {
            "name": self.name,
            "source_language": self.source,
            "target_languages": list(self.targets),
            "model_hash": bundle.model_hash,
            "architecture": config.model.architecture,
            "stored": config.precision,
            "computes": self.translator.computes,
            **{name: getattr(config.model, name) for name in SIZES},
            "decoding": self.translator.decoding.model_dump(mode="json"),
        }


class ServedChain(ServedModel):
    """Models that translate one after the other, because none has the pair.

    Args:
        models: two or more.
        middles: the language between each model and the next.
    """

    def __init__(self, models: Sequence[ServedModel], middles: Sequence[str]) -> None:
        from pellucid.translate.chain.chained import Chain

        names = [one.name for one in models]
        self._join = partial(Chain, names=names, middles=middles)
        self._joined = [one.translator for one in models]
        super().__init__(",".join(names), self._join(self._joined))
        self.models = tuple(models)

    def move_to_processor(self) -> bool:
        """Let every model compute on the processor; return False if all do already."""
        for model in self.models:
            model.move_to_processor()
        before = self._joined
        self._joined = [one.translator for one in self.models]
        self.translator = self._join(self._joined)
        # Another request may have moved a model since this chain was joined.
        return self._joined != before

    def code_of(self, source: str | None, target: str | None) -> str | None:
        """Return the languages of the whole way, which `Chain.legs` takes apart."""
        return direction(source, target if self.is_for_several else None)

    def decide(self, given: Mapping[str, Any], *, is_plain: bool) -> Options:
        """Check decoding options for every model; each decides about batches when it computes."""
        for model in self.models:
            model.decide(given, is_plain=is_plain)
        return tuple(sorted(given.items()))


Way = tuple[tuple[ServedModel, ...], tuple[str, ...]]
"""Models that follow each other, and the languages between them."""


class Models:
    """All models of a server; the first is the default.

    Args:
        models: at least one.
    """

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self._by_name: Mapping[str, ServedModel] = {model.name: model for model in models}
        self._chains: dict[tuple[tuple[str, ...], tuple[str, ...]], ServedChain] = {}
        self._readers: dict[str, list[ServedModel]] = {}

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._by_name.values())

    def find_chain(self, source: str, target: str) -> ServedChain | None:
        """Find the shortest way from one language to another through several models.

        Of equally short ones that of the models that were named first, through English if several
        languages are common to them. None if there is no way.
        """
        ways: list[Way] = [((one,), ()) for one in self._that_read(source)]
        met = {source}
        while ways:
            longer: list[Way] = []
            for models, middles in ways:
                if models[-1].writes(target):
                    return self._chain(models, middles) if middles else None
                for code in sorted(models[-1].targets, key=lambda one: short_code(one) != "en"):
                    # A longer way to a language that a shorter one reaches is never taken.
                    if code not in met:
                        met.add(code)
                        longer += [
                            ((*models, one), (*middles, code))
                            for one in self._that_read(code)
                            if one not in models
                        ]
            ways = longer
        return None

    def _that_read(self, language: str) -> list[ServedModel]:
        """List the models that read a language; remembered, since a server may have 200."""
        if language not in self._readers:
            self._readers[language] = [one for one in self if one.reads(language)]
        return self._readers[language]

    def _chain(self, models: tuple[ServedModel, ...], middles: tuple[str, ...]) -> ServedChain:
        key = (tuple(one.name for one in models), middles)
        if key not in self._chains:
            self._chains[key] = ServedChain(models, middles)
        return self._chains[key]

    def choose(
        self,
        name: str | None,
        source: str | None,
        target: str | None,
        *,
        may_chain: bool = False,
    ) -> ServedModel:
        """Find the model that a request names, or the first one for its languages.

        Without such a model it is a chain of models, if the request can have one.

        Raises:
            Problem: 422, no model fits, or the named one has other languages.
        """
        if name is not None and name not in self._by_name:
            hint = suggestion(name, self._by_name)
            sentence = f"There is no model {show_value(name)}. {hint}"
            raise Problem(422, sentence, code="unknown_model", field="model")
        choices = list(self) if name is None else [self._by_name[name]]
        for model in choices:
            if model.has(source, target):
                return model
        if may_chain and name is None and source and target:
            found = self.find_chain(source, target)
            if found is not None:
                return found
        pairs = sorted(
            {
                f"{own}-{target}"
                for one in choices
                # Of a model of many languages the pairs would fill pages.
                for own in (("any",) if one.is_for_all else (one.source,))
                for target in one.targets
            }
        )
        raise Problem(
            422,
            f"There is no model{'' if name is None else f' {name!r}'}"
            f"{f' from {show_value(source)}' * (source is not None)}"
            f"{f' to {show_value(target)}' * (target is not None)}. "
            f"Known are: {', '.join(pairs[:50]) or 'none'}.",
            code="unknown_model",
            field="source_language" if target is None else "target_language",
        )


def name_models(given: Sequence[str]) -> dict[str, str]:
    """Give each model the name that requests use: what stands before ``=``, or its folder's name.

    Args:
        given: MODEL or NAME=MODEL each.

    Returns:
        The models by name.

    Raises:
        InputError: a name is not one, or two models have the same.
    """
    named: dict[str, str] = {}
    for one in given:
        name, equals, model = one.partition("=")
        # A folder may have = in its name.
        if not equals or Path(one).exists():
            model = one
            path = Path(one).resolve()
            name = path.parent.name if path.name == "bundle" else path.name
        if len(several := names_of_chain(model)) > 1:
            raise InputError(
                f"Each model is named by itself, but {model!r} joins {len(several)}. A server "
                "joins models by their languages: write pellucid serve "
                f"{' '.join(several)}."
            )
        if not re.fullmatch(r"[\w.-]{1,80}", name):
            raise InputError(
                f"The name of a model must be letters, digits, '.', '-' and '_', but is {name!r}. "
                "Write NAME=MODEL."
            )
        if name in named:
            raise InputError(
                f"Two models cannot have the name {name!r}. Write NAME=MODEL for one of them."
            )
        named[name] = model
    return named


def load_models(
    named: Mapping[str, str],
    *,
    threads: int | None = None,
    device: str | None = None,
    precision: Precision | None = None,
) -> Models:
    """Load models; arguments as for `pellucid.translate.translator.load`.

    Args:
        named: the models by name.
        threads: processor threads to use.
        device: where to compute.
        precision: precision of the products; that of each bundle unless given.
    """
    from pellucid.translate.translator import load

    decoding: DecodingOptions = {} if precision is None else {"precision": precision}
    return Models(
        [
            ServedModel(name, load(model, threads=threads, device=device, **decoding))
            for name, model in named.items()
        ]
    )
