"""The page that looks inside: a model that runs in it, a recorded sentence, or both."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from pellucid.bundle import Bundle, open_bundle, resolve_model, shipped_name
from pellucid.config.model import AS_FIRST_BUILT, find_unlisted
from pellucid.corpora.baselines import NOUN_GENDERS
from pellucid.corpora.rival_forms import rival_ids
from pellucid.corpora.seen import shipped_seen_sentences
from pellucid.errors import InputError
from pellucid.inside.measures.agreement import on_words
from pellucid.inside.measures.registry import MEASURES, measure
from pellucid.inside.pair import make_pair
from pellucid.inside.record.trace_data import TraceData
from pellucid.inside.show.static import static_map
from pellucid.inside.show.view import default_view, describe_model_of
from pellucid.page.filled_page import MODEL_LIMIT, make_page
from pellucid.text.cleaning import Cleaner
from pellucid.text.learned import LearnedText
from pellucid.text.tokenizers.tokenizer import SPACE_SIGN
from pellucid.text.tokenizers.whole_words import join_words


def trace_page(trace: TraceData) -> str:
    """Make a page that shows what a trace recorded.

    It loads nothing, and its own policy forbids loading.

    Args:
        trace: the trace to show.

    Raises:
        InputError: the trace holds no array of a head, or more than a page may hold.
    """
    text = _sentence(trace.source_tokens)
    return make_page(
        _title(text),
        traces=[carry_trace(trace, source=text)],
        start={"view": "look", **_start(trace), "text": text},
        remarks=_remarks(trace),
        without_script=static_map(default_view(trace)),
    )


def model_page(
    bundle: Bundle,
    trace: TraceData,
    text: str,
    *,
    lessons: Sequence[Mapping[str, Any]] = (),
    without_lessons: str = "",
    has_others: bool = True,
    name: str = "",
    remarks: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """Make a page that runs a model, opened at a sentence.

    A model that a page cannot run is shown by the trace, and a sentence says why. The trace comes
    along as well if the page would not find the same by itself: its target was given or searched
    for with other options, or something was changed.

    Args:
        bundle: the model.
        trace: of the sentence.
        text: the sentence.
        lessons: walks to offer next to the model.
        without_lessons: the reason, in a sentence, why it has no lessons.
        has_others: False leaves out the models that the duel compares with: 6 MB.
        name: the model's name as the command line takes it.
        remarks: sentences to show at the top.
        notes: sentences about this line, which a page that runs the model finds by itself.

    Raises:
        InputError: the page must show the trace, which holds no array of a head, or more than a
            page may hold.
    """
    reason = cannot_carry(bundle)
    text = text.strip()
    start = {**_start(trace), "text": text}
    record = partial(carry_trace, trace, source=text, command=name)
    if reason:
        return make_page(
            _title(text),
            traces=[record() | {"measures": carry_measures(bundle, trace, text)}],
            start=start,
            remarks=[*_remarks(trace), *remarks, *notes, reason],
            without_lessons=without_lessons,
            without_script=static_map(default_view(trace)),
        )
    # What the page finds by itself need not be carried.
    is_same = _is_greedy(trace) and not trace.problems
    return make_page(
        _title(text),
        models=[carry_model(bundle, name, command=name)],
        traces=[] if is_same else [record()],
        lessons=lessons,
        without_lessons=without_lessons,
        duel=carry_duel(has_others=has_others) if lessons else None,
        start={**start, **({} if is_same else {"source": "1"})},
        remarks=[*_remarks(trace), *remarks],
    )


def _is_greedy(trace: TraceData) -> bool:
    decoding = trace.decoding
    plain = decoding.get("beam") == 1 and not decoding.get("sample")
    # The page computes in float32, so in another precision it might write other words.
    plain = plain and decoding.get("precision") == "float32"
    others = ("given", "changes", "prefix", "no_repeat_ngram", "min_length")
    return bool(plain and not any(decoding.get(name) for name in others))


def _title(text: str) -> str:
    return f"{text} · Pellucid"


def _sentence(tokens: Sequence[str]) -> str:
    """Join tokens into a line, as far as that is possible without their tokenizer."""
    words = [token for token in tokens if token != "</s>"]
    if any(SPACE_SIGN in word for word in words):
        return "".join(words).replace(SPACE_SIGN, " ").strip()
    return join_words(words)


def _remarks(trace: TraceData) -> list[str]:
    changes = trace.decoding.get("changes")
    return [*trace.problems, *([f"CHANGED on the way: {changes}."] if changes else [])]


def _start(trace: TraceData) -> dict[str, str]:
    """Open at the only head of a trace; otherwise the page chooses."""
    sites = {name.rpartition(".")[0] for name in trace.arrays if name.endswith(".weights")}
    if len(sites) != 1 or len(trace.heads) != 1:
        return {}
    return {"view": "look", "show": "map", "head": f"{sites.pop()}.{trace.heads[0]}"}


MOST_BYTES = 64 * 2**20
"""The most bytes of numbers in a page that browsers open well."""


_TOKENIZER = {
    *("kind", "sharing", "normalization", "lowercase", "drop_punctuation"),
    *("pad_id", "unk_id", "bos_id", "eos_id", "target_start_id"),
}
_DECODING = {
    *("beam", "n_best", "length_penalty", "alpha", "diversity", "precision", "strict"),
    *("max_length_ratio", "max_length_offset", "temperature", "top_k", "top_p", "epsilon", "seed"),
}
"""The settings that a page obeys, or that change nothing there; others must have their default."""


def cannot_carry(bundle: Bundle) -> str:
    """Explain in one sentence why a page cannot run a model; return ``""`` if it can."""
    config = bundle.config
    recorded = "The page shows a recorded sentence: it "
    if config.model.is_recurrent:
        return f"{recorded}runs Transformers itself, and this model is recurrent."
    if config.tokenizer.kind != "words":
        return (
            f"{recorded}runs models of whole words itself, and this model cuts words into pieces."
        )
    if config.decoding.precision != "float32":
        return (
            f"{recorded}computes in float32 itself, and this model in "
            f"{config.decoding.precision}, which may give other words."
        )
    found = [
        ("model", config.model, find_unlisted(config.model, AS_FIRST_BUILT)),
        ("tokenizer", config.tokenizer, config.tokenizer.find_set(_TOKENIZER)),
        ("decoding", config.decoding, config.decoding.find_set(_DECODING)),
    ]
    for section, values, name in found:
        if name is not None:
            value = getattr(values, name)
            said = f"{recorded}cannot run a model whose {section}.{name} is {value}."
            steps = " Its arithmetic explains the paper's steps, without this option's."
            return said + (steps if section == "model" else "")
    # Four bytes a number, as the page holds them.
    size = sum(4 * weight.numel() for weight in bundle.exact_model.state_dict().values())
    if size > MODEL_LIMIT:
        return (
            f"{recorded}runs models of at most "
            f"{MODEL_LIMIT // 2**20} MiB itself, and this one has {size / 2**20:.0f} MiB."
        )
    return ""


def _carry_seen(bundle: Bundle) -> dict[str, str]:
    """Pack the filter of the sentences that the packaged model learned from."""
    seen = shipped_seen_sentences()
    if seen.model_hash != bundle.model_hash:
        return {}
    return {"seen": base64.b64encode(seen.bits).decode()}


def carry_model(bundle: Bundle, name: str = "", *, command: str = "") -> dict[str, Any]:
    """Pack a model as the page runs it: configuration, vocabularies, and float32 weights.

    Args:
        bundle: the model.
        name: its name for the reader; that of its folder unless given.
        command: its name as the command line takes it; that of a packaged model unless given,
            and for other models MODEL.
    """
    config = bundle.config.model_dump(mode="json")
    tensors = {}
    parts = []
    start = 0
    for tensor_name, tensor in sorted(bundle.exact_model.state_dict().items()):
        # Little-endian whatever the machine, as browsers read it.
        array = np.ascontiguousarray(tensor.detach().float().cpu().numpy(force=True), dtype="<f4")
        tensors[tensor_name] = {"shape": list(array.shape), "start": start}
        parts.append(array.tobytes())
        start += array.size
    # Weights that were stored in bfloat16 have lower halves of 0, which need not be carried.
    halves = np.frombuffer(b"".join(parts), dtype="<u2").reshape(-1, 2)
    has_halves = not halves[:, 0].any()
    # The page warns of letters and lengths that the model never learned.
    learned = LearnedText.read(bundle.manifest, bundle.tokenizer)
    return {
        "name": name or bundle.folder.name,
        "command": command or shipped_name(bundle.folder),
        "learned": {
            "known": "".join(sorted(Cleaner(learned.characters, bundle.tokenizer).known)),
            "longest_targets": dict(learned.longest_targets or {}),
            "most_characters": learned.most_characters,
            **_carry_seen(bundle),
        },
        "model_hash": bundle.model_hash,
        "taught_head": bundle.taught_head,
        "languages": config["languages"],
        "model": config["model"],
        "tokenizer": config["tokenizer"],
        "decoding": config["decoding"],
        "source_vocabulary": bundle.tokenizer.vocabulary("source"),
        "target_vocabulary": bundle.tokenizer.vocabulary("target"),
        "rivals": rival_ids(tuple(bundle.tokenizer.vocabulary("target"))),
        "tensors": tensors,
        "has_halves": has_halves,
        "weights": base64.b64encode((halves[:, 1] if has_halves else halves).tobytes()).decode(),
    }


@cache
def carry_duel(*, has_others: bool = True) -> dict[str, Any]:
    """Pack what the page's duel needs: the other packaged models, and the gender of nouns."""
    names = ("demo-recurrent", "demo-untrained") if has_others else ()
    others = [carry_model(open_bundle(resolve_model(name))) for name in names]
    return {"others": others, "genders": NOUN_GENDERS}


def carry_trace(trace: TraceData, *, source: str = "", command: str = "") -> dict[str, Any]:
    """Pack a trace as the page shows it.

    Args:
        trace: the trace.
        source: the line that was looked at.
        command: the model's name as the command line takes it, if known.

    Raises:
        InputError: it holds more than a page may hold.
    """
    size = sum(array.nbytes for array in trace.arrays.values())
    if size > MOST_BYTES:
        raise InputError(
            f"A page must hold at most {MOST_BYTES / 2**20:.0f} MiB of numbers for a browser to "
            f"open it, but this trace has {size / 2**20:.0f}. Ask for fewer layers, heads or "
            "stages, or save it as .npz."
        )
    decoding = trace.decoding
    return {
        "format": 1,
        "source": source,
        "command": command,
        "is_found": not any(decoding.get(name) for name in ("given", "changes", "sample")),
        "source_ids": list(trace.source_ids),
        "source_tokens": list(trace.source_tokens),
        "target_tokens": list(trace.target_tokens),
        "predicted_tokens": list(trace.predicted_tokens),
        "predicted_ids": list(trace.predicted_ids),
        "log_probabilities": list(trace.log_probabilities),
        "heads": list(trace.heads),
        "text": str(decoding.get("text") or _sentence(trace.predicted_tokens)),
        "model": dict(trace.model),
        "about": describe_model_of(trace),
        "arrays": {name: _pack(array) for name, array in trace.arrays.items()},
    }


def _pack(array: np.ndarray) -> dict[str, Any]:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {
        "shape": list(array.shape),
        "bytes": array.dtype.itemsize,
        "data": base64.b64encode(little.tobytes()).decode(),
    }


MOST_CELLS = 2500
"""The most decoder rows times source tokens: measures of longer sentences take minutes."""

LEFT_OUT = ("integrated-gradients",)
"""An integral of 128 steps for each row takes too long for a page."""


def carry_measures(bundle: Bundle, trace: TraceData, text: str) -> dict[str, Any] | None:
    """Measure a trace's sentence as the page shows it: decoder rows by source words.

    Returns:
        The words, and by name the layer and the rows of each measure. None if the sentence is
        too long or something was changed while the trace was made.
    """
    size = len(trace.source_ids) * len(trace.predicted_ids)
    if size > MOST_CELLS or trace.decoding.get("changes") or trace.problems:
        return None
    pair = make_pair(bundle, text, trace.predicted_ids)
    # The text may be another one than the trace was made of.
    if tuple(pair.source_ids) != tuple(trace.source_ids):
        return None
    maps: dict[str, Any] = {}
    words: list[str] = []
    for name, one in MEASURES.items():
        # A recurrent model has no layers of a Transformer, and perhaps no attention.
        is_possible = not bundle.config.model.is_recurrent or name == "occlusion"
        if name in LEFT_OUT or not is_possible:
            continue
        is_whole = "decoder.whole" in one.kinds
        found = measure(pair, name) if is_whole else measure(pair, name, "decoder.*.cross")
        # Six digits are more than a page shows, and half the bytes.
        rows = [[round(float(value), 6) for value in row] for row in on_words(pair, found)]
        maps[name] = {"layer": None if is_whole else found.layer, "rows": rows}
        if name == "occlusion":
            words = list(found.column_tokens[: found.num_source_columns])
    return {"words": words, "maps": maps}
