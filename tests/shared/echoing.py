"""A translator that answers at once, for tests of what is around a translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import pellucid.translate.translator
from pellucid.cli.lines import translation_job
from pellucid.config import DecodingConfig, validate
from pellucid.decode.constraints.request import Constraints
from pellucid.text.reading.lines import not_a_line
from pellucid.translate.constraints import used_terms
from pellucid.translate.preparing import constraints_of_each
from pellucid.translate.results import TranslatedHypothesis, Translation


@dataclass
class Echo:
    """A translator that answers at once, and records its calls.

    A line that starts with ``!`` cannot be translated; ``interrupt`` maps the number of a call,
    from 0, to the exception that it raises.
    """

    model_hash: str = "a" * 64
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    interrupt: dict[int, BaseException] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)
    loaded: dict[str, Any] = field(default_factory=dict)

    model: None = None
    tokenizer = SimpleNamespace(
        has_masks=False,
        needs_code=False,
        config=SimpleNamespace(unk_id=1),
        encode_source=lambda text: [3],
    )
    decoder = SimpleNamespace(
        find_reason=lambda config: "it is an echo", describe=lambda config, rule: "an echo"
    )

    languages = SimpleNamespace(source="en", target="fr", targets=())

    tokenizers = (tokenizer,)
    taught_links = None
    learned = None

    @property
    def bundle(self) -> SimpleNamespace:
        languages = SimpleNamespace(source="en", target="fr")
        tokenizer = SimpleNamespace(
            config=SimpleNamespace(unk_id=1), encode_target=lambda text: [3 + len(text)]
        )
        return SimpleNamespace(
            model_hash=self.model_hash,
            config=SimpleNamespace(languages=languages),
            tokenizer=tokenizer,
        )

    @property
    def own_precision(self) -> str:
        return self.decoding.precision

    @property
    def model_hashes(self) -> tuple[str, ...]:
        return (self.model_hash,)

    def options(self, **options: Any) -> DecodingConfig:
        return validate(DecodingConfig, self.decoding.model_dump() | options, "options")

    def translate(self, texts: Sequence[str], **options: Any) -> list[Translation]:
        if len(self.calls) in self.interrupt:
            raise self.interrupt.pop(len(self.calls))
        self.calls.append({"texts": list(texts), **options})
        answers = [self._answer(text, options) for text in texts]
        each = constraints_of_each(options.get("constraints", Constraints()), len(texts))
        return [
            replace(one, terms=used_terms(own, one.source, one.text))
            for one, own in zip(answers, each, strict=True)
        ]

    def _answer(self, text: str, options: dict[str, Any]) -> Translation:
        if fault := not_a_line(text):
            return Translation(text, (), fault)
        if text.startswith("!"):
            return Translation(text, (), "It must not shout.")
        hypotheses = tuple(
            TranslatedHypothesis(
                text.upper() + "?" * rank, ("T",), (7,), (-1.5,), -1.5, -0.5 - rank
            )
            for rank in range(options.get("n_best", 1))
        )
        return Translation(text, hypotheses, None)


def use_echo(monkeypatch: pytest.MonkeyPatch) -> Echo:
    """Let every command load an `Echo`, and translate seven lines at a time."""
    translator = Echo()

    def load(model: str, **options: Any) -> Echo:
        translator.loaded = {"model": model, **options}
        monkeypatch.setattr(torch, "get_num_threads", lambda: options["threads"] or 2)
        return translator

    monkeypatch.setattr(pellucid.translate.translator, "load", load)
    monkeypatch.setattr(translation_job, "MAX_LINES", 7)
    return translator
