"""Names that other libraries have for our settings, and hints about names that do not exist."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from types import MappingProxyType, ModuleType
from typing import NoReturn

from pellucid.errors import InputError, suggestion

# The first name that is known where the other was written counts.
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    # Hugging Face Transformers, CTranslate2, fairseq, OpenNMT, JoeyNMT: search
    "num_beams": ("beam",),
    "beam_size": ("beam",),
    "beam_width": ("beam",),
    "num_return_sequences": ("n_best",),
    "num_hypotheses": ("n_best",),
    "nbest": ("n_best",),
    "early_stopping": ("stopping",),
    "lenpen": ("alpha",),
    "num_beam_groups": ("diverse_groups",),
    "diversity_penalty": ("diversity",),
    "return_alternatives": ("alternatives",),
    "no_repeat_ngram_size": ("no_repeat_ngram",),
    "compute_type": ("precision",),
    "torch_dtype": ("precision",),
    "dtype": ("precision",),
    "fp16": ("precision",),
    "bf16": ("precision",),
    # sampling
    "do_sample": ("sample",),
    "sampling": ("sample",),
    "sampling_topk": ("top_k",),
    "sampling_topp": ("top_p",),
    "sampling_temperature": ("temperature",),
    "epsilon_cutoff": ("epsilon",),
    # length
    "max_new_tokens": ("max_length",),
    "max_decoding_length": ("max_length",),
    "max_len": ("max_length",),
    "min_new_tokens": ("min_length",),
    "min_decoding_length": ("min_length",),
    "min_len": ("min_length",),
    # lines
    "split_long": ("split",),
    "split_sentences": ("split",),
    # words and languages
    "target_prefix": ("prefix",),
    "forbidden": ("forbid",),
    "bad_words": ("forbid",),
    "bad_words_ids": ("forbid",),
    "suppress_sequences": ("forbid",),
    "required": ("require",),
    "force_words_ids": ("require",),
    "target": ("translation", "to"),
    "target_text": ("translation",),
    "target_lang": ("to", "target_language"),
    "tgt_lang": ("to", "target_language"),
    "source_lang": ("source_language",),
    "src_lang": ("source_language",),
    "return_alignments": ("align",),
    "return_attention": ("align",),
    # changes of a model
    "cut": ("changes",),
    "ablate": ("changes",),
    "change": ("changes",),
    "probe": ("changes",),
    "hooks": ("changes",),
    "fwd_hooks": ("changes",),
    # the machine
    "num_threads": ("threads",),
    "intra_threads": ("threads",),
    "num_workers": ("threads", "processes"),
    # training
    "batch_size": ("batch_tokens", "max_tokens_per_batch"),
    "max_batch_size": ("batch_tokens", "max_tokens_per_batch"),
    "max_tokens": ("batch_tokens", "max_tokens_per_batch"),
    "per_device_train_batch_size": ("max_tokens_per_batch",),
    "lr": ("learning_rate",),
    "min_lr": ("min_learning_rate",),
    "lr_scheduler": ("schedule",),
    "lr_scheduler_type": ("schedule",),
    "optim": ("optimizer",),
    "warmup": ("warmup_steps",),
    "warmup_updates": ("warmup_steps",),
    "num_warmup_steps": ("warmup_steps",),
    "epochs": ("max_steps",),
    "num_epochs": ("max_steps",),
    "max_epoch": ("max_steps",),
    "num_train_epochs": ("max_steps",),
    "max_update": ("max_steps",),
    "num_steps": ("max_steps",),
    "gradient_accumulation_steps": ("accumulate",),
    "update_freq": ("accumulate",),
    "max_grad_norm": ("max_gradient_norm",),
    "clip_norm": ("max_gradient_norm",),
    "clipping": ("max_gradient_norm",),
    "label_smoothing_factor": ("label_smoothing",),
    "early_stopping_patience": ("patience",),
    "eval_steps": ("validate_every",),
    "logging_steps": ("log_every",),
    "attention_heads": ("num_heads",),
    "vocab_size": ("vocabulary_size",),
    "quantization": ("precision",),
    "q": ("query",),
    "k": ("key",),
    "v": ("value",),
    # scores
    "lowercased_tokenized": ("moses",),
    "tokenized": ("tokenize",),
    # where results go
    "out": ("output",),
    "output_dir": ("output",),
    "output_path": ("output",),
    "save_dir": ("output",),
}
"""What other libraries call a setting, and our name for it."""

# What to write instead of an attribute that another library's object would have.
_LOOK = "translator.look(text)['decoder.1.cross.0']"
_ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "pellucid": {
        **dict.fromkeys(
            ("pipeline", "from_pretrained", "load_model", "AutoModel", "Model"),
            "pellucid.load(model)",
        ),
        "make_app": "pellucid.serve.make_app(model)",
        "score": "pellucid.load(model).score(sources, targets)",
        "translate": "pellucid.load(model).translate(text)",
        "serve": "pellucid.serve.make_app(model)",
        "look": "pellucid.load(model).look(text)",
        "why": "pellucid.load(model).why(text, word)",
        "align": "pellucid.load(model).align(sources, targets)",
        "patch": "pellucid.inside.patch",
        "study": "pellucid.inside.study",
        "history": "pellucid.inside.follow_heads",
        "check": "pellucid check TEXT in a shell",
        "bulk": "pellucid bulk run MODEL FILE in a shell",
        "demo": "pellucid demo in a shell",
        **dict.fromkeys(("fit", "Trainer"), "pellucid.train(texts)"),
    },
    "Translator": {
        **dict.fromkeys(
            ("pipe", "translate_batch", "translate_iterable", "generate", "predict", "encode"),
            "translate(texts)",
        ),
        "from_pretrained": "pellucid.load(model)",
        "score_batch": "score(sources, targets)",
        **dict.fromkeys(("run_with_cache", "attentions", "attention", "get_attention"), _LOOK),
        "run_with_hooks": "look(text, changes=probe)",
        "ablate": "translate(text, changes='cut decoder.1.cross.0')",
        "patch": "pair(first).patch(pair(second))",
        "what_if": "pair(text).what_if('cut decoder.1.cross.0')",
        "change": "translate(text, changes='cut decoder.1.cross.0')",
        "tokenize": "tokenizer.encode_source(text)",
        "close": "with pellucid.load(model) as translator",
    },
    "Trace": dict.fromkeys(
        (
            "attentions",
            "cross_attentions",
            "decoder_attentions",
            "encoder_attentions",
            "cache",
            "attention",
            "head",
        ),
        "trace['decoder.1.cross.0']",
    ),
    "Translation": {
        **dict.fromkeys(("translation", "translation_text", "output"), "text"),
        "translations": "hypotheses",
    },
    "PairLinks": dict.fromkeys(("links", "alignments"), "alignment"),
}


def no_attribute(owner: str, name: str) -> str:
    """Word that an object has no such attribute, with what to write if another library has it."""
    instead = _ATTRIBUTES.get(owner, {}).get(name)
    what = f"module {owner!r}" if owner.islower() else f"{owner!r} object"
    return f"{what} has no attribute {name!r}" + (f". Write {instead}." if instead else "")


def explain_call(package: str) -> None:
    """Let a package that has a command's name say what to write when it is called.

    Args:
        package: its full name, as ``pellucid.translate``.
    """
    owner, _, name = package.rpartition(".")
    instead = _ATTRIBUTES[owner][name]

    class Package(ModuleType):
        def __call__(self, *_given: object, **_named: object) -> NoReturn:
            raise InputError(f"{package} is a module, not a function. Write {instead}.")

    sys.modules[package].__class__ = Package


_NOWHERE: Mapping[str, str] = MappingProxyType({})


def hint_of(name: str, known: Collection[str], elsewhere: Mapping[str, str] = _NOWHERE) -> str:
    """Word a hint about a name that does not exist.

    Args:
        name: the unknown name.
        known: the names that exist where it was written.
        elsewhere: a sentence about each name that exists in another place.

    Returns:
        The name that another library's user means, the place that the name belongs to, or the
        most similar name.
    """
    ours = OTHER_NAMES.get(name, ())
    if meant := [one for one in ours if one in known]:
        return f"Did you mean {meant[0]!r}?"
    if there := [one for one in (name, *ours) if one in elsewhere]:
        return elsewhere[there[0]]
    return suggestion(name, known)
