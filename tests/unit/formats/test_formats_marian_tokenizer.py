"""Marian's tokenizer: SentencePiece cuts the text, a list gives the ids."""

from __future__ import annotations

import io
import random
from functools import cache
from typing import Any

import pytest
import sentencepiece
from small_imported import make_tokenizer as make_imported
from source_text import source_text

from pellucid.config import TokenizerConfig, TokenizerRecipe
from pellucid.config.config_json import MASKS
from pellucid.errors import BundleError
from pellucid.formats.imported import ImportedVocabulary, make_tokenizer
from pellucid.text.tokenizers.kinds import learn_tokenizer, load_tokenizer
from pellucid.text.tokenizers.marian import MarianTokenizer

WORDS = "the black cat eats a red apple in kitchen while dog sleeps near old door été"
TOKENS = ("</s>", "the", "<unk>", "\u2581the", "\u2581cat", ">>fra<<", "\u2581a", "<s>", "<pad>")
END, UNKNOWN, THE, CAT, FRENCH, A, START, PAD = 0, 2, 3, 4, 5, 6, 7, 8


@cache
def model(prefix: str = "") -> bytes:
    dice = random.Random(7)
    lines = [" ".join(dice.choices(WORDS.split(" "), k=7)) for _ in range(300)]
    found = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(f"{prefix}{line}" for line in lines),
        model_writer=found,
        vocab_size=70,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return found.getvalue()


def make_files(**changes: bytes) -> dict[str, bytes]:
    files = {
        "source.model": model(),
        "target.model": model("the "),
        "vocabulary.txt": "".join(f"{token}\n" for token in TOKENS).encode(),
    }
    return {**files, **{name.replace("_", "."): data for name, data in changes.items()}}


def make_config(**changes: Any) -> TokenizerConfig:
    ids = {"pad_id": PAD, "unk_id": UNKNOWN, "bos_id": None, "eos_id": END}
    return TokenizerConfig.model_validate(
        {"normalization": "none", **ids, "target_start_id": PAD, **changes}
    )


def make(**changes: Any) -> MarianTokenizer:
    found = load_tokenizer(make_config(**changes), make_files(), "bundle")
    assert isinstance(found, MarianTokenizer)
    return found


def test_pieces_get_the_ids_of_the_list_and_others_are_unknown() -> None:
    tokenizer = make()
    assert tokenizer.encode_source("the cat") == [THE, CAT, END]
    assert tokenizer.encode_target("a cat") == [A, CAT, END]
    assert tokenizer.encode_source("") == [END]
    unknown = tokenizer.encode_source("日本")
    assert unknown[-1] == END
    assert set(unknown[:-1]) == {UNKNOWN}
    assert tokenizer.source_vocabulary_size == len(TOKENS)
    assert tokenizer.vocabulary("target") == list(TOKENS)


def test_many_equal_one_by_one() -> None:
    texts = ["the cat", "", ">>fra<< a cat", "日本"]
    tokenizer = make()
    assert tokenizer.encode_sources(texts) == [tokenizer.encode_source(text) for text in texts]
    assert tokenizer.encode_targets(texts) == [tokenizer.encode_target(text) for text in texts]
    assert tokenizer.encode_sources([]) == []


def test_language_at_the_start_of_a_source_is_one_id() -> None:
    tokenizer = make()
    assert tokenizer.language_code(">>fra<< the cat") == ">>fra<<"
    assert tokenizer.language_code(">>fra<<") == ">>fra<<"
    assert tokenizer.language_code(">>deu<< the cat") == tokenizer.language_code("") == ""
    assert tokenizer.encode_source(">>fra<< the cat") == [FRENCH, THE, CAT, END]
    assert tokenizer.encode_source(">>fra<<") == [FRENCH, END]
    assert FRENCH not in tokenizer.encode_source("the >>fra<< cat")
    assert FRENCH not in tokenizer.encode_source(">>deu<< the cat")
    assert FRENCH not in tokenizer.encode_target(">>fra<< the cat")


@pytest.mark.parametrize("text", ["</s>", "<pad>", "the </s> cat", "<s>"])
def test_text_that_spells_a_special_token_stays_text(text: str) -> None:
    tokenizer = make(bos_id=START)
    ids = tokenizer.encode_source(text)
    assert not {PAD, START, END} & set(ids[:-1])


def test_decoding_gives_text_and_shows_what_is_unknown() -> None:
    tokenizer = make()
    assert tokenizer.decode_target([PAD, THE, CAT, END]) == "the cat"
    assert tokenizer.decode_target([THE, UNKNOWN, CAT]) == "the<unk> cat"
    assert source_text(tokenizer, [FRENCH, THE]) == ">>fra<< the"
    assert tokenizer.decode_target([]) == ""


def test_files_load_again_to_the_same() -> None:
    tokenizer = make()
    assert tokenizer.files() == make_files()
    assert list(tokenizer.files()) == ["source.model", "target.model", "vocabulary.txt"]


def test_separate_lists_give_each_side_its_ids() -> None:
    lists = {"source_txt": "</s>\n<unk>\n<pad>\n\u2581cat\n", "target_txt": "</s>\n<unk>\n<pad>\n"}
    files = make_files(**{name: text.encode() for name, text in lists.items()})
    del files["vocabulary.txt"]
    config = make_config(sharing="separate", pad_id=2, unk_id=1, target_start_id=2)
    tokenizer = load_tokenizer(config, files, "bundle")
    assert tokenizer.encode_source("cat") == [3, 0]
    assert tokenizer.encode_target("cat") == [1, 0]
    assert tokenizer.files() == files


@pytest.mark.parametrize(
    ("files", "config", "message"),
    [
        ({"source_model": b"damaged"}, {}, r"source\.model must be a SentencePiece model"),
        ({"target_model": b""}, {}, r"target\.model must be a SentencePiece model"),
        ({"vocabulary_txt": b"a\n\nb\n"}, {}, r"one is empty .*vocabulary\.txt:2"),
        ({"vocabulary_txt": b"a\na\n"}, {}, r"occurs again .*vocabulary\.txt:2"),
        ({"vocabulary_txt": b"a\n\xff\n"}, {}, r"UTF-8.*vocabulary\.txt:2"),
        ({}, {"pad_id": 99}, r"tokenizer\.pad_id must be one of the 9 ids"),
        ({}, {"target_start_id": 9}, r"tokenizer\.target_start_id must be one of the 9 ids"),
        ({}, {"bos_id": 9}, r"tokenizer\.bos_id must be one of the 9 ids"),
    ],
)
def test_damaged_files_are_refused(
    files: dict[str, bytes], config: dict[str, Any], message: str
) -> None:
    with pytest.raises(BundleError, match=message):
        load_tokenizer(make_config(**config), make_files(**files), "bundle")


def test_missing_model_is_named() -> None:
    files = make_files()
    del files["target.model"]
    with pytest.raises(BundleError, match=r"must hold target\.model"):
        load_tokenizer(make_config(), files, "bundle")


def test_a_bundle_of_ours_still_has_its_own_ids() -> None:
    recipe = TokenizerRecipe(vocabulary_size=300)
    learned = learn_tokenizer(recipe, lambda: [WORDS], lambda: [WORDS])
    loaded = load_tokenizer(learned.config, learned.files(), "bundle")
    assert type(loaded) is type(learned)
    assert not isinstance(loaded, MarianTokenizer)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["▁le", "▁cat"], "le cat"),
        (["▁cat", "▁le"], "cat le"),
        (["▁cat", "▁dog", "▁cat"], "cat dog cat"),
        (["▁le", "▁", "▁chat"], "le  chat"),
        (["▁cat", "s", "▁chat"], "cats chat"),
        (["▁le", "<unk>", "▁cat"], "le<unk> cat"),
        (["<unk>", "▁cat", "</s>"], "<unk> cat"),
    ],
)
def test_pieces_of_the_other_side_s_model_are_written_with_spaces(
    pieces: list[str], text: str
) -> None:
    tokenizer = make_imported()
    tokens = tokenizer.vocabulary("target")
    # The target's model has no English words, and cuts them into letters.
    assert len(tokenizer.encode_target("cat")) > 2
    assert tokenizer.decode_target([tokens.index(piece) for piece in pieces]) == text


def test_pieces_of_the_target_s_model_are_written_in_a_source() -> None:
    tokenizer = make_imported()
    tokens = tokenizer.vocabulary("source")
    ids = [tokens.index(piece) for piece in ("▁the", "▁chat", "▁dort")]
    assert source_text(tokenizer, ids) == "the chat dort"


def test_model_with_masks_keeps_them_and_its_tags_through_marians_format() -> None:
    config = TokenizerRecipe(
        vocabulary_size=400, symbols=("<formal>", *MASKS), sharing="joint", byte_fallback=True
    )
    learned = learn_tokenizer(config, lambda: iter([WORDS] * 9), lambda: iter([WORDS] * 9))
    tokens = list(learned.vocabulary("source"))
    proto = learned.files()["tokenizer.model"]
    ids = {"pad_id": config.pad_id, "unk_id": config.unk_id, "eos_id": config.eos_id}
    found = make_tokenizer(
        ImportedVocabulary((proto, proto), (tokens,), **ids, start_id=config.target_start_id), "x"
    )
    assert found.has_masks
    assert set(found.config.symbols) == {"<formal>", *MASKS}
    line = "<formal> the %s cat"
    assert found.masked(line) == "<formal> the ❶ cat"
    assert "<formal>" in found.source_tokens(found.encode_source(found.masked(line)))
    # Other models of Marian have none of this.
    assert make_imported().config.symbols == ()
