"""The bodies of answers under ``/v1``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pellucid.serve.answers.responses import CODES


class AnswerBody(BaseModel):
    """An answer."""

    model_config = ConfigDict(protected_namespaces=())


class ProblemAnswer(AnswerBody):
    """A refusal or a failure."""

    error: str = Field(description="One sentence about the fault, and what to do now.")
    code: str = Field(
        description="The kind of the fault, for programs.", json_schema_extra={"enum": [*CODES]}
    )
    field: str | None = Field(None, description="The field that is wrong, if that is known.")
    index: int | None = Field(None, description="The number of its entry, from 0.")


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
    middle: list[str] | None = Field(
        None, description="Of a chain of models, the texts between them."
    )


class StepBody(AnswerBody):
    """The work of one model of a chain on a text."""

    model: str
    translation: str
    notes: dict[str, Any]


class TermAnswer(AnswerBody):
    """A term of the glossary, and what became of it."""

    source: str
    target: str
    outcome: Literal["hit", "form", "miss"]
    written: str = Field(description="The form in the translation; empty if it is missing.")
    reason: str | None = Field(None, description="Why it should be looked at.")


class TermCount(AnswerBody):
    """A term of the glossary, and how often what became of it."""

    source: str
    target: str
    hits: int = Field(ge=0)
    forms: dict[str, int] = Field(description="Other allowed forms, with their counts.")
    misses: dict[str, int] = Field(description="Reasons why it is missing, with their counts.")


class UnsureText(AnswerBody):
    """A text of a document whose translation should be looked at."""

    line: int = Field(ge=1)
    key: str
    reason: str


class TranslationAnswer(AnswerBody):
    """The translation of one text."""

    source: str
    translation: str | None = Field(description="The best translation; null if there is an error.")
    error: str | None = Field(description="Why this text could not be translated.")
    hypotheses: list[HypothesisBody]
    source_words: list[str] | None = None
    notes: dict[str, Any] | None = Field(None, description="Anything unusual about the text.")
    through: list[StepBody] | None = Field(
        None, description="Of a chain of models, what each made of the text."
    )
    terms: list[TermAnswer] | None = Field(
        None, description="Of a glossary, the terms in the text."
    )
    unsure: list[UnsureText] | None = Field(
        None, description="Of HTML, the texts in it whose translations should be looked at."
    )


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
    missed_changes: list[str] | None = Field(
        None, description="Changes whose word the source lacks, or has more than once."
    )


class ScoresAnswer(AnswerBody):
    """The scores of a request's pairs, in their order."""

    model: str
    scores: list[ScoreAnswer]


class LinksAnswer(AnswerBody):
    """The word links of one pair."""

    source_words: list[str]
    target_words: list[str]
    alignment: list[tuple[int, int]] = Field(description="(source word, target word), from 0.")
    error: str | None


class AlignAnswer(AnswerBody):
    """The word links of a request's pairs, in their order."""

    model: str
    alignments: list[LinksAnswer]


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
    before: OutputAnswer = Field(description="The translation without the changes.")
    after: OutputAnswer = Field(
        description="The translation under the changes, by the same search."
    )
    effect: float | None = Field(description="On the log-probability of the original.")
    under_change: list[float | None] = Field(description="The original's, token by token.")
    after_unchanged: list[float | None] = Field(description="Those of after, without changes.")
    edits: list[EditAnswer]
    baseline: BaselineAnswer | None = None


class ModelAnswer(AnswerBody):
    """A model."""

    name: str
    source_language: str = Field(description="Empty if unknown.")
    target_languages: list[str] = Field(description="Empty if unknown.")
    model_hash: str
    architecture: str
    stored: str = Field(description="The precision of the weights in its files.")
    computes: str = Field(description="The precision that its products are computed in.")
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
