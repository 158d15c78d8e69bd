"""The bodies of requests and answers under ``/v1``, with the server's limits in their schema."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, Field, create_model

from pellucid.config import DecodingConfig
from pellucid.serve.settings import Limits

__all__ = [
    "DECODING",
    "Answer",
    "BaselineAnswer",
    "ChangeAnswer",
    "EditAnswer",
    "Hypothesis",
    "ModelAnswer",
    "ModelsAnswer",
    "OutputAnswer",
    "ProblemAnswer",
    "Schemas",
    "ScoreAnswer",
    "ScoresAnswer",
    "StatusAnswer",
    "TranslateAnswer",
    "TranslationAnswer",
    "make_schemas",
]

DECODING = tuple(name for name in DecodingConfig.model_fields if name != "forbidden_tokens")
"""The decoding options that a request may have: those of ``pellucid translate``."""

LARGEST = 2**31 - 1


class _Body(BaseModel):
    """A request: strict about types and names."""

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=()
    )


class Answer(BaseModel):
    """An answer."""

    model_config = ConfigDict(protected_namespaces=())


class ProblemAnswer(Answer):
    """A refusal or a failure."""

    error: str = Field(description="One sentence about the fault, and what to do now.")


class Hypothesis(Answer):
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


class TranslationAnswer(Answer):
    """The translation of one text."""

    text: str = Field(description="The best translation; empty if there is an error.")
    error: str | None = Field(description="Why this text could not be translated.")
    hypotheses: list[Hypothesis]
    source_words: list[str] | None = None
    notes: dict[str, Any] | None = Field(None, description="Anything unusual about the text.")


class TranslateAnswer(Answer):
    """The translations of a request's texts, in their order."""

    model: str
    translations: list[TranslationAnswer]


class ScoreAnswer(Answer):
    """The score of one pair."""

    log_probability: float | None
    error: str | None
    tokens: list[str] | None = None
    ids: list[int] | None = None
    token_log_probabilities: list[float] | None = None


class ScoresAnswer(Answer):
    """The scores of a request's pairs, in their order."""

    model: str
    scores: list[ScoreAnswer]


class OutputAnswer(Answer):
    """A translation and how likely the model found each of its tokens."""

    text: str
    tokens: list[str]
    log_probabilities: list[float | None]


class EditAnswer(Answer):
    """Words that differ, at the number of a word from 0."""

    place: int
    before: list[str]
    after: list[str]


class BaselineAnswer(Answer):
    """The same change of other heads, drawn at random."""

    changes: list[str]
    effects: list[float | None]


class ChangeAnswer(Answer):
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


class ModelAnswer(Answer):
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


class ModelsAnswer(Answer):
    """The models of the server; the first is the default."""

    models: list[ModelAnswer]
    limits: dict[str, float]


class StatusAnswer(Answer):
    """The state of the server."""

    status: Literal["ok"]


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
    treatment = _treatment()
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
    look = _body("LookRequest", {**one, **target, **which, **_asked(), "beam": search["beam"]})
    changes = {
        "changes": (
            list[Annotated[str, Field(max_length=200)]],
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
    bounds: dict[str, Any] = {
        "beam": (1, limits.beam),
        "n_best": (1, limits.count),
        "diverse_groups": (1, limits.beam),
        "max_length": (0, limits.tokens),
        "min_length": (0, limits.tokens),
        "max_length_offset": (1, limits.tokens),
        "no_repeat_ngram": (0, limits.tokens),
        "max_length_ratio": (None, 10.0),
        "min_length_ratio": (0.0, 10.0),
        "seed": (0, LARGEST),
        "top_k": (0, LARGEST),
    }
    notes = _notes_of_fields()
    fields: dict[str, Any] = {}
    for name in DECODING:
        field = DecodingConfig.model_fields[name]
        kind: Any = field.annotation
        if name in bounds:
            low, high = bounds[name]
            rules = [Le(high)] if low is None else [Ge(low), Le(high)]
            rules += [rule for rule in field.metadata if type(rule).__name__ == "Gt"]
        else:
            rules = list(field.metadata)
        if rules:
            kind = Annotated[kind, *rules]
        fields[name] = (kind | None, Field(None, description=notes.get(name, "")))
    return fields


def _treatment() -> dict[str, Any]:
    return {
        "clean": _flag("Replace or drop characters that the model has not learned.", True),
        "split": _flag("Split texts that have more sentences than those of training.", True),
        "split_long": _flag("With split false: split only texts that are too long."),
        "unknown": (
            Literal["token", "source-word"],
            Field("token", description="What to write for a word outside the vocabulary."),
        ),
        "retry": _flag("Search again, against repetitions, if a translation looks wrong."),
    }


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
    }


@cache
def _notes_of_fields() -> dict[str, str]:
    """Read what each decoding option means, from the string below it."""
    try:
        source = inspect.getsource(DecodingConfig)
    except OSError:  # installed without sources
        return {}
    (tree,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(tree, ast.ClassDef)
    notes = {}
    for field, note in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(note, ast.Expr):
            assert isinstance(field.target, ast.Name)
            text = ast.literal_eval(note.value)
            notes[field.target.id] = " ".join(text.replace("``", "").split())
    return notes
