"""Every task in Pellucid, with its own functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from inside_peers.question import Question
from torch import Tensor

from pellucid.inside import Map
from pellucid.inside.sentence_pair import Pair
from pellucid.translate.translator import Translator


class Model:
    """A translator with the two sentences of a question as pairs, in double precision."""

    def __init__(self, translator: Translator, question: Question) -> None:
        self.translator = translator
        self.clean: Pair = translator.pair(question.clean, float64=True)
        self.changed: Pair = translator.pair(question.changed, float64=True)


def cache(model: Model, question: Question) -> dict[str, Tensor]:
    return model.clean.see({"weights", "norm"})


def cut_head(model: Model, question: Question) -> Tensor:
    cut = model.translator.pair(question.clean, changes="cut encoder.1.self.1", float64=True)
    return cut.logits()


def patch(model: Model, question: Question) -> Map:
    sites = ["encoder", "encoder.*.self.*"]
    first, second = question.words
    return model.changed.patch(model.clean, sites, why=first, other=second)


def patch_by_gradient(model: Model, question: Question) -> Map:
    first, second = question.words
    return model.changed.patch(model.clean, why=first, other=second, by_gradient=True)


def logit_attribution(model: Model, question: Question) -> Map:
    return model.clean.why(*question.words).measure("logit-attribution")


def head_gradients(model: Model, question: Question) -> Map:
    return model.clean.why(*question.words).measure("head-gradients")


def beam_weights(model: Model, question: Question) -> np.ndarray:
    trace = model.translator.look(question.clean, beam=5, length_penalty="none")
    return trace["decoder.1.cross"]


def beam_cut(model: Model, question: Question) -> tuple[int, ...]:
    search: dict[str, Any] = {"beam": 5, "length_penalty": "none"}
    changed = model.translator.translate(question.clean, changes="cut encoder.1.self.1", **search)
    return changed.ids
