"""A model's vocabulary grows for new text: old ids, old segmentations and old outputs stay."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from small_imported import make_tokenizer
from small_runs import SOURCE_TEXT, TARGET_TEXT, make_recipe, write_text
from source_text import source_text

from pellucid.bundle import Bundle, load_bundle
from pellucid.config import Recipe, TokenizerRecipe, validate
from pellucid.errors import ConfigurationError
from pellucid.model import Transformer, initialize
from pellucid.text.learned import merge_statistics, read_rare_tokens
from pellucid.text.tokenizers.kinds import learn_tokenizer, load_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.training.learner import make_bundle_config
from pellucid.training.loop import train
from pellucid.training.start.from_model import SHARE, describe_extension, extend_bundle, with_start
from pellucid.translate.translator import Translator

OLD = [f"{SOURCE_TEXT} {number}." for number in range(7)] + ["big red dogs run in the park"]
OLD_TARGETS = [f"{TARGET_TEXT} {number}." for number in range(7)] + ["grand rouge chien court"]
NEW = ["μια γάτα runs on μια στέγη"] * 3 + ["ένα σκυλί, a őrült dog", "γάτα και σκυλί γάτα"] * 2
NEW_TARGETS = ["un ёж court sur le toit"] * 3 + ["ёж et ёлка", "chien ёлка fou"] * 2

KINDS = {
    "bpe": {"vocabulary_size": 300},
    "unigram": {"model_type": "unigram", "vocabulary_size": 48, "byte_fallback": False},
    "words": {"kind": "words"},
    "separate words": {"kind": "words", "sharing": "separate"},
}


def learn(kind: str) -> Tokenizer:
    recipe = TokenizerRecipe.model_validate(KINDS[kind])
    return learn_tokenizer(recipe, lambda: OLD, lambda: OLD_TARGETS)


def extend(tokenizer: Tokenizer, count: int = 40) -> Tokenizer:
    return tokenizer.extended(count, lambda: NEW, lambda: NEW_TARGETS)


def make_bundle(tokenizer: Tokenizer, tying: str = "all") -> Bundle:
    recipe = make_recipe(
        tokenizer={"sharing": tokenizer.config.sharing}, model={"tied_embeddings": tying}
    )
    config = make_bundle_config(recipe, tokenizer)
    model = Transformer(config.model)
    initialize(model, 3)
    with torch.no_grad():  # so that outputs differ from text to text
        for parameter in model.parameters():
            parameter.mul_(1.7)
    return Bundle(config, model.eval(), tokenizer, {"files": {}}, Path("nowhere"))


@pytest.mark.parametrize("kind", KINDS)
def test_new_tokens_come_after_the_old_ones_and_old_text_is_cut_as_before(kind: str) -> None:
    before = learn(kind)
    after = extend(before)
    for side in ("source", "target"):
        old, new = before.vocabulary(side), after.vocabulary(side)
        assert new[: len(old)] == old
        assert len(old) < len(new) <= len(old) + 40
    assert after.encode_sources(OLD) == before.encode_sources(OLD)
    assert after.encode_targets(OLD_TARGETS) == before.encode_targets(OLD_TARGETS)


@pytest.mark.parametrize("kind", KINDS)
def test_new_text_has_nothing_unknown_and_fewer_tokens(kind: str) -> None:
    before = learn(kind)
    after = extend(before)
    for text in NEW:
        ids = after.encode_source(text)
        assert after.config.unk_id not in ids
        assert not any(token.startswith("<0x") for token in after.source_tokens(ids))
        assert source_text(after, ids) == text
        # A run of unknown letters is one <unk>; bytes are one token each.
        assert kind != "bpe" or len(ids) < len(before.encode_source(text))


@pytest.mark.parametrize("kind", KINDS)
def test_an_extended_tokenizer_is_the_same_after_it_was_saved_and_loaded(kind: str) -> None:
    after = extend(learn(kind))
    again = load_tokenizer(after.config, after.files(), "test")
    assert again.vocabulary("target") == after.vocabulary("target")
    assert again.encode_sources(NEW) == after.encode_sources(NEW)


def test_frequent_neighbors_become_one_piece_but_digits_and_signs_stay_apart() -> None:
    tokens = extend(learn("bpe")).vocabulary("source")
    assert "▁γάτα" in tokens
    assert not any("," in token and len(token) > 1 for token in tokens if "ί" in token)


def test_no_more_tokens_are_added_than_were_asked_for_the_most_frequent_first() -> None:
    before = learn("words")
    few = extend(before, 2)
    assert few.vocabulary("source")[-2:] == ["γάτα", "μια"]
    assert few.source_vocabulary_size == before.source_vocabulary_size + 2


def test_text_without_anything_new_adds_nothing_and_says_so() -> None:
    before = learn("bpe")
    after = before.extended(50, lambda: OLD, lambda: OLD_TARGETS)
    assert after.vocabulary("source") == before.vocabulary("source")
    assert "No tokens were added" in describe_extension(before, after)
    bundle = make_bundle(before)
    assert extend_bundle(bundle, after) is bundle


def test_line_breaks_spaces_and_signs_of_the_cutter_are_no_new_tokens() -> None:
    before = learn("bpe")
    odd = ["a\u00a0b\u2003c", "▁▁ \ufdd0 \x07\u200b", "\u2585 d"]
    after = before.extended(50, lambda: odd, lambda: odd)
    assert after.vocabulary("source") == before.vocabulary("source")


def test_an_imported_tokenizer_gets_pieces_on_both_sides() -> None:
    before = make_tokenizer(("fra", "ita"))
    after = before.extended(30, lambda: [">>fra<< γάτα γάτα"] * 2, lambda: ["ёлка ёлка"] * 2)
    old = before.vocabulary("source")
    assert after.vocabulary("source")[: len(old)] == old
    assert after.language_codes == before.language_codes
    source = after.encode_source(">>ita<< γάτα")
    assert after.config.unk_id not in source
    assert after.source_tokens(source)[0] == ">>ita<<"
    assert after.config.unk_id not in after.encode_target("ёлка")
    assert after.decode_target(after.encode_target("ёлка")) == "ёлка"
    known = "".join(token for token in old if token.isascii() and token.isalpha())[:30]
    assert after.encode_source(known) == before.encode_source(known)
    again = load_tokenizer(after.config, after.files(), "test")
    assert again.encode_source(">>ita<< γάτα") == source


@pytest.mark.sample(4)
@pytest.mark.parametrize("tying", ["all", "decoder", "none"])
@pytest.mark.parametrize("kind", ["bpe", "unigram", "words"])
def test_an_extended_model_translates_old_text_as_before(kind: str, tying: str) -> None:
    before = make_bundle(learn(kind), tying)
    after = extend_bundle(before, extend(before.tokenizer))
    old = Translator(before.model, before.tokenizer)
    new = Translator(after.model, after.tokenizer)
    found = [[one.best.ids for one in translator.translate(OLD)] for translator in (old, new)]
    assert found[0] == found[1]
    scores = [translator.score(OLD, OLD_TARGETS) for translator in (old, new)]
    for was, now in zip(*scores, strict=True):
        for one, other in zip(
            was.token_log_probabilities, now.token_log_probabilities, strict=True
        ):
            # The guarantee of the module: no token loses more than the share of new ones.
            assert math.log1p(-SHARE) - 1e-5 <= other - one <= 1e-5


def test_a_new_row_is_the_mean_of_the_rows_that_spelled_it() -> None:
    before = make_bundle(learn("bpe"))
    tokenizer = extend(before.tokenizer)
    after = extend_bundle(before, tokenizer)
    place = tokenizer.vocabulary("source").index("γ")
    spelled = [
        before.tokenizer.vocabulary("source").index(f"<0x{byte:02X}>") for byte in "γ".encode()
    ]
    was = before.model.state_dict()["embedding.weight"]
    now = after.model.state_dict()["embedding.weight"]
    assert torch.equal(now[: len(was)], was)
    assert torch.allclose(now[place], was[spelled].mean(0))


def test_a_sentence_names_what_was_added() -> None:
    before = learn("separate words")
    sentence = describe_extension(before, extend(before))
    assert "to the source side (γάτα, μια" in sentence
    assert "to the target side (ёж" in sentence


def test_new_tokens_count_as_rare_until_they_were_learned() -> None:
    def side(rare: list[int]) -> dict[str, Any]:
        from pellucid.text.learned import TextStatistics

        counts = TextStatistics(11, 11)
        ids = [id_ for id_ in range(11) if id_ not in rare] * 13
        counts.add("a", "b", ids, ids)
        return counts.to_manifest()

    merged = merge_statistics(side([3]), side([3, 5, 9]), {"source": 7, "target": 7})
    assert read_rare_tokens(merged["source"]) == {3, 9}


def test_new_tokens_need_a_model_to_start_from() -> None:
    with pytest.raises(ConfigurationError, match=r"start\.new_tokens needs a model"):
        make_recipe(start={"new_tokens": 5})


def test_training_extends_a_model_and_resumes(tmp_path: Path, capsys: Any) -> None:
    write_text(tmp_path)
    first = make_recipe(training={"max_steps": 2, "validate_every": 2})
    train(first, tmp_path / "base", recipe_folder=tmp_path, progress=False)
    new = tmp_path / "new"
    new.mkdir()
    numbers = random.Random(5)
    for name, count in (("train", 30), ("validation", 5)):
        for suffix, lines in (("en", NEW), ("fr", NEW_TARGETS)):
            picked = [lines[numbers.randrange(len(lines))] for _ in range(count)]
            (new / f"{name}.{suffix}").write_text("\n".join(picked) + "\n")

    def run(name: str, steps: int, **start: Any) -> str:
        values = make_recipe().model_dump(exclude_unset=True)
        del values["tokenizer"], values["model"]
        values["training"] |= {"max_steps": steps, "validate_every": 2}
        values = with_start(values | {"start": start}, str(tmp_path / "base"), tmp_path / name)
        recipe = validate(Recipe, values, "test")
        train(recipe, tmp_path / name, recipe_folder=new, progress=False)
        return str(capsys.readouterr().err)

    said = run("plain", 2)
    assert "Outside the vocabulary" in said
    assert "start.new_tokens=1000" in said
    assert "of the target tokens are unknown or single bytes" in said  # at validation
    assert "Outside the vocabulary" in (tmp_path / "plain" / "report.html").read_text()

    said = run("more", 2, new_tokens=40)
    assert "Added tokens" in said
    assert "unknown or byte tokens 0.00 % and 0.00 %" in said.replace("\n           ", " ")
    assert "Outside the vocabulary" not in said
    assert "Continuing after step 2" in run("more", 4, new_tokens=40)
    bundle = load_bundle(tmp_path / "more" / "bundle")
    assert "γ" in bundle.tokenizer.vocabulary("source")
    assert bundle.model.output_bias is not None
    counts = bundle.manifest["data"]["text"]["source"]
    assert counts["unknown_tokens"] == 0 < counts["tokens"]
