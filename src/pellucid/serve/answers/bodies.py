"""The bodies of requests and answers under ``/v1``, with the server's limits in their schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from pellucid.config import DecodingConfig, TreatmentConfig
from pellucid.config.sections import request_fields, settings_of
from pellucid.serve.settings import Limits


class AnswerBody(BaseModel):
    """An answer."""

    model_config = ConfigDict(protected_namespaces=())


class ProblemAnswer(AnswerBody):
    """A refusal or a failure."""

    error: str = Field(description="One sentence about the fault, and what to do now.")


class HypothesisBody(AnswerBody):
    """One translation of a text."""

    text: str
    log_probability: float = Field(description="Sum over tokens, </s> included; natural log.")
    score: float = Field(description="Ranking value, after the length penalty.")
    tokens: list[str] | None = None
    ids: list[int] | None = None
    token_log_probabilities: list[float] | None = None
    words: list[str] | None = Field(None, description="The words that links count.")
    alignment: list[tuple[int, int]] | None = Field(
        None, description="Links (source word, target word), from 0."
    )


class TranslationAnswer(AnswerBody):
    """The translation of one text."""

    text: str = Field(description="The best translation; empty if there is an error.")
    error: str | None = Field(description="Why this text could not be translated.")
    hypotheses: list[HypothesisBody]
    source_words: list[str] | None = None
    notes: dict[str, Any] | None = Field(None, description="Anything unusual about the text.")


class TranslateAnswer(AnswerBody):
    """The translations of a request's texts, in their order."""

    model: str
    translations: list[TranslationAnswer]


class ScoreAnswer(AnswerBody):
    """The score of one pair."""

    log_probability: float | None
    error: str | None
    tokens: list[str] | None = None
    ids: list[int] | None = None
    token_log_probabilities: list[float] | None = None


class ScoresAnswer(AnswerBody):
    """The scores of a request's pairs, in their order."""

    model: str
    scores: list[ScoreAnswer]


class OutputAnswer(AnswerBody):
    """A translation and how likely the model found each of its tokens."""

    text: str
    tokens: list[str]
    log_probabilities: list[float | None]


class EditAnswer(AnswerBody):
    """Words that differ, at the number of a word from 0."""

    place: int
    before: list[str]
    after: list[str]


class BaselineAnswer(AnswerBody):
    """The same change of other heads, drawn at random."""

    changes: list[str]
    effects: list[float | None]


class ChangeAnswer(AnswerBody):
    """The effect of changes on one line."""

    model: str
    changes: list[str]
    original: OutputAnswer
    before: OutputAnswer = Field(description="The greedy translation without the changes.")
    after: OutputAnswer = Field(description="The greedy translation under the changes.")
    effect: float | None = Field(description="On the log-probability of the original.")
    under_change: list[float | None] = Field(description="The original's, token by token.")
    after_unchanged: list[float | None] = Field(description="Those of after, without changes.")
    edits: list[EditAnswer]
    baseline: BaselineAnswer | None = None


class ModelAnswer(AnswerBody):
    """A model."""

    name: str
    source: str = Field(description="Source language; empty if unknown.")
    target: str = Field(description="Target language; empty if unknown.")
    targets: list[str] = Field(description="All target languages.")
    model_hash: str
    architecture: str
    precision: str
    max_source_length: int
    max_target_length: int
    num_encoder_layers: int
    num_decoder_layers: int
    num_heads: int
    decoding: dict[str, Any] = Field(description="The model's own decoding options.")


class ModelsAnswer(AnswerBody):
    """The models of the server; the first is the default."""

    models: list[ModelAnswer]
    limits: dict[str, float]


class StatusAnswer(AnswerBody):
    """The state of the server."""

    status: Literal["ok"]


# The decoding options that a request may have: those of `pellucid translate`.
DECODING = tuple(setting.name for setting in settings_of(DecodingConfig))

LARGEST = 2**31 - 1

# The decoding options that a look takes.
SEARCH = ("beam", "n_best", "sample", "temperature", "top_k", "top_p", "seed")


class _Body(BaseModel):
    """A request: strict about types and names."""

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=()
    )


@dataclass(frozen=True)
class Schemas:
    """The classes of requests, with limits.

    Attributes:
        translate: of ``/v1/translate``.
        stream: of ``/v1/stream``.
        score: of ``/v1/score``.
        look: of ``/v1/look``.
        change: of ``/v1/change``.
    """

    translate: type[BaseModel]
    stream: type[BaseModel]
    score: type[BaseModel]
    look: type[BaseModel]
    change: type[BaseModel]


def make_schemas(limits: Limits) -> Schemas:
    """Make the classes of requests.

    Args:
        limits: the bounds that they state and enforce.
    """
    text = Annotated[str, Field(max_length=limits.characters)]
    which = _which_model()
    search = _decoding(limits)
    treatment = request_fields(TreatmentConfig, keep=True)
    constraints = _constraints(limits, text)
    texts = {
        "texts": (
            list[text],
            Field(min_length=1, max_length=limits.texts, examples=[["The pizza came out."]]),
        )
    }
    one = {"text": (text, Field(examples=["The pizza came out of the oven and it tasted good."]))}
    translate = _body(
        "TranslateRequest", {**texts, **which, **search, **treatment, **constraints, **_output()}
    )
    each = ("prefixes", "require_each")
    single = {name: field for name, field in constraints.items() if name not in each}
    lines = {name: treatment[name] for name in ("clean", "split", "split_long")}
    stream_search = {name: field for name, field in search.items() if name != "n_best"}
    stream = _body("StreamRequest", {**one, **which, **stream_search, **lines, **single})
    pair: Any = _body("Pair", {"source": (text, ...), "target": (text, ...)})
    pairs = {
        "pairs": (
            list[pair],
            Field(
                min_length=1,
                max_length=limits.texts,
                examples=[[{"source": "The cat sleeps.", "target": "Le chat dort."}]],
            ),
        )
    }
    score = _body("ScoreRequest", {**pairs, **which, "tokens": _flag("Add each token.")})
    target = {"target_text": (text | None, Field(None, description="Look at this translation."))}
    search_of_look = {name: search[name] for name in SEARCH}
    look = _body("LookRequest", {**one, **target, **which, **_asked(), **_path(), **search_of_look})
    changes = {
        "changes": (
            list[Annotated[str, Field(min_length=1, max_length=200)]],
            Field(
                min_length=1,
                max_length=32,
                description="As for pellucid look --change.",
                examples=[["cut decoder.0.cross.0"]],
            ),
        ),
        "prefix": (text, Field("", description="The beginning of the new translation.")),
        "random": (
            int,
            Field(0, ge=0, le=64, description="Other heads to change in the same way, drawn."),
        ),
    }
    change = _body("ChangeRequest", {**one, **target, **which, **changes})
    return Schemas(translate, stream, score, look, change)


def given_fields(body: Any, names: Sequence[str]) -> dict[str, Any]:
    """Take the fields of a request that it gives a value, as far as it may have them."""
    found = {name: getattr(body, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _body(name: str, fields: dict[str, Any]) -> type[BaseModel]:
    made: type[BaseModel] = create_model(name, __base__=_Body, **fields)
    return made


def _flag(description: str, default: bool = False) -> Any:
    return bool, Field(default, description=description)


def _which_model() -> dict[str, Any]:
    code = Annotated[str, Field(max_length=80)]
    return {
        "model": (code | None, Field(None, description="A name from /v1/models.")),
        "source": (code | None, Field(None, description="Source language, to choose a model by.")),
        "target": (code | None, Field(None, description="Target language, to choose a model by.")),
        "to": (
            code | None,
            Field(None, description="Begin every line with the code of this language."),
        ),
    }


def _decoding(limits: Limits) -> dict[str, Any]:
    """Take over the decoding options, with the server's bounds."""
    lengths = ("max_length", "min_length", "max_length_offset", "no_repeat_ngram")
    largest: dict[str, float] = {
        **{"beam": limits.beam, "n_best": limits.count, "diverse_groups": limits.beam},
        **dict.fromkeys(lengths, limits.tokens),
        **{"max_length_ratio": 10.0, "min_length_ratio": 10.0, "seed": LARGEST, "top_k": LARGEST},
    }
    return request_fields(DecodingConfig, largest)


def _constraints(limits: Limits, text: Any) -> dict[str, Any]:
    phrase = Annotated[str, Field(min_length=1, max_length=200)]
    phrases = Annotated[list[phrase], Field(max_length=limits.phrases)]
    term: Any = _body("Term", {"source": (phrase, ...), "target": (phrase, ...)})
    return {
        "prefix": (text, Field("", description="Begin every translation with this.")),
        "prefixes": (
            Annotated[list[text], Field(max_length=limits.texts)] | None,
            Field(None, description="The beginning of each translation, one for each text."),
        ),
        "forbid": (phrases, Field([], description="Phrases that no translation may contain.")),
        "require": (phrases, Field([], description="Phrases that each translation must contain.")),
        "require_each": (
            Annotated[list[phrases], Field(max_length=limits.texts)] | None,
            Field(None, description="Phrases for each translation, one list for each text."),
        ),
        "glossary": (
            Annotated[list[term], Field(max_length=limits.phrases)],
            Field([], description="Terms of the source, and their translations."),
        ),
        "glossary_match": (
            Literal["auto", "exact", "forms"],
            Field("auto", description="The forms in which terms are found."),
        ),
    }


def _output() -> dict[str, Any]:
    number = Annotated[int, Field(ge=0, le=1000)]
    return {
        "align": _flag("Link the words of each translation and its source."),
        "align_layer": (number | None, Field(None, description="Decoder layer to link by.")),
        "align_head": (number | None, Field(None, description="The head of that layer.")),
        "words_by": (
            Literal["auto", "spaces", "script", "subwords"],
            Field("auto", description="What the words are that links count."),
        ),
        "tokens": _flag("Add the tokens of each translation and their log-probabilities."),
        "format": (
            Literal["text", "html"],
            Field("text", description="html: translate sentences across tags, which stay."),
        ),
    }


def _asked() -> dict[str, Any]:
    name = Annotated[str, Field(max_length=40)]
    names = Annotated[list[name], Field(min_length=1, max_length=32)]
    numbers = Annotated[
        list[Annotated[int, Field(ge=0, le=1000)]], Field(min_length=1, max_length=64)
    ]
    return {
        "parts": (names | None, Field(None, description="encoder, decoder; all by default.")),
        "layers": (numbers | None, Field(None, description="Layers, from 0.")),
        "kinds": (names | None, Field(None, description="self, cross, feed_forward, recurrent.")),
        "heads": (numbers | None, Field(None, description="Heads, from 0.")),
        "stages": (names | None, Field(None, description="Stages; weights by default.")),
        "everything": _flag("Every array, so that nothing is missing from token to token."),
        "clean": _flag("Replace or drop characters that the model has not learned."),
    }


def _path() -> dict[str, Any]:
    ids = Annotated[list[Annotated[int, Field(ge=0, le=LARGEST)]], Field(max_length=4096)]
    return {
        "target_ids": (ids | None, Field(None, description="Look at these tokens.")),
        "prefix_ids": (ids | None, Field(None, description="Begin the translation with these.")),
        "changes": (
            Annotated[
                list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=32)
            ],
            Field([], description="Change the model, as in /v1/change."),
        ),
    }
