"""Logits that a model never had take no share of any softmax: `<pad>` in models of Marian."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from small_marian import change_json, marian, write_theirs

import pellucid
from pellucid.bundle import bundle_json, load_bundle, write_listed
from pellucid.formats.exporting import export_bundle
from pellucid.formats.from_marian import import_marian
from pellucid.formats.to_ctranslate2 import export_ctranslate2
from pellucid.formats.to_marian import export_marian
from pellucid.model.unowned import NEVER
from pellucid.translate.translator import Translator

SOURCE, TARGET = "a dog eats near the door", "le chat noir mange une pomme"
LOWER = 10.0
"""Marian's softmax does not see that all logits of its own tokens are so much lower."""


def write_zero_pad(folder: Path, **changes: Any) -> Any:
    """Write a model whose `<pad>` was appended by a converter: a row and a bias of zero."""
    theirs = write_theirs(folder, **changes)
    pad = theirs.config.pad_token_id
    with torch.no_grad():
        theirs.final_logits_bias -= LOWER
        theirs.final_logits_bias[0, pad] = 0
        for table in (theirs.model.decoder.embed_tokens.weight, theirs.lm_head.weight):
            table[pad] = 0
    theirs.save_pretrained(folder)
    change_json(folder / "generation_config.json", bad_words_ids=[[pad]], renormalize_logits=True)
    return theirs


def convert(folder: Path, out: Path) -> Translator:
    import_marian(folder).save(out)
    return pellucid.load(out)


def their_scores(theirs: Any, ids: tuple[list[int], list[int]], silent: list[int]) -> list[float]:
    """Score a target by their logits, with a softmax that leaves some tokens out."""
    source, target = ids
    inputs = [theirs.config.decoder_start_token_id, *target[:-1]]
    with torch.no_grad():
        logits_TV = theirs(
            input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([inputs])
        ).logits[0]
    logits_TV[:, silent] = -torch.inf
    scores: list[float] = logits_TV.log_softmax(-1)[range(len(target)), target].tolist()
    return scores


def ids_of(translator: Translator) -> tuple[list[int], list[int]]:
    tokenizer = translator.tokenizer
    return tokenizer.encode_source(SOURCE), tokenizer.encode_target(TARGET)


def assert_near(actual: Any, expected: Any) -> None:
    torch.testing.assert_close(
        torch.tensor(list(actual)), torch.tensor(list(expected)), atol=1e-4, rtol=0
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"share_encoder_decoder_embeddings": False},
        {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
    ],
    ids=["shared", "separate", "untied"],
)
def test_padding_without_a_vector_has_no_share_of_the_softmax(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    theirs = write_zero_pad(tmp_path / "theirs", **changes)
    translator = convert(tmp_path / "theirs", tmp_path / "ours")
    pad = theirs.config.pad_token_id
    expected = their_scores(theirs, ids_of(translator), [pad])
    (scored,) = translator.score([SOURCE], [TARGET])
    assert_near(scored.token_log_probabilities, expected)
    # Otherwise nearly the whole softmax would be that of the padding.
    assert their_scores(theirs, ids_of(translator), [])[0] < expected[0] - LOWER / 2
    trace = translator.look(SOURCE, translation=TARGET, everything=True)
    assert_near(trace.log_probabilities, expected)
    assert (trace.arrays["decoder.logits"][:, pad] < NEVER / 2).all()
    assert "<pad>" not in trace.argmax_tokens


def test_search_and_scores_are_those_of_generate(tmp_path: Path) -> None:
    theirs = write_zero_pad(tmp_path / "theirs")
    change_json(tmp_path / "theirs" / "generation_config.json", num_beams=3)
    theirs = marian.MarianMTModel.from_pretrained(tmp_path / "theirs").eval()
    translator = convert(tmp_path / "theirs", tmp_path / "ours")
    source = torch.tensor([translator.tokenizer.encode_source(SOURCE)])
    options = {"return_dict_in_generate": True, "output_scores": True, "max_new_tokens": 9}
    greedy = theirs.generate(source, num_beams=1, **options)
    (ours,) = translator.translate([SOURCE], beam=1, max_length=9)
    assert list(ours.ids) == greedy.sequences[0, 1:].tolist()
    their_logs = theirs.compute_transition_scores(greedy.sequences, greedy.scores)
    assert_near(ours.token_log_probabilities, their_logs[0].tolist())
    (ours,) = translator.translate([SOURCE], max_length=9)
    best = theirs.generate(source, **options)
    assert list(ours.ids) == best.sequences[0, 1:].tolist()


def test_trained_padding_keeps_its_share_unless_their_softmax_leaves_it_out(tmp_path: Path) -> None:
    theirs = write_theirs(tmp_path / "theirs")
    pad = theirs.config.pad_token_id
    theirs.final_logits_bias[0, pad] = 2.0
    theirs.save_pretrained(tmp_path / "theirs")
    path = tmp_path / "theirs" / "generation_config.json"
    change_json(path, bad_words_ids=[[pad]], renormalize_logits=None)
    translator = convert(tmp_path / "theirs", tmp_path / "trained")
    (scored,) = translator.score([SOURCE], [TARGET])
    assert_near(scored.token_log_probabilities, their_scores(theirs, ids_of(translator), []))
    change_json(path, renormalize_logits=True)
    translator = convert(tmp_path / "theirs", tmp_path / "left-out")
    (scored,) = translator.score([SOURCE], [TARGET])
    assert_near(scored.token_log_probabilities, their_scores(theirs, ids_of(translator), [pad]))


def test_id_without_a_token_and_without_a_vector_has_no_share_either(tmp_path: Path) -> None:
    theirs = write_zero_pad(tmp_path / "theirs")
    pad, unused = theirs.config.pad_token_id, 11
    with torch.no_grad():
        theirs.lm_head.weight[unused] = 0
        theirs.final_logits_bias[0, unused] = 0
    theirs.save_pretrained(tmp_path / "theirs")
    path = tmp_path / "theirs" / "vocab.json"
    ids = {token: id_ for token, id_ in json.loads(path.read_text()).items() if id_ != unused}
    path.write_text(json.dumps(ids))
    translator = convert(tmp_path / "theirs", tmp_path / "ours")
    (scored,) = translator.score([SOURCE], [TARGET])
    expected = their_scores(theirs, ids_of(translator), [pad, unused])
    assert_near(scored.token_log_probabilities, expected)


def test_model_without_a_bias_gets_one(tmp_path: Path) -> None:
    theirs = write_zero_pad(tmp_path / "theirs")
    theirs.final_logits_bias[:] = 0
    path = tmp_path / "theirs" / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    del tensors["final_logits_bias"]
    path.write_bytes(safetensors.torch.save(tensors))
    translator = convert(tmp_path / "theirs", tmp_path / "ours")
    (scored,) = translator.score([SOURCE], [TARGET])
    pad = theirs.config.pad_token_id
    expected = their_scores(theirs, ids_of(translator), [pad])
    assert_near(scored.token_log_probabilities, expected)


@pytest.mark.parametrize("has_bias", [True, False])
def test_bundle_of_an_older_version_is_right_too(has_bias: bool, tmp_path: Path) -> None:
    theirs = write_zero_pad(tmp_path / "theirs")
    new = convert(tmp_path / "theirs", tmp_path / "bundle")
    weights = dict(new.bundle.model.state_dict())
    pad = theirs.config.pad_token_id
    if has_bias:
        weights["output.bias"] = weights["output.bias"].clone()
        weights["output.bias"][pad] = 0
    else:
        del weights["output.bias"]
        theirs.final_logits_bias[:] = 0
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    path = tmp_path / "bundle" / "model.safetensors"
    manifest["files"][path.name] = write_listed(path, safetensors.torch.save(weights))
    (tmp_path / "bundle" / "manifest.json").write_text(bundle_json(manifest))
    old = pellucid.load(tmp_path / "bundle")
    (scored,) = old.score([SOURCE], [TARGET])
    assert_near(scored.token_log_probabilities, their_scores(theirs, ids_of(old), [pad]))


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_fewer_bits_leave_it_without_a_share(precision: Any, tmp_path: Path) -> None:
    theirs = write_zero_pad(tmp_path / "theirs")
    translator = convert(tmp_path / "theirs", tmp_path / "ours")
    export_bundle(translator.bundle, tmp_path / precision, precision)
    small = load_bundle(tmp_path / precision)
    assert small.model.output_bias is not None
    assert small.model.output_bias[theirs.config.pad_token_id] == NEVER


def test_exports_keep_it_without_a_share(tmp_path: Path) -> None:
    write_zero_pad(tmp_path / "theirs")
    translator = convert(tmp_path / "theirs", tmp_path / "ours")
    (scored,) = translator.score([SOURCE], [TARGET])
    export_marian(translator.bundle, tmp_path / "again", "float32")
    again = marian.MarianMTModel.from_pretrained(tmp_path / "again").eval()
    assert_near(scored.token_log_probabilities, their_scores(again, ids_of(translator), []))
    ctranslate2 = pytest.importorskip("ctranslate2")
    export_ctranslate2(translator.bundle, tmp_path / "ct2", "float32")
    theirs = ctranslate2.Translator(str(tmp_path / "ct2"), compute_type="float32")
    source, _ = ids_of(translator)
    pieces = translator.tokenizer.source_tokens(source)[:-1]
    (found,) = theirs.score_batch([pieces], [list(scored.tokens[:-1])])
    assert_near(scored.token_log_probabilities, found.log_probs)


def test_carried_rules_give_the_translations_of_generate(tmp_path: Path) -> None:
    write_zero_pad(tmp_path / "theirs")
    path = tmp_path / "theirs" / "generation_config.json"
    change_json(path, num_beams=3, max_length=13, renormalize_logits=None)
    for rule in (
        {"no_repeat_ngram_size": 2, "repetition_penalty": None, "min_length": None},
        {"no_repeat_ngram_size": None, "repetition_penalty": 1.7, "min_length": None},
        {"no_repeat_ngram_size": None, "repetition_penalty": None, "min_length": 9},
    ):
        change_json(path, **rule)
        theirs = marian.MarianMTModel.from_pretrained(tmp_path / "theirs").eval()
        # Their softmax would have the padding, as ours has not.
        theirs.final_logits_bias[0, theirs.config.pad_token_id] = NEVER
        translator = convert(tmp_path / "theirs", tmp_path / "ours")
        for text in (SOURCE, "the cat sleeps", "an apple in old kitchen"):
            source = torch.tensor([translator.tokenizer.encode_source(text)])
            expected = theirs.generate(source)[0, 1:].tolist()
            (ours,) = translator.translate([text])
            assert list(ours.ids) == expected[: len(ours.ids)], (rule, text)
