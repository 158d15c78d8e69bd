"""What a translator holds: its models, their tokenizer and defaults, and what changed in them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

from pellucid.arguments import named
from pellucid.bundle import Bundle
from pellucid.config import DecodingConfig, ModelConfig, Precision
from pellucid.decode.constraints.build_request import RequestBuilder
from pellucid.decode.decoder import Decoder, make_decoder
from pellucid.decode.native import StoredModel
from pellucid.errors import InputError
from pellucid.text.learned import LearnedText
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.preparing import Preparer
from pellucid.translate.results import ModelLanguages
from pellucid.wording.other_names import no_attribute

if TYPE_CHECKING:
    from pellucid.attention.probe import Probe
    from pellucid.inside.changes.given_changes import GivenChanges
    from pellucid.model import EncoderDecoder


class LoadedModel:
    """A model, or several together, without what they do; see `Translator`."""

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
        self._bundle = bundle
        hashes = () if bundle is None else (bundle.model_hash,)
        self.model_hashes = (*hashes, *other_hashes)
        self._given = (model, *others)
        # In an ensemble the shortest limits hold, so it needs every configuration.
        self._request_builder = RequestBuilder(tokenizer, [one.config for one in self._given])
        has_vector = not model.config.has_attention
        self._preparer = Preparer(tokenizer, self._request_builder, learned, has_vector=has_vector)
        self.decoder: Decoder = make_decoder(self._given, tokenizer)
        self.changes: Probe | None = None
        self._plain: tuple[DecodingConfig, DecodingConfig] | None = None

    def __repr__(self) -> str:
        name = "a model in memory" if self._bundle is None else self._bundle.folder.name
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

    if not TYPE_CHECKING:  # Type checkers would take every name for an attribute.

        def __new__(cls, model: object = None, *_: object, **__: object) -> Self:
            """Refuse the name of a model, which `pellucid.load` takes."""
            if isinstance(model, str | Path):
                raise InputError(f"Translator takes weights. Write pellucid.load({str(model)!r}).")
            return super().__new__(cls)

        def __call__(self, *_: object, **__: object) -> NoReturn:
            """Say what translates, to whoever calls the translator itself."""
            raise InputError("A translator is not a function. Write translator.translate(texts).")

        def __getattr__(self, name: str) -> Any:
            # Only reached for names that are not there. Copying asks for special ones.
            if not self.__dict__ and not name.startswith("__"):
                raise InputError(
                    "This translator was closed with its with block. Load the model again."
                )
            raise AttributeError(no_attribute("Translator", name), name=name, obj=self)

    @property
    def languages(self) -> ModelLanguages:
        """The languages of the model."""
        targets = tuple(code[2:-2] for code in self.tokenizer.language_codes)
        if self._bundle is None:
            return ModelLanguages("", "", targets)
        languages = self._bundle.config.languages
        return ModelLanguages(languages.source, languages.target, targets)

    @property
    def tokenizers(self) -> Sequence[Tokenizer]:
        """The tokenizers that a text goes through: one, or of a chain that of each model."""
        return (self.tokenizer,)

    @property
    def model(self) -> EncoderDecoder:
        """The only model, or the first of several, for PyTorch."""
        return self._models[0]

    @property
    def config(self) -> ModelConfig:
        """The configuration of the only model, or of the first."""
        return self._given[0].config

    @property
    def own_precision(self) -> Precision:
        """The precision of the model, in which every command writes the same words."""
        defaults = self.decoding if self._bundle is None else self._bundle.config.decoding
        return defaults.precision

    @property
    def taught_links(self) -> tuple[tuple[int, int], Literal["predicts", "reads"]] | None:
        """The head that was taught word links, and the token that its rows count for."""
        own = None if self.is_ensemble or self.changes is not None else self._bundle
        if own is None or own.guided_head is None:
            return None
        return own.guided_head, own.guided_convention

    @property
    def learned(self) -> LearnedText | None:
        """The text that it learned from, if known."""
        return self._preparer.learned

    @property
    def is_ensemble(self) -> bool:
        """True for several models together."""
        return len(self._given) > 1

    @property
    def bundle(self) -> Bundle:
        """The bundle of the only model: its folder, weights, tokenizer and configuration.

        Raises:
            InputError: the model was not loaded from disk, is changed, or there are several.
        """
        if self._bundle is None or self.is_ensemble or self.changes is not None:
            raise InputError(
                "Looking inside needs one model that was loaded from disk, but this is a model in "
                "memory, a changed model or an ensemble. Load one model."
            )
        return self._bundle

    @cached_property
    def _models(self) -> tuple[EncoderDecoder, ...]:
        return tuple(one.load() if isinstance(one, StoredModel) else one for one in self._given)

    @named()
    def changed(self, changes: GivenChanges) -> Self:
        """Return a translator of the same model under changes.

        Changes are a text such as ``"cut decoder.1.cross.0"``, several, or a probe. All of them
        reach every search. ``"cut word it"`` cuts the word in each sentence that has it once. Cuts
        of whole heads of a Transformer and changes of the encoder keep the engine in C; with others
        PyTorch computes each step, in float32.

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
        model, under = change_model(self.model, self.tokenizer, found.changes)
        if under is not None:
            found.decoder = self.decoder.under(under)
        else:
            found.decoder = make_decoder([model], self.tokenizer)
            found._given = (model,)
            # The cached property came along with the old models in it.
            found.__dict__["_models"] = (model,)
        found._plain = None
        return found
