"""The bodies of answers under ``/v1``, as their description shows them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


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
