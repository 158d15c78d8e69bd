"""Generation settings of a folder of Hugging Face's: what a bundle takes over, and what it cannot.

A setting that has the same meaning here becomes a default of the bundle. Every other setting that
can change a translation is named, so that it is clear why translations differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid.bundle import read_json_object
from pellucid.config import DecodingConfig, ModelConfig, validate

# Settings that are carried over, or dropped by their own rules.
_JUDGED = (
    *("num_beams", "length_penalty", "max_length", "max_new_tokens", "min_length"),
    *("min_new_tokens", "no_repeat_ngram_size", "repetition_penalty", "num_beam_groups"),
    *("diversity_penalty", "bad_words_ids", "suppress_tokens", "renormalize_logits", "do_sample"),
)

# Settings that are dropped, with the values that change nothing.
_DROPPED: dict[str, tuple[Any, ...]] = {
    "begin_suppress_tokens": ([],),
    "constraints": ([],),
    "early_stopping": (False,),
    "encoder_no_repeat_ngram_size": (0,),
    "encoder_repetition_penalty": (1,),
    "exponential_decay_length_penalty": (),
    "force_words_ids": ([],),
    "forced_bos_token_id": (),
    "forced_eos_token_id": (),
    "guidance_scale": (1,),
    "max_time": (),
    "num_return_sequences": (1,),
    "penalty_alpha": (0,),
    "sequence_bias": ({}, []),
    "stop_strings": ([],),
}
_ADVICE = {
    "early_stopping": "see decoding.stopping",
    "forced_eos_token_id": "only a translation of the maximum length differs, by its end",
    "num_return_sequences": "see --n-best",
}

# Settings of sampling, and ours with the same meaning.
_OURS = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "epsilon_cutoff": "epsilon",
}
# Further ones, with the values that change nothing.
_OTHER_SAMPLING: dict[str, tuple[Any, ...]] = {
    "eta_cutoff": (0,),
    "min_p": (0,),
    "top_h": (),
    "typical_p": (1,),
}
_SAMPLING = (*_OURS, *_OTHER_SAMPLING)
_DEFAULT_TOP_K = 50
"""Theirs draws among the 50 likeliest tokens unless told otherwise."""

# Settings of speed, memory and output, by the beginning of their names.
_IGNORED = (
    *("_", "assistant_", "cache_", "compile_", "continuous_", "disable_compile", "is_assistant"),
    *("low_memory", "max_cache_len", "max_matching_ngram", "num_assistant_", "output_"),
    *("prefill_chunk", "prompt_lookup", "remove_invalid_values", "return_dict", "speculation_"),
    *("target_lookbehind", "transformers_version", "use_cache", "use_mtp", "bos_token_id"),
)
_IDS = ("pad_token_id", "eos_token_id", "decoder_start_token_id")
_LONGEST = 60


@dataclass(frozen=True)
class Generation:
    """The settings of a translation.

    Attributes:
        decoding: those that a bundle has a form for.
        dropped: the others, each with its value, and with advice if there is any.
        silenced: tokens without a share of the softmax there, although they have a logit.
    """

    decoding: DecodingConfig
    dropped: tuple[str, ...]
    silenced: tuple[int, ...]


def read_generation(
    folder: Path, config: Mapping[str, Any], model: ModelConfig, unwritten: Collection[int]
) -> Generation:
    """Read ``generation_config.json``, or the settings that older folders keep in ``config.json``.

    Args:
        folder: the folder.
        config: the values of its ``config.json``.
        model: the sizes of the model.
        unwritten: tokens that no translation of pellucid holds.

    Raises:
        BundleError: the file is damaged.
        ConfigurationError: a setting has an impossible value.
    """
    path = folder / "generation_config.json"
    if path.is_file():
        values = read_json_object(path)
    else:
        # It also describes the model, so that only known settings count.
        path = folder / "config.json"
        known = {*_JUDGED, *_DROPPED, *_SAMPLING}
        values = {name: value for name, value in config.items() if name in known}
    # Their files write null for a setting that is off.
    values = {name: value for name, value in values.items() if value is not None}
    decoding = {
        **_read_beam(values),
        **_read_lengths(values, model),
        **_read_repetition(values),
        **_read_sampling(values),
    }
    banned, words = _split_bad_words(values.get("bad_words_ids"), unwritten)
    forbidden, other_words = _read_forbidden(words, model, values.get("eos_token_id"))
    suppressed, other_tokens = _read_forbidden(
        _each_alone(values.get("suppress_tokens")), model, values.get("eos_token_id")
    )
    if forbidden or suppressed:
        decoding["forbidden_tokens"] = tuple(dict.fromkeys((*forbidden, *suppressed)))
    is_normalized_again = values.get("renormalize_logits") is True
    dropped = list(_list_dropped(values, config))
    if other_words:
        dropped.append(_word("bad_words_ids", other_words))
    if other_tokens:
        dropped.append(_word("suppress_tokens", [word[0] for word in other_tokens]))
    if is_normalized_again and decoding.keys() & {"forbidden_tokens", "no_repeat_ngram"}:
        dropped.append(_word("renormalize_logits", True, "scores are those of the whole softmax"))
    return Generation(
        validate(DecodingConfig, decoding, str(path)),
        tuple(dropped),
        # Only if scores are normalized again do forbidden tokens lose their share.
        banned if is_normalized_again else (),
    )


def _read_beam(values: Mapping[str, Any]) -> dict[str, Any]:
    beam = values.get("num_beams", 1)
    if beam == 1:  # a greedy search does not use a length penalty
        return {}
    alpha = values.get("length_penalty", 1.0)
    found = {"beam": beam, "length_penalty": "average", "alpha": alpha}
    if _is_negative(alpha):  # the nearest that exists here; it is named as dropped too
        found |= {"length_penalty": "none", "alpha": 0.0}
    if values.get("num_beam_groups", 1) != 1:
        found["diverse_groups"] = values["num_beam_groups"]
        found["diversity"] = values.get("diversity_penalty", 0.0)
    return found


def _read_lengths(values: Mapping[str, Any], model: ModelConfig) -> dict[str, Any]:
    """Read the limits; ours count ``</s>``, and theirs for all tokens count the start as well."""
    found: dict[str, Any] = {}
    new = values.get("max_new_tokens")
    longest = values.get("max_length")
    if new is None and isinstance(longest, int):
        new = longest - 1
    # The model's own limit holds anyway, and need not become a default.
    if isinstance(new, int) and 0 < new < model.max_target_length - 1:
        found["max_length"] = new
    shortest = values.get("min_length", 0)
    if "min_new_tokens" in values:  # theirs does not count ``</s>``
        shortest = values["min_new_tokens"]
        shortest = shortest + 1 if isinstance(shortest, int) and shortest else shortest
    if shortest:
        found["min_length"] = shortest
    return found


def _read_repetition(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if values.get("no_repeat_ngram_size"):
        found["no_repeat_ngram"] = values["no_repeat_ngram_size"]
    penalty = values.get("repetition_penalty", 1)
    if penalty != 1 and _can_penalize(values):
        found["repetition_penalty"] = penalty
    return found


def _read_sampling(values: Mapping[str, Any]) -> dict[str, Any]:
    """Read the settings of sampling; a beam that is sampled does not exist here."""
    if not values.get("do_sample") or values.get("num_beams", 1) != 1:
        return {}
    given = {"top_k": _DEFAULT_TOP_K, **values}
    found = {ours: given[name] for name, ours in _OURS.items() if name in given}
    # Theirs writes 0 for all tokens.
    if found.get("top_k") == 0:
        del found["top_k"]
    return {"sample": True, **found}


def _can_penalize(values: Mapping[str, Any]) -> bool:
    """Tell whether a repetition penalty means the same here.

    A beam multiplies log-probabilities there too. A greedy search and sampling divide logits.
    """
    penalty = values.get("repetition_penalty")
    is_beam = values.get("num_beams", 1) != 1 and not values.get("do_sample")
    return is_beam and not (isinstance(penalty, int | float) and penalty < 1)


def _split_bad_words(words: Any, unwritten: Collection[int]) -> tuple[tuple[int, ...], list[Any]]:
    """Split forbidden sequences into the tokens that no translation here holds, and the others."""
    words = words if isinstance(words, list) else [] if words is None else [words]
    # Their converter forbids `<pad>` in this way, which no translation here holds anyway.
    banned = [
        word[0]
        for word in words
        if isinstance(word, list) and len(word) == 1 and word[0] in unwritten
    ]
    return tuple(banned), [word for word in words if word not in [[one] for one in banned]]


def _each_alone(tokens: Any) -> list[Any]:
    """Write a list of tokens as sequences of one token each."""
    tokens = tokens if isinstance(tokens, list) else [] if tokens is None else [tokens]
    return [[token] for token in tokens]


def _read_forbidden(
    words: list[Any], model: ModelConfig, eos_id: Any
) -> tuple[list[tuple[int, ...]], list[Any]]:
    """Split forbidden sequences into those of the vocabulary, and others.

    Nothing forbids only the end: a translation must have one. Theirs leaves that out too.
    """
    forbidden: list[tuple[int, ...]] = []
    others: list[Any] = []
    for word in words:
        is_usable = (
            isinstance(word, list)
            and bool(word)
            # To `isinstance`, True would be the id 1.
            and all(type(id_) is int and 0 <= id_ < model.target_vocabulary_size for id_ in word)
            and word != [eos_id]
        )
        if is_usable:
            forbidden.append(tuple(word))
        elif word != [eos_id]:
            others.append(word)
    return forbidden, others


def _list_dropped(values: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    """Word the settings that can change a translation and have no form here."""
    if values.get("do_sample"):
        yield from _word_sampling(values)
    alpha = values.get("length_penalty")
    if _is_negative(alpha) and values.get("num_beams", 1) != 1:
        yield _word("length_penalty", alpha, "the length has no influence instead")
    if values.get("repetition_penalty", 1) != 1 and not _can_penalize(values):
        advice = "decoding.repetition_penalty is another one: it works on log-probabilities"
        yield _word("repetition_penalty", values["repetition_penalty"], advice)
    for name, value in values.items():
        if name in _IDS:
            if value != config.get(name):
                yield _word(name, value, f"config.json has {config.get(name)!r}")
        elif name in _DROPPED:
            if value not in _DROPPED[name]:
                yield _word(name, value, _ADVICE.get(name, ""))
        elif name not in (*_JUDGED, *_SAMPLING) and not name.startswith(_IGNORED):
            yield _word(name, value)


def _word_sampling(values: Mapping[str, Any]) -> Iterator[str]:
    """Word settings of sampling without an equivalent here."""
    beam = values.get("num_beams", 1)
    if beam != 1:
        yield _word("do_sample", True, f"a beam of {beam} is searched instead; see --sample")
        return
    for name, neutral in _OTHER_SAMPLING.items():
        if name in values and values[name] not in neutral:
            yield _word(name, values[name])


def _is_negative(value: Any) -> bool:
    return isinstance(value, int | float) and value < 0


def _word(name: str, value: Any, advice: str = "") -> str:
    return f"{name} {_short(value)}" + (f" ({advice})" if advice else "")


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
