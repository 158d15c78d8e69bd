"""A look inside a model, and what-if, as answers: for the computing thread only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pellucid.corpora.rival_forms import rival_ids
from pellucid.decode.constraints.request import Constraints
from pellucid.errors import InputError
from pellucid.serve.answers.request_bodies import SEARCH, given_fields
from pellucid.serve.answers.responses import Problem, about
from pellucid.serve.models import ServedModel
from pellucid.serve.queue.tasks import CHANGED_STEPS, estimate_search, estimate_tokens

if TYPE_CHECKING:
    import numpy as np

    from pellucid.attention.probe import Probe
    from pellucid.inside.ask import Ask
    from pellucid.text.tokenizers.tokenizer import Tokenizer
    from pellucid.translate.results import TranslatedHypothesis

# Factor by which replays take longer than a pass.
_REPLAY = 8

# Tokens of each row of logits whose texts an answer holds.
MOST_NAMED = 9


def answer_look(
    model: ServedModel, body: Any, *, most_bytes: int, is_json: bool = False
) -> Iterator[bytes]:
    """Look inside the translation of a text.

    Args:
        model: the model.
        body: a request of ``/v1/look``.
        most_bytes: the most bytes of all arrays.
        is_json: True to write the trace as the object of a ``.json`` file, without what the page
            shows beside it.

    Returns:
        What `load_trace` reads, piece by piece: the records of the trace, and its arrays in the
        order in which the model computes them.

    Raises:
        InputError: the text or the target cannot be looked at, or an array does not exist.
        Problem: 413, the arrays are too large.
    """
    from pellucid.inside.line_traces import model_facts
    from pellucid.inside.pair import make_pair
    from pellucid.inside.record.tensor_files import RECORDS, tensor_chunks
    from pellucid.inside.record.trace_files import trace_to_json
    from pellucid.inside.replayed_pair import replay
    from pellucid.translate.records import clean_line, line_notes

    ask = _ask(body, model)
    text = _one_line(body, model)
    translator = model.translator
    notes = line_notes(translator, text)
    if body.clean:
        text = clean_line(translator.bundle, text)
    source_ids = translator.tokenizer.encode_source(text)
    found = _find_target(model, body, text, source_ids)
    size = ask.num_bytes(translator.model.config, len(source_ids), len(found.ids))
    if size > most_bytes:
        raise Problem(
            413,
            f"The arrays must have at most {most_bytes:,} bytes, but would have {size:,}. "
            "Ask for single layers, heads or stages.",
        )
    bundle = translator.bundle
    pair = make_pair(bundle, text, found.ids, float64=True)
    trace = replay(
        pair,
        ask,
        decode_log_probabilities=found.logs,
        model=model_facts(bundle),
        decoding=found.decoding,
        changes=found.probe,
        decoded_under_changes=found.logs is not None,
    )
    if is_json:
        return iter([trace_to_json(trace).encode()])
    records = {name: getattr(trace, name) for name in RECORDS}
    order = {wanted.name: place for place, wanted in enumerate(ask.arrays(pair.model.config))}
    arrays = sorted(trace.arrays.items(), key=lambda named: order.get(named[0], len(order)))
    records |= {"problems": trace.problems, "text": translator.tokenizer.decode_target(found.ids)}
    records["hypotheses"] = found.hypotheses
    records["notes"] = {**notes, "flags": found.flags}
    records["vocabulary"] = _vocabulary(translator.tokenizer, dict(arrays), found)
    return tensor_chunks(records, arrays)


def estimate_look(model: ServedModel, body: Any) -> int:
    """Estimate the positions that a look computes: those of the search, and of the replay."""
    translator = model.translator
    config = translator.decoding.model_copy(update=given_fields(body, SEARCH))
    searched = estimate_search(body.text, config, translator.config.max_target_length)
    if body.changes:
        searched *= CHANGED_STEPS
    return searched + _REPLAY * _tokens(body)


def estimate_change(model: ServedModel, body: Any) -> int:
    """Estimate the positions of a search without and with changes, and of all replays."""
    without = estimate_look(model, body.model_copy(update={"changes": []}))
    return without + estimate_look(model, body) + 2 * int(body.random) * _tokens(body)


def _tokens(body: Any) -> int:
    return estimate_tokens(body.text) + estimate_tokens(body.translation or "")


@dataclass(frozen=True)
class _Target:
    """The target to look at.

    Attributes:
        ids: its tokens, ``</s>`` included if it has one.
        logs: their log-probabilities as a search computed them; None if they were given.
        decoding: how it was found.
        hypotheses: what the search found, the best first.
        probe: what changes the model.
        flags: reasons to read the best one again.
    """

    ids: tuple[int, ...]
    logs: tuple[float, ...] | None
    decoding: dict[str, Any]
    hypotheses: list[dict[str, Any]]
    probe: Probe | None
    flags: tuple[str, ...] = ()


def _ask(body: Any, model: ServedModel) -> Ask:
    from pellucid.inside.ask import Ask

    with about("heads"):
        ask = Ask(body.heads, everything=body.everything)
        ask.check(model.translator.model.config)
    if body.stages:
        with about("stages"):
            ask = replace(ask, stages=body.stages)
            ask.check(model.translator.model.config)
    return ask


def _find_target(model: ServedModel, body: Any, text: str, source_ids: Sequence[int]) -> _Target:
    """Take the target that is given, or search for one, also under changes or after a prefix."""
    translator = model.translator
    tokenizer = translator.tokenizer
    search = given_fields(body, SEARCH)
    given = given_fields(body, ("translation", "target_ids"))
    if len(given) > 1 or (given and (search or body.prefix_ids)):
        raise Problem(
            422,
            "translation, target_ids, and options of a search or its prefix_ids cannot be "
            "combined. Leave one of them out.",
            code="not_together",
        )
    if given:
        ids = body.target_ids
        if ids is None:
            ids = _target_ids(tokenizer, body, text)
        _check_ids(model, "target_ids", ids)
        probe = _probe(body, model, text, source_ids, len(ids))
        return _Target(tuple(ids), None, {"given": True}, [], probe)
    probe = _probe(body, model, text, source_ids, translator.config.max_target_length)
    if probe is not None:
        translator = translator.changed(probe)
    prefix = tuple(body.prefix_ids or ())
    _check_ids(model, "prefix_ids", prefix)
    # The language belongs to the question, not to the beginning of the answer.
    prefix = prefix[len(tokenizer.leading_ids(prefix)) :]
    constraints = Constraints(prefix_ids=prefix)
    (found,) = translator.translate(
        [text], constraints=constraints, clean=False, split="none", **search
    )
    if found.error is not None:
        raise InputError(found.error)
    hypotheses = [_hypothesis(tokenizer, one) for one in found.hypotheses]
    decoding = translator.options(**search).model_dump(mode="json") | {"given": False}
    if prefix:
        decoding["prefix_ids"] = prefix
    if probe is not None:
        decoding["changes"] = str(probe)
    best = found.best
    flags = found.notes.flags
    return _Target(best.ids, best.token_log_probabilities, decoding, hypotheses, probe, flags)


def _hypothesis(tokenizer: Tokenizer, found: TranslatedHypothesis) -> dict[str, Any]:
    """Write a translation that was found, with the log-probability of each token and its score."""
    return {
        "text": found.text,
        "ids": found.ids,
        "log_probabilities": found.token_log_probabilities,
        "is_finished": found.ids[-1:] == (tokenizer.config.eos_id,),
        "score": found.score,
    }


def _probe(
    body: Any, model: ServedModel, text: str, source_ids: Sequence[int], target_length: int
) -> Probe | None:
    """Read the changes of a sentence, whose words and positions they may name."""
    from pellucid.inside.changes.given_changes import ChangedSentence, read_changes

    if not body.changes:
        return None
    translator = model.translator
    sentence = ChangedSentence(translator.tokenizer, text, source_ids, target_length)
    with about("changes"):
        return read_changes(body.changes, translator.config, sentence)


def _check_ids(model: ServedModel, name: str, ids: Sequence[int]) -> None:
    size = model.translator.model.config.target_vocabulary_size
    limit = model.translator.model.config.max_target_length
    if any(id_ >= size for id_ in ids) or (name == "target_ids" and not ids) or len(ids) > limit:
        raise Problem(
            422,
            f"{name} must be at most {limit} ids of the target vocabulary, below {size}.",
            field=name,
        )


def _vocabulary(
    tokenizer: Tokenizer, arrays: dict[str, np.ndarray], found: _Target
) -> dict[int, str]:
    """Name the tokens of all hypotheses, and the likeliest ones of each row of logits."""
    ids = {id_ for one in found.hypotheses for id_ in one["ids"]} | set(found.ids)
    logits_TV = arrays.get("decoder.logits")
    if logits_TV is not None:
        count = min(MOST_NAMED, logits_TV.shape[1])
        # The names of a whole vocabulary would be too large for an answer.
        ids.update(map(int, (-logits_TV).argpartition(count - 1, axis=1)[:, :count].ravel()))
    # The page asks why a word was written and not its other gender.
    rivals = rival_ids(tuple(tokenizer.vocabulary("target")))
    ids.update(*(rivals.get(id_, ()) for id_ in tuple(ids)))
    ordered = sorted(ids)
    return dict(zip(ordered, tokenizer.target_tokens(ordered), strict=True))


def _one_line(body: Any, model: ServedModel) -> str:
    from pellucid.text.language_tokens import with_codes

    text = body.text.strip()
    if not text or "\n" in text:
        sentence = "A text to look at must be one line that holds text."
        raise Problem(422, sentence, field="text")
    tokenizer = model.translator.tokenizer
    # As for a translation: a model that has several languages needs the code of one.
    language = model.code_of(body.source_language, body.target_language)
    (text,) = with_codes(tokenizer, language, [text])
    return tokenizer.masked(text)


def _target_ids(tokenizer: Tokenizer, body: Any, text: str) -> list[int]:
    """Cut the given target, maybe with symbols for the placeholders of the text."""
    return tokenizer.encode_translation(text, tokenizer.masked_pair(body.text, body.translation)[1])


def change(model: ServedModel, body: Any) -> dict[str, Any]:
    """Translate a text again under changes, and score the old translation under them.

    Args:
        model: the model.
        body: a request of ``/v1/change``.

    Raises:
        InputError: a change cannot be read, or its place does not exist.
    """
    from pellucid.inside.changes.what_if import what_if
    from pellucid.inside.pair import PairData

    translator = model.translator
    text = _one_line(body, model)
    search = given_fields(body, SEARCH)
    source_ids = tuple(translator.tokenizer.encode_source(text))
    if body.translation is not None:
        target_ids = tuple(_target_ids(translator.tokenizer, body, text))
        _check_ids(model, "translation", target_ids)
    else:
        # As it is: what is shown of a text must be what the model read.
        (best,) = translator.translate([text], clean=False, split="none", **search)
        if best.error is not None:
            raise InputError(best.error)
        target_ids = best.ids
    _probe(body, model, text, source_ids, len(target_ids))
    found = what_if(
        PairData(translator.model, translator.tokenizer, source_ids, target_ids, text),
        body.changes,
        prefix=body.prefix,
        num_random=body.random,
        search=translator.options(**search),
    )
    outputs = {name: _output(getattr(found, name)) for name in ("original", "before", "after")}
    baseline = None
    if found.baseline is not None:
        effects = list(map(_number, found.baseline.effects))
        baseline = {"changes": found.baseline.changes, "effects": effects}
    return {
        "model": model.name,
        "changes": found.changes,
        **outputs,
        "effect": _number(found.effect),
        "under_change": list(map(_number, found.under_change)),
        "after_unchanged": list(map(_number, found.after_unchanged)),
        "edits": [
            {"place": one.place, "before": one.before, "after": one.after} for one in found.edits
        ],
        "baseline": baseline,
    }


def _output(output: Any) -> dict[str, Any]:
    return {
        "text": output.text,
        "tokens": output.tokens,
        "log_probabilities": list(map(_number, output.log_probabilities)),
    }


def _number(value: float) -> float | None:
    """Write a number that JSON has; None stands for minus infinity."""
    return value if math.isfinite(value) else None
