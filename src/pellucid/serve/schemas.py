"""The bodies of requests under ``/v1``, with the server's limits in their schema."""

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

DECODING = tuple(name for name in DecodingConfig.model_fields if name != "forbidden_tokens")
"""The decoding options that a request may have: those of ``pellucid translate``."""

LARGEST = 2**31 - 1

SEARCH = ("beam", "n_best", "sample", "temperature", "top_k", "top_p", "seed")
"""The decoding options that a look takes."""


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
