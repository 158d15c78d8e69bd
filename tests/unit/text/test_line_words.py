"""The words that links count: by script where no spaces are, and given ones found in their text."""

from __future__ import annotations

import pytest

from pellucid.config import TokenizerRecipe
from pellucid.errors import DataError
from pellucid.text.line_words import (
    find_parts_of_words,
    has_spaced_letters,
    is_without_spaces,
    line_words,
    parts_of_words,
)
from pellucid.text.token_words import words_of_tokens
from pellucid.text.tokenizers.kinds import learn_tokenizer

THIN = "\u202f"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我喜欢苹果。", "我 喜 欢 苹 果 。"),
        ("我喜欢 Python 编程。", "我 喜 欢 Python 编 程 。"),
        ("iPhone手机3.5元", "iPhone 手 机 3.5 元"),
        ("「彼女は学生ですか？」", "「 彼 女 は 学 生 ですか ？ 」"),
        ("東京タワー・ライト", "東 京 タワー ・ ライト"),
        ("ผมชื่อเอก", "ผ ม ชื่ อ เอ ก"),
        ("ສະບາຍດີ", "ສະ ບາ ຍ ດີ"),
        ("ខ្ញុំស្រឡាញ់។", "ខ្ញុំ ស្រ ឡា ញ់ ។"),
        ("မြန်မာစာ။", "မြန် မာ စာ ။"),
    ],
)
def test_line_without_spaces_is_cut_by_script(text: str, words: str) -> None:
    assert line_words(text) == words.split()
    assert line_words(text, "script") == words.split()
    assert line_words(text, "spaces") == text.split()
    assert is_without_spaces(text)


@pytest.mark.parametrize(
    "text", ["The cat.", f"vie{THIN}!", "I live in 北京 now.", "我 喜欢 苹果 。", "한국어 문장", ""]
)
def test_line_with_spaces_is_cut_there(text: str) -> None:
    assert not is_without_spaces(text)
    assert line_words(text) == line_words(text, "spaces")


def test_tokens_of_a_line_without_spaces_belong_to_its_characters() -> None:
    lines = ["我喜欢苹果", "我喜欢茶", "他喜欢苹果", "你好"] * 5
    recipe = TokenizerRecipe(kind="sentencepiece", vocabulary_size=280, byte_fallback=True)
    tokenizer = learn_tokenizer(recipe, lambda: iter(lines), lambda: iter(lines))
    line = "我喜欢苹果汁"  # the last one is written in bytes
    ids = tokenizer.encode_target(line)
    words = line_words(line)
    owners = words_of_tokens(tokenizer, "target", line, ids, words)
    assert {number for one in owners for number in one} == set(range(len(line)))
    for token, one in zip(tokenizer.target_tokens(ids), owners, strict=False):
        letters = token.replace("▁", "")
        if letters and not letters.startswith("<0x"):
            assert "".join(words[number] for number in one) == letters


def test_spaces_in_a_script_without_them_are_noticed() -> None:
    assert has_spaced_letters("สวัสดีครับ ผมชื่อเอก")
    assert not has_spaced_letters("我喜欢 Python 编程。")
    assert len(line_words("สวัสดีครับ ผมชื่อเอก")) == 2
    assert len(line_words("สวัสดีครับ ผมชื่อเอก", "script")) > 10


@pytest.mark.parametrize(
    "text", ["我e\u0301喜欢", "ก\u0e33\u200b่ ข", "\u0301我。\ufe0f", "あ゙っー", "𠮷野家"]
)
def test_cutting_by_script_loses_no_letter(text: str) -> None:
    assert "".join(line_words(text, "script")) == "".join(text.split())


@pytest.mark.parametrize(
    ("words", "text", "parts"),
    [
        ("l &apos; homme &quot; dort &quot;", "L’homme « dort »", "L ’ homme « dort »"),
        ("`` well @-@ known ''", "“Well-known”", "“ Well - known ”"),
        ("-LRB- a -- b -RRB-", "(a — b)", "( a — b )"),
        ("caf\u0065\u0301 ﬁn ...", "café fin…", "café fin …"),
        ("a &amp;amp; b", "a &amp; b", "a &amp; b"),
        ("我 喜欢", "我喜\u200b欢", "我 喜\u200b欢"),
        ("10 000 €", f"10{THIN}000 €", "10 000 €"),
    ],
)
def test_given_words_are_found_in_their_text(words: str, text: str, parts: str) -> None:
    assert find_parts_of_words(words.split(), text) == parts.split(" ")


@pytest.mark.parametrize(
    ("words", "text", "said"),
    [
        ("the dog", "the cat", "word 1 is 'dog' and 'cat' is there"),
        ("the cat sat", "the cat", "word 2 is 'sat' and the text ends before it"),
        ("the", "the cat", "continues with 'cat' after the last word"),
        ("", "the", "continues with 'the'"),
        ("a" * 50, "b" * 50, "word 0 is 'aaaaaaaaaaaa…' and 'bbbbbbbbbbbb…'"),
    ],
)
def test_given_words_of_another_text_are_refused(words: str, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        find_parts_of_words(words.split(), text)


def test_words_of_a_line_are_found_in_its_parts() -> None:
    words = ["Hello", "world.", "How", "are", "you?"]
    assert parts_of_words(words, ["Hello  world.", "How are you?"]) == [
        [(0, "Hello"), (1, "world.")],
        [(2, "How"), (3, "are"), (4, "you?")],
    ]
    # A part may lack characters, or have others in their place.
    assert parts_of_words(["a★b", "c…d", "e"], ["ab c", "...d e"]) == [
        [(0, "ab"), (1, "c")],
        [(1, "...d"), (2, "e")],
    ]
    assert parts_of_words([], [""]) == [[]]
