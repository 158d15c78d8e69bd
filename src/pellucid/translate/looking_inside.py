"""From a translator and a line to traces and pairs: what `Translator.look` and its like do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from pellucid.arguments import checked, list_texts
from pellucid.attention.probe import Probe
from pellucid.bundle import Bundle
from pellucid.config import DecodingConfig, ModelConfig
from pellucid.decode.constraints.request import Constraints
from pellucid.errors import InputError, not_together
from pellucid.inside.ask import Ask
from pellucid.inside.changes.cutting import cut_model, heads_to_cut
from pellucid.inside.changes.given_changes import ChangedSentence, GivenChanges, read_changes
from pellucid.inside.line_traces import Replaying, look_at_given, look_at_hypotheses
from pellucid.inside.pair import make_pair
from pellucid.inside.sentence_pair import Pair
from pellucid.inside.traces import Trace
from pellucid.text.language_tokens import with_codes
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.call_options import refuse_several
from pellucid.translate.results import Translation
from pellucid.translate.written_lines import one_line


class LookedInto(Protocol):
    """What looking inside needs of a `Translator`, which imports this module."""

    tokenizer: Tokenizer
    _bundle: Bundle | None
    changes: Probe | None

    @property
    def options(self) -> Callable[..., DecodingConfig]:
        """Put options on top of the model's defaults."""

    @property
    def config(self) -> ModelConfig:
        """The configuration of the model."""

    @property
    def changed(self) -> Callable[..., Any]:
        """Change the model."""

    @property
    def translate(self) -> Callable[..., Any]:
        """Translate lines."""

    @property
    def is_ensemble(self) -> bool:
        """True for several models together."""


@checked
def look_inside(
    translator: LookedInto,
    text: str,
    *,
    translation: str | None,
    ask: Ask | str | None,
    everything: bool,
    float64: bool,
    changes: GivenChanges | None,
    decode_changed: bool = False,
    to: str | None,
    options: dict[str, Any],
) -> Trace:
    """Look inside the best translation of a line, or inside a given one; `Translator.look`."""
    combined = {"everything": ("ask", everything and ask is not None)}
    combined["decode_changed"] = ("translation", decode_changed and translation is not None)
    combined |= dict.fromkeys(options, ("translation", translation is not None))
    for name, (other, are_both) in combined.items():
        if are_both:
            raise not_together(name, other)
    asked = Ask(ask) if isinstance(ask, str) else ask or Ask(everything=everything)
    refuse_several(options, "look")
    (text,) = with_codes(translator.tokenizer, to, [text])
    if decode_changed:
        if changes is None:
            raise InputError("decode_changed needs changes. Give them, or leave it out.")
        tokenizer = translator.tokenizer
        ids = tokenizer.encode_source(tokenizer.masked(text))
        longest = translator.config.max_target_length
        sentence = ChangedSentence(tokenizer, text, ids, longest)
        translator = translator.changed(read_changes(changes, translator.config, sentence))
        changes = None
    how = Replaying(asked, float64=float64, changes=changes)
    if translation is not None:
        bundle = bundle_to_look_at(translator)
        return look_at_given(bundle, text, translation, how, under=translator.changes)
    (traces,) = look_at_lines(translator, [text], how, constraints=Constraints(), options=options)
    return traces[0]


@checked
def look_at_lines(
    translator: LookedInto,
    texts: Sequence[str],
    how: Replaying | None,
    *,
    constraints: Constraints | Sequence[Constraints],
    options: dict[str, Any],
) -> Iterator[list[Trace]]:
    """Look inside every hypothesis of every line; see `Translator.look_at_each`."""
    bundle = bundle_to_look_at(translator)
    texts = list_texts("texts", texts)
    how = how or Replaying()
    decoding = translator.options(**options).model_dump(mode="json")
    for translation in _decode(translator, texts, constraints, options):
        yield look_at_hypotheses(
            bundle,
            translation.source,
            translation.hypotheses,
            how,
            decoding=decoding,
            under=translator.changes,
        )


@checked
def pair_of_line(
    translator: LookedInto,
    text: str,
    translation: str | None,
    *,
    changes: GivenChanges | None,
    float64: bool,
    to: str | None,
    options: dict[str, Any],
) -> Pair:
    """Pair a line with its translation; see `Translator.pair`."""
    if translation is not None and options:
        raise not_together(next(iter(options)), "translation")
    refuse_several(options, "pair")
    bundle = bundle_to_look_at(translator)
    (text,) = with_codes(translator.tokenizer, to, [text])
    ids: Sequence[int] = ()
    if translation is None:
        (found,) = _decode(translator, [text], Constraints(), options)
        text = found.source
        ids = found.best.ids
    made = make_pair(bundle, text, ids if translation is None else translation, float64=float64)
    model = made.model
    under = translator.changes
    if under is not None:
        heads = heads_to_cut(under, model)
        if heads is not None:
            # Cut by its weights, so that every measure takes it as any model.
            model = cut_model(model, heads)
            under = None
    pair = Pair(model, made.tokenizer, made.source_ids, made.target_ids, made.source_text, under)
    return pair if changes is None else replace(pair, changes=pair.read(changes))


def bundle_to_look_at(translator: LookedInto) -> Bundle:
    """Return the bundle of a translator's only model, which may be under changes.

    Raises:
        InputError: the model was not loaded from disk, or there are several.
    """
    if translator._bundle is None or translator.is_ensemble:
        raise InputError(
            "Looking inside needs one model that was loaded from disk, but this is a model in "
            "memory or an ensemble. Load one model."
        )
    return translator._bundle


def _decode(
    translator: LookedInto,
    texts: Sequence[str],
    constraints: Constraints | Sequence[Constraints],
    options: dict[str, Any],
) -> list[Translation]:
    texts = [one_line(text) for text in texts]  # One search: the replay reads the same line.
    # The replay reads the line as it stands, so it must not be changed before the search.
    found: list[Translation] = translator.translate(
        texts, constraints=constraints, clean=False, split="none", **options
    )
    for translation in found:
        if translation.error is not None:
            raise InputError(translation.error)
    return found
