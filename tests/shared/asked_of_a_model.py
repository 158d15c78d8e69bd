"""Everything that can be asked of a loaded model, to compare devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import pellucid.inside
from pellucid.decode.constraints.request import Constraints
from pellucid.inside.contexts import compare_contexts
from pellucid.inside.studies.line_figures import measures_of
from pellucid.inside.vocabulary import best_words
from pellucid.translate.translator import Translator

Lines = Sequence[str]

Asked = dict[str, Callable[[], Any]]

# The options of a search, by what is asked for.
SEARCHES: Mapping[str, dict[str, Any]] = {
    "greedy": {},
    "beam": {"beam": 4, "n_best": 3},
    "sampling": {"sample": True, "top_k": 5, "seed": 3},
    "alternatives": {"alternatives": True, "n_best": 3},
    "strict": {"strict": True, "beam": 3},
    "rules": {"no_repeat_ngram": 2, "repetition_penalty": 1.2, "beam": 2, "min_length": 3},
    "diverse": {"beam": 4, "diverse_groups": 2, "n_best": 2, "diversity": 0.3},
    "links": {"align": True},
}


def ask(what: str, translator: Translator, sources: Lines, targets: Lines) -> dict[str, Any]:
    """Ask a model for everything of a kind; results by name.

    Args:
        what: ``search``, ``look``, ``measure`` or ``study``.
        translator: the model, of whole words.
        sources: at least two lines; the first word of the first one is in another one, too.
        targets: their translations, of which the first has four different words or more.
    """
    asked = _KINDS[what](translator, sources, targets)
    return {name: answer() for name, answer in asked.items()}


def _searches(translator: Translator, sources: Lines, targets: Lines) -> Asked:
    first, second, third, *_ = targets[0].split()
    searches = {**SEARCHES, "phrases": {"constraints": Constraints(first, (second,), (third,))}}
    translate = partial(_translate, translator, sources)
    return {
        **{name: partial(translate, **how) for name, how in searches.items()},
        "stream": lambda: list(translator.stream(sources[0])),
        "score": lambda: [one.log_probability for one in translator.score(sources, targets)],
        "given links": lambda: [one.alignment for one in translator.align(sources, targets)],
    }


def _looks(translator: Translator, sources: Lines, targets: Lines) -> Asked:
    has_heads = not translator.config.is_recurrent
    head = "decoder.0.cross.1" if has_heads else "decoder.0.cross"
    pair = translator.pair(sources[0], targets[0])
    look = partial(_look, translator, sources[0])
    changes = [f"cut {head}", *([f"average {head}"] if has_heads else [])]
    contexts = partial(compare_contexts, translator.bundle, sources[0].split()[0], sources)
    return {
        "look": lambda: look(everything=True),
        "look at a given one": lambda: look(translation=targets[0], float64=True),
        "look under changes": lambda: look(changes=changes),
        "changed": lambda: _translate(translator.changed(changes), sources[:1], max_length=3),
        "what if": lambda: repr(pair.what_if(changes)),
        "contexts": lambda: contexts().cosines(),
    }


def _measures(translator: Translator, sources: Lines, targets: Lines) -> Asked:
    pair = translator.pair(sources[1], targets[0])
    _, second, third, *_ = targets[0].split()
    asked: Asked = {"why": lambda: repr(pair.why(third, second))}
    asked |= {name: partial(_measure, pair, name) for name in measures_of(translator.bundle)}
    if not translator.config.is_recurrent:
        asked |= {
            "lens": lambda: repr(pellucid.inside.logit_lens(pair)),
            "decoder lens": lambda: repr(pellucid.inside.decoder_lens(pair)),
            "words": lambda: best_words(pair, "encoder", head=0, row=0, position=1, most=3),
        }
    return asked


def _studies(translator: Translator, sources: Lines, targets: Lines) -> Asked:
    bundle = translator.bundle
    return {"study": lambda: pellucid.inside.study(bundle, sources[1:2], targets[1:2]).heads.values}


_KINDS = {"search": _searches, "look": _looks, "measure": _measures, "study": _studies}


def differences(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """Name the results that differ by more than rounding."""
    return [name for name, one in here.items() if not _is_close(one, there[name])]


def _translate(translator: Translator, sources: Lines, **how: Any) -> list[Any]:
    found = translator.translate(sources, **how)
    return [[(h.text, h.log_probability, h.alignment) for h in one.hypotheses] for one in found]


def _look(translator: Translator, source: str, **how: Any) -> tuple[Any, ...]:
    trace = translator.look(source, **how)
    assert all(type(array) is np.ndarray for array in trace.arrays.values())
    return dict(trace.arrays), trace.log_probabilities, trace.argmax_tokens


def _measure(pair: pellucid.inside.Pair, name: str) -> np.ndarray:
    return pair.measure(name).matrix


def _is_close(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping):
        return set(one) == set(other) and all(_is_close(one[key], other[key]) for key in one)
    if isinstance(one, Sequence) and not isinstance(one, str):
        return len(one) == len(other) and all(map(_is_close, one, other))
    if isinstance(one, np.ndarray):
        return np.allclose(one, other, atol=1e-4, equal_nan=True)
    if isinstance(one, float):
        return math.isclose(one, other, abs_tol=1e-4)
    return repr(one) == repr(other)
