"""SentencePiece tokenizers: exact round trips, equal bytes, clear errors."""

from __future__ import annotations

import hashlib
import random
import subprocess
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from source_text import source_text

from pellucid.config import TokenizerConfig, TokenizerRecipe
from pellucid.errors import BundleError, ConfigurationError, DataError
from pellucid.text.tokenizers.kinds import learn_tokenizer, load_tokenizer
from pellucid.text.tokenizers.subwords import SentencePieceTokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]

ENGLISH = "the black cat eats a red apple in kitchen while dog sleeps near old door"
FRENCH = "le chat noir mange une pomme rouge dans la cuisine près du vieux étang\u00a0!"
PAD, UNK, BOS, EOS = 0, 1, 2, 3


def sentences(text: str, count: int = 300) -> list[str]:
    """Made-up sentences, always the same."""
    dice, words = random.Random(7), text.split(" ")
    return [" ".join(dice.choices(words, k=dice.randint(3, 11))) + "." for _ in range(count)]


def make(**settings: object) -> Tokenizer:
    recipe = TokenizerRecipe.model_validate({"vocabulary_size": 330, **settings})
    return learn_tokenizer(recipe, lambda: sentences(ENGLISH), lambda: sentences(FRENCH))


@cache
def bpe() -> Tokenizer:
    return make()


@pytest.mark.sample(28)
@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
@pytest.mark.parametrize("sharing", ["joint", "separate"])
@pytest.mark.parametrize(
    "text",
    [
        "the black cat eats.",
        "",
        " ",
        "   ",
        " leading, trailing ",
        "two  spaces,   three",
        "tab\there",
        "Vraiment\u00a0? 10\u202f000\u00a0!",
        "a\u2028b\u2029c\x85d\x0ce\rf",
        "\x00 \x01\x1b",
        "\u2581",
        "a\u2581 \u2581\u2581b\u2581",
        "\ufdd0 \u2581 \ufdd1",
        "\u2585 \ufffd \ufeff",
        "<s> </s> <pad><unk>",
        "<s>",
        "<0x41>",
        "\U0001f469\u200d\U0001f4bb \U0001f355",
        "שלום عليكم",
        "日本語 ᚠᛇᚻ",
        "line\nbreak",
    ],
)
def test_sentencepiece_any_text_comes_back(model_type: str, sharing: str, text: str) -> None:
    size = 330 if model_type == "bpe" else 300 if sharing == "joint" else 285
    tokenizer = cached(model_type, sharing, size)
    for ids, decoded in (
        (tokenizer.encode_source(text), source_text(tokenizer, tokenizer.encode_source(text))),
        (tokenizer.encode_target(text), tokenizer.decode_target(tokenizer.encode_target(text))),
    ):
        assert decoded == text
        assert ids[-1] == EOS
        assert not {PAD, UNK, BOS, EOS} & set(ids[:-1])


@cache
def cached(model_type: str, sharing: str, size: int) -> Tokenizer:
    return make(model_type=model_type, sharing=sharing, vocabulary_size=size)


def test_sentencepiece_100_000_characters_come_back() -> None:
    for text in ("x" * 100_000, "日" * 33_000, "chat " * 20_000, "\u2581" * 20_000):
        assert source_text(bpe(), bpe().encode_source(text)) == text


def test_sentencepiece_all_noncharacters_used_does_not_crash() -> None:
    text = "".join(map(chr, range(0xFDD0, 0xFDF0))) + "\u2581"
    assert source_text(bpe(), bpe().encode_source(text)) == text.replace("\u2581", " ")


def test_sentencepiece_lone_surrogate_does_not_crash() -> None:
    assert source_text(bpe(), bpe().encode_source("a\udc80")) == "a\ufffd"


def test_sentencepiece_many_equals_one_by_one() -> None:
    texts = ["the cat", "", "a\u2581b", "<s>", "  x  "]
    assert bpe().encode_sources(texts) == [bpe().encode_source(text) for text in texts]
    assert bpe().encode_targets(texts[:2]) == [bpe().encode_target(text) for text in texts[:2]]
    assert bpe().encode_sources([]) == []


def test_sentencepiece_decode_ignores_padding_start_and_end() -> None:
    ids = bpe().encode_target("le chat")
    assert bpe().decode_target([BOS, *ids, PAD, PAD]) == "le chat"
    assert bpe().decode_target([EOS]) == ""


def test_sentencepiece_decode_broken_bytes_gives_replacement_characters() -> None:
    tokens = bpe().vocabulary("target")
    ids = [tokens.index("<0xE2>"), tokens.index("<0x96>")]
    assert set(bpe().decode_target(ids)) == {"\ufffd"}


def test_sentencepiece_tokens_name_special_ids() -> None:
    assert bpe().target_tokens([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]
    tokens = bpe().source_tokens(bpe().encode_source("the cat"))
    assert "".join(tokens) == "\u2581the\u2581cat</s>"


def test_sentencepiece_vocabulary_has_the_size_asked_for() -> None:
    assert bpe().source_vocabulary_size == bpe().target_vocabulary_size == 330
    assert len(bpe().vocabulary("source")) == 330
    separate = make(sharing="separate", vocabulary_size=310)
    assert (separate.source_vocabulary_size, separate.target_vocabulary_size) == (310, 310)
    assert separate.vocabulary("source") != separate.vocabulary("target")


def test_sentencepiece_without_byte_fallback_unknown_letters_are_unk() -> None:
    tokenizer = make(byte_fallback=False, vocabulary_size=80)
    ids = tokenizer.encode_source("cat \u65e5 \u2581")
    assert UNK in ids
    assert source_text(tokenizer, ids).startswith("cat <unk>")


@pytest.mark.parametrize("sharing", ["joint", "separate"])
def test_sentencepiece_loaded_equals_learned(sharing: str) -> None:
    learned = make(sharing=sharing)
    names = ["tokenizer.model"] if sharing == "joint" else ["source.model", "target.model"]
    assert list(learned.files()) == names
    loaded = load_tokenizer(learned.config, {**learned.files(), "other": b""}, "bundle")
    assert isinstance(loaded, SentencePieceTokenizer)
    assert type(loaded.config) is TokenizerConfig
    assert loaded.files() == learned.files()
    assert loaded.encode_target("le chat noir") == learned.encode_target("le chat noir")


PROGRAM = """
import hashlib, random
from pellucid.config import TokenizerRecipe
from pellucid.text.tokenizers.kinds import learn_tokenizer
dice = random.Random(7)
words = "the black cat eats a red apple in old kitchen".split()
lines = [" ".join(dice.choices(words, k=9)) for _ in range(1500)]
for model_type in ("bpe", "unigram"):
    recipe = TokenizerRecipe(
        model_type=model_type, vocabulary_size=280, max_training_lines=1000
    )
    model = learn_tokenizer(recipe, lambda: lines, lambda: lines).files()["tokenizer.model"]
    print(hashlib.sha256(model).hexdigest())
"""


def test_sentencepiece_two_processes_learn_equal_bytes(run_python: Run) -> None:
    first, second = (run_python("-c", PROGRAM, env={"PYTHONHASHSEED": seed}) for seed in ("1", "2"))
    assert first.stderr == ""
    assert len(set(first.stdout.split())) == 2
    assert first.stdout == second.stdout


def test_sentencepiece_learned_twice_gives_equal_bytes() -> None:
    digests = {
        hashlib.sha256(
            make(model_type="unigram", vocabulary_size=300).files()["tokenizer.model"]
        ).hexdigest()
        for _ in range(2)
    }
    assert len(digests) == 1


def test_sentencepiece_learning_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    make(model_type="unigram", vocabulary_size=300)
    with pytest.raises(ConfigurationError):
        make(vocabulary_size=50_000)
    with pytest.raises(BundleError):
        load_tokenizer(bpe().config, {"tokenizer.model": b"garbage"}, "bundle")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("line", ["\0 quiz", "quiz \u2585", "quiz " * 5000, "quiz\u2581quiz"])
def test_sentencepiece_odd_training_line_is_not_dropped(line: str) -> None:
    # Without our cleaning the trainer skips lines with NUL or U+2585 and those over 4192 bytes.
    tokenizer = learn_tokenizer(
        TokenizerRecipe(vocabulary_size=270), lambda: [line] * 30, lambda: []
    )
    assert any("quiz" in token for token in tokenizer.vocabulary("source"))


def test_sentencepiece_stand_ins_are_never_learned() -> None:
    lines = ["\ufdd0\ufdd1 quiz"] * 50
    tokenizer = learn_tokenizer(TokenizerRecipe(vocabulary_size=268), lambda: lines, lambda: lines)
    assert source_text(tokenizer, tokenizer.encode_source("\u2581\ufdd0")) == "\u2581\ufdd0"


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_sentencepiece_too_large_vocabulary_says_a_possible_size(model_type: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"at most \d+ for so little text.*50000"
    ) as caught:
        make(model_type=model_type, vocabulary_size=50_000)
    possible = int(str(caught.value).split("at most ")[1].split()[0])
    assert make(model_type=model_type, vocabulary_size=possible).source_vocabulary_size == possible


def test_sentencepiece_too_small_vocabulary_says_a_possible_size() -> None:
    with pytest.raises(
        ConfigurationError, match=r"at least \d+ for the characters.*is 40"
    ) as caught:
        make(vocabulary_size=40)
    possible = int(str(caught.value).split("at least ")[1].split()[0])
    assert make(vocabulary_size=possible).source_vocabulary_size == possible


@pytest.mark.parametrize("lines", [[], [""], ["", "", "\0"]])
def test_sentencepiece_no_text_is_a_data_error(lines: list[str]) -> None:
    with pytest.raises(DataError, match="every line is empty"):
        learn_tokenizer(TokenizerRecipe(), lambda: lines, lambda: lines)


@pytest.mark.parametrize("error", [DataError("line 3 is broken"), KeyboardInterrupt()])
@pytest.mark.parametrize("num_good_readings", [0, 1])
def test_sentencepiece_error_while_reading_comes_through(
    error: BaseException, num_good_readings: int
) -> None:
    readings: list[None] = []

    def lines() -> Iterator[str]:
        readings.append(None)
        yield "one line"
        if len(readings) > num_good_readings:
            raise error

    with pytest.raises(type(error)) as caught:
        learn_tokenizer(TokenizerRecipe(), lines, lambda: [])
    assert caught.value is error


def test_sentencepiece_sample_takes_lines_from_everywhere() -> None:
    lines = [*["quiz"] * 5000, *["jazz"] * 5000]
    recipe = TokenizerRecipe(vocabulary_size=275, max_training_lines=1000)
    tokenizer = learn_tokenizer(recipe, lambda: lines, lambda: [])
    assert {"\u2581quiz", "\u2581jazz"} <= set(tokenizer.vocabulary("source"))


@pytest.mark.parametrize("cut", [0, 1, 100, 2000])
def test_sentencepiece_cut_model_is_a_bundle_error(cut: int) -> None:
    model = bpe().files()["tokenizer.model"][:cut]
    with pytest.raises(BundleError, match=r"SentencePiece model.*bundle/tokenizer\.model"):
        load_tokenizer(bpe().config, {"tokenizer.model": model}, "bundle")


def test_sentencepiece_flipped_bytes_load_or_give_a_bundle_error() -> None:
    model = bpe().files()["tokenizer.model"]
    dice = random.Random(3)
    num_loaded = 0
    for _ in range(300):
        damaged = bytearray(model)
        damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        try:
            loaded = load_tokenizer(bpe().config, {"tokenizer.model": bytes(damaged)}, "bundle")
        except BundleError:
            continue
        source_text(loaded, loaded.encode_source("the cat \u65e5 \u2581"))
        num_loaded += 1
    assert 0 < num_loaded < 300


def test_sentencepiece_missing_file_is_a_bundle_error() -> None:
    with pytest.raises(BundleError, match=r"must hold tokenizer\.model.*bundle"):
        load_tokenizer(bpe().config, {"source.model": b""}, "bundle")


def test_sentencepiece_ids_that_disagree_are_a_bundle_error() -> None:
    config = TokenizerConfig(pad_id=3, eos_id=0)
    with pytest.raises(BundleError, match=r"\(3, 1, 2, 0\).*\(0, 1, 2, 3\)"):
        load_tokenizer(config, bpe().files(), "bundle")


def test_sentencepiece_start_id_beyond_the_vocabulary_is_a_bundle_error() -> None:
    config = TokenizerConfig(target_start_id=331)
    with pytest.raises(BundleError, match="one of the 330 target ids, but is 331"):
        load_tokenizer(config, bpe().files(), "bundle")
