"""The bodies of requests under ``/v1``, with the server's limits in their schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic_core import PydanticCustomError

from pellucid.config import DecodingConfig, TreatmentConfig
from pellucid.config.sections import request_fields, settings_of
from pellucid.serve.answers.given_glossaries import Term
from pellucid.serve.settings import Limits

# The decoding options that a request may have: those of `pellucid translate`.
DECODING = tuple(setting.name for setting in settings_of(DecodingConfig))

LARGEST = 2**31 - 1

# The decoding options that a look takes; a change takes them too, but has one translation.
SEARCH = ("beam", "n_best", "sample", "temperature", "top_k", "top_p", "seed")


# The address of heads.
_Address = Annotated[str, Field(min_length=1, max_length=80)]

_LINKS_BY = (
    "The head to read links from, such as decoder.1.cross.0; decoder.1 is the mean of its layer. "
    "By default the head that was taught links, or the mean of the last layer."
)


class _Body(BaseModel):
    """A request: strict about types and names.

    Attributes:
        limits: those that bound it.
    """

    limits: ClassVar[Limits] = Limits()

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=()
    )


def _listed(value: Any) -> Any:
    """Make a list of a single text."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise PydanticCustomError("text_or_list", "a text or a list of texts")
    return value


def _allow_one(schema: Any) -> None:
    """Say in the schema of a list that a single entry needs no brackets."""
    names = ("type", "items", "minItems", "maxItems")
    several = {name: schema.pop(name) for name in names if name in schema}
    schema["anyOf"] = [several["items"], several]


def _one_or_several(item: Any, *, max_length: int, min_length: int = 0) -> Any:
    """Make the type of a list of texts, of which one may stand without brackets."""
    field = Field(json_schema_extra=_allow_one, min_length=min_length, max_length=max_length)
    return Annotated[list[item], field, BeforeValidator(_listed)]


@dataclass(frozen=True)
class Schemas:
    """The classes of requests, with limits.

    Attributes:
        translate: of ``/v1/translate``.
        score: of ``/v1/score``.
        align: of ``/v1/align``.
        look: of ``/v1/look``.
        change: of ``/v1/change``.
    """

    translate: type[BaseModel]
    score: type[BaseModel]
    align: type[BaseModel]
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
    texts = {
        "texts": (
            _one_or_several(text, min_length=1, max_length=limits.texts),
            Field(description="Texts, or one.", examples=[["The pizza came out."]]),
        )
    }
    one = {"text": (text, Field(examples=["The pizza came out of the oven and it tasted good."]))}
    translate = {
        **texts,
        **which,
        **search,
        **request_fields(TreatmentConfig, keep=True),
        **_constraints(limits, text),
        **_changes(),
        **_output(),
    }
    pairs = _pairs(limits, text)
    score = {**pairs, **which, **_changes(), "tokens": _flag("Add each token.")}
    align = {
        **pairs,
        **which,
        "head": (_Address | None, Field(None, description=_LINKS_BY)),
        "words_by": _words_by(),
    }
    target = {"translation": (text | None, Field(None, description="Look at this translation."))}
    look = {
        **one,
        **target,
        **which,
        **_asked(),
        **_path(),
        **_changes(),
        **{name: search[name] for name in SEARCH},
    }
    change = {
        **one,
        **target,
        **which,
        **_changes(min_length=1),
        "prefix": (text, Field("", description="The beginning of the new translation.")),
        "random": (
            int,
            Field(0, ge=0, le=64, description="Other heads to change in the same way, drawn."),
        ),
        **{name: search[name] for name in SEARCH if name != "n_best"},
    }
    kinds: list[Any] = [
        _body("TranslateRequest", translate),
        _body("ScoreRequest", score),
        _body("AlignRequest", align),
        _body("LookRequest", look),
        _body("ChangeRequest", change),
    ]
    for kind in kinds:
        kind.limits = limits
    return Schemas(*kinds)


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
        "source_language": (code | None, Field(None, description="Chooses a model.")),
        "target_language": (
            code | None,
            Field(None, description="Chooses a model, and the language of one that has several."),
        ),
    }


def _pairs(limits: Limits, text: Any) -> dict[str, Any]:
    pair: Any = _body("Pair", {"source": (text, ...), "target": (text, ...)})
    return {
        "pairs": (
            list[pair],
            Field(
                min_length=1,
                max_length=limits.texts,
                description="Texts and their translations.",
                examples=[[{"source": "The cat sleeps.", "target": "Le chat dort."}]],
            ),
        )
    }


def _changes(min_length: int = 0) -> dict[str, Any]:
    """Make the field of changes; it must be there if it must have an entry."""
    change = Annotated[str, Field(min_length=1, max_length=200)]
    return {
        "changes": (
            _one_or_several(change, min_length=min_length, max_length=32),
            Field(
                ... if min_length else [],
                description="Changes of the model, or one, as for --change.",
                examples=[["cut decoder.0.cross.0"]],
            ),
        )
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
    phrases: Any = _one_or_several(phrase, max_length=limits.phrases)
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
            Annotated[list[Term], Field(max_length=limits.phrases)],
            Field(
                [],
                description="Terms of the source, and their translations: forms with | between "
                "them, the preferred one first; *free* among them allows other endings.",
            ),
        ),
        "glossary_match": (
            Literal["auto", "exact", "forms"],
            Field("auto", description="The forms in which terms are found."),
        ),
    }


def _words_by() -> Any:
    return (
        Literal["auto", "spaces", "script", "subwords"],
        Field("auto", description="What the words are that links count."),
    )


def _output() -> dict[str, Any]:
    return {
        "align": _flag("Link the words of each translation and its source."),
        "align_head": (_Address | None, Field(None, description=_LINKS_BY)),
        "words_by": _words_by(),
        "tokens": _flag("Add the tokens of each translation and their log-probabilities."),
        "format": (
            Literal["text", "html"],
            Field("text", description="html: translate sentences across tags, which stay."),
        ),
        "stream": _flag("Send the translation of one text piece by piece, as events."),
    }


def _asked() -> dict[str, Any]:
    name = Annotated[str, Field(min_length=1, max_length=40)]
    return {
        "heads": (
            _one_or_several(_Address, max_length=64),
            Field(
                [],
                description="Heads, or one address of several, such as decoder.1.cross.0, "
                "decoder.1 or *.*.self; all by default.",
            ),
        ),
        "stages": (
            _one_or_several(name, max_length=32),
            Field([], description="Stages, or one; weights by default."),
        ),
        "everything": _flag("Every array, so that nothing is missing from token to token."),
        "clean": _flag("Replace or drop characters that the model has not learned."),
    }


def _path() -> dict[str, Any]:
    ids = Annotated[list[Annotated[int, Field(ge=0, le=LARGEST)]], Field(max_length=4096)]
    return {
        "target_ids": (ids | None, Field(None, description="Look at these tokens.")),
        "prefix_ids": (ids | None, Field(None, description="Begin the translation with these.")),
    }
