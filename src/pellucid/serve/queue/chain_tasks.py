"""Work on texts that go through several models: one task for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pellucid.decode.constraints.request import Constraints
from pellucid.serve.answers.responses import about
from pellucid.serve.models import ServedChain
from pellucid.serve.queue.tasks import Text, Translate
from pellucid.translate.chain.chained import Chain, step_options
from pellucid.translate.chain.paths import ChainStep, Following, follow
from pellucid.translate.constraints import require_terms


class ChainTask:
    """Translation of texts by a chain of models.

    Args:
        task: what is asked of the chain.
        texts: to translate.

    Raises:
        Problem: 422, what is asked needs one model.
    """

    def __init__(self, task: Translate, texts: Sequence[Text]) -> None:
        assert isinstance(task.model, ServedChain)
        assert isinstance(task.model.translator, Chain)
        self._task = task
        self._texts = texts
        self._models = task.model.models
        self._translator = translator = task.model.translator
        self._config = translator.options(**dict(task.options))
        task.model.changed(task.changes)  # refuses any
        self._legs = translator.legs(dict(task.treatment).get("to"))
        if task.align is not None:
            units, layer, head = task.align
            with about("words_by" if layer is None else "align_head"):
                translator.aligner(units, None if layer is None else f"decoder.{layer}.{head}")

    def begin(self) -> Following:
        """Begin to lead the texts through the models."""
        texts = [one.text for one in self._texts]
        return follow(texts, self._translator.names, self._config.n_best)

    def of(self, step: ChainStep) -> tuple[Translate, list[Text]]:
        """Make the task of one model, and its texts."""
        task = self._task
        last = len(self._models) - 1
        is_last = step.number == last
        model = self._models[step.number]
        treatment = dict(task.treatment)
        treatment["to"] = self._legs[step.number]
        given = dict(task.options) | step_options(self._config, step.number, last)
        texts = [
            Text(text, require_terms(self._texts[row].constraints, self._texts[row].text))
            if is_last
            else Text(text)
            for text, row in zip(step.texts, step.rows, strict=True)
        ]
        is_plain = not treatment.get("retry") and all(map(_is_plain, texts))
        options = model.decide(given, is_plain=is_plain)
        return replace(task, model=model, options=options, treatment=_sorted(treatment)), texts


def _sorted(treatment: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, one) for name, one in treatment.items() if one is not None)


def _is_plain(text: Text) -> bool:
    of_lines = text.constraints
    each = [of_lines] if isinstance(of_lines, Constraints) else of_lines
    return not any(one.required or one.forbidden or one.glossary for one in each)
