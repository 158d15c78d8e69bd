"""Rules over the next token against plain loops; forbidden texts against the text itself."""

from __future__ import annotations

import math
import random
import unicodedata
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pellucid.config import DecodingConfig, TokenizerRecipe
from pellucid.decode.constraints.forbidden import Spelling
from pellucid.decode.constraints.request import Request
from pellucid.decode.constraints.rules import make_rules
from pellucid.decode.constraints.token_history import Rule, TokenHistory
from pellucid.errors import InputError
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer

A, T, V, EOS, PAD = 7, 11, 5, 3, 0


def make(
    requests: list[Request], *, never: tuple[int, ...] = (), size: int = V, **options: object
) -> list[Rule]:
    config = DecodingConfig.model_validate(options)
    return make_rules(requests, config, eos_id=EOS, vocabulary_size=size, never=never, device="cpu")


def request(**fields: Any) -> Request:
    return Request(**{"source_ids": (4, EOS), "max_length": T, **fields})


def apply(rules: list[Rule], values_AV: Tensor, histories: list[list[int]], *which: int) -> Tensor:
    """Apply the rules to a copy of the values; the histories are padded with rubbish."""
    longest = max(map(len, histories), default=0)
    rubbish = random.Random(longest)
    history = TokenHistory(
        torch.tensor(
            [ids + rubbish.choices([-7, 1, 10**9], k=longest - len(ids)) for ids in histories],
            dtype=torch.long,
        ).view(len(histories), longest),
        torch.tensor([len(ids) for ids in histories]),
        torch.tensor(which or [0] * len(histories)),
    )
    edited_AV = values_AV.clone()
    for rule in rules:
        rule(edited_AV, history)
    return edited_AV


def apply_naively(
    values: list[float],
    ids: list[int],
    asked: Request,
    never: tuple[int, ...],
    options: dict[str, Any],
) -> list[float]:
    """All rules for one row, as their descriptions say it."""
    if len(ids) < len(asked.prefix_ids):
        forced = asked.prefix_ids[len(ids)]
        return [value if id_ == forced else -math.inf for id_, value in enumerate(values)]
    size = options["no_repeat_ngram"] or 0
    result = []
    for id_, value in enumerate(values):
        longer = [*ids, id_]
        grams = [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)] if size else []
        is_forbidden = (
            id_ in never
            or (id_ == EOS and len(longer) < asked.min_length)
            or (len(longer) >= size > 0 and tuple(longer[-size:]) in grams)
            or any(tuple(longer[-len(words) :]) == words for words in asked.forbidden)
        )
        scaled = value * options["repetition_penalty"] if id_ in ids else value
        result.append(-math.inf if is_forbidden else scaled)
    return result


TOKENS = st.integers(0, V - 1)
SEQUENCES = st.lists(TOKENS, min_size=1, max_size=4).map(tuple)
REQUESTS = st.builds(
    request,
    min_length=st.integers(0, 6),
    prefix_ids=st.lists(TOKENS.filter(lambda id_: id_ != EOS), max_size=4).map(tuple),
    forbidden=st.lists(SEQUENCES, max_size=4).map(tuple),
)


@given(
    st.lists(REQUESTS, min_size=1, max_size=3),
    st.lists(st.lists(TOKENS, max_size=T), min_size=1, max_size=A),
    st.sampled_from([(), (PAD,), (PAD, 2)]),
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([1.0, 1.5]),
    st.randoms(use_true_random=False),
)
def test_rules_random_histories_give_what_loops_give(
    requests: list[Request],
    histories: list[list[int]],
    never: tuple[int, ...],
    size: int | None,
    penalty: float,
    dice: random.Random,
) -> None:
    options: dict[str, Any] = {"no_repeat_ngram": size, "repetition_penalty": penalty}
    which = [dice.randrange(len(requests)) for _ in histories]
    values_AV = torch.tensor([[-4 * dice.random() for _ in range(V)] for _ in histories])
    edited_AV = apply(make(requests, never=never, **options), values_AV, histories, *which)
    for row, ids in enumerate(histories):
        values, asked = values_AV[row].tolist(), requests[which[row]]
        expected = apply_naively(values, ids, asked, never, options)
        assert edited_AV[row].tolist() == pytest.approx(expected, rel=1e-6)


def test_rules_nothing_asked_makes_none() -> None:
    assert make([request(min_length=1)]) == []
    assert len(make([request()], never=(PAD,))) == 1


def test_rules_at_the_first_step_work_without_columns() -> None:
    asked = request(min_length=2, forbidden=((1,), (2, 4)))
    rules = make([asked], no_repeat_ngram=2, repetition_penalty=2.0)
    edited_AV = apply(rules, torch.full((A, V), -1.0), [[]] * A)
    assert edited_AV.tolist() == [[-1.0, -math.inf, -1.0, -math.inf, -1.0]] * A


def test_rules_rows_that_count_beyond_the_columns_are_harmless() -> None:
    rules = make(
        [request(min_length=2, forbidden=((1, 2),), prefix_ids=(1,))],
        no_repeat_ngram=2,
        repetition_penalty=2.0,
    )
    length_A = torch.full((A,), 3 * T)
    history = TokenHistory(
        torch.ones(A, T, dtype=torch.long), length_A, torch.zeros(A, dtype=torch.long)
    )
    values_AV = torch.full((A, V), -1.0)
    for rule in rules:
        rule(values_AV, history)
    assert not values_AV.isnan().any()
    assert values_AV.max() <= -1.0


def test_rules_penalty_keeps_minus_infinity_and_zero() -> None:
    rules = make([request()], repetition_penalty=2.0)
    values_AV = torch.tensor([[0.0, -math.inf, -1.0, -1.0, -1.0]])
    edited_AV = apply(rules, values_AV, [[0, 1, 2, 2]])
    assert edited_AV.tolist() == [[0.0, -math.inf, -2.0, -1.0, -1.0]]


@pytest.mark.parametrize("precision", [torch.float32, torch.float64, torch.bfloat16])
def test_rules_any_precision_is_edited_in_place(precision: torch.dtype) -> None:
    asked = request(forbidden=((4,),), prefix_ids=(1,), min_length=3)
    values_AV = torch.full((1, V), -1.0, dtype=precision)
    rules = make([asked], repetition_penalty=2.0, no_repeat_ngram=1)
    edited_AV = apply(rules, values_AV, [[1]])
    assert edited_AV.tolist() == [[-1.0, -math.inf, -1.0, -math.inf, -math.inf]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prefix_ids": (1, EOS)}, "prefix must leave the end open"),
        ({"prefix_ids": (V,)}, f"prefix must be from 0 to {V - 1}, but one is {V}"),
        ({"forbidden": ((1, -1),)}, "forbidden sequence must be from 0 to 4, but one is -1"),
        ({"forbidden": ((1,), ())}, "must hold a token"),
    ],
)
def test_rules_impossible_request_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make([request(), request(**fields)])


ENGLISH = "the black cat eats a red apple in kitchen, while dog (old) sleeps near old door!"
FRENCH = "le chat noir mange une pomme rouge dans l'eau près du vieux château\u00a0! 日本語が 猫"
PHRASES = ("chat", "chat noir", "eau", "a", "!", "près du", "l'eau", "old)", "日本", "(old", "o")


@cache
def tokenizer_of(kind: str) -> Tokenizer:
    dice = random.Random(7)
    lines = [
        " ".join(dice.choices(text.split(" "), k=dice.randint(3, 11)))
        for text in (ENGLISH, FRENCH) * 100
    ]
    if kind == "words":
        recipe = TokenizerRecipe(kind="words")
    else:
        size = 345 if kind == "bpe" else 320
        recipe = TokenizerRecipe.model_validate({"model_type": kind, "vocabulary_size": size})
    return learn_tokenizer(recipe, lambda: lines, lambda: lines)


KINDS = ("bpe", "unigram", "words")


def holds(text: str, phrase: str, *, is_ended: bool = True) -> bool:
    """Tell whether a text holds a phrase as whole words; an open text may still grow."""
    text = text if not is_ended else text + "\n"
    for place in range(len(text) - len(phrase) + 1):
        if text[place : place + len(phrase)] != phrase:
            continue
        before, after = text[:place][-1:], text[place + len(phrase) :][:1]
        if is_open(before + phrase[0]) and (
            is_open(phrase[-1] + after) if after else not is_letter(phrase[-1])
        ):
            return True
    return False


def is_open(pair: str) -> bool:
    """Tell whether no word spans these two characters."""
    return len(pair) < 2 or not all(map(is_letter, pair))


def is_letter(letter: str) -> bool:
    has_no_spaces = unicodedata.name(letter, "").startswith(("CJK", "HIRAGANA", "KATAKANA"))
    return unicodedata.category(letter)[0] in "LNM" and not has_no_spaces


def walk(
    tokenizer: Tokenizer, phrases: tuple[str, ...], seed: int, *, rows: int, never: list[int]
) -> list[tuple[list[int], Tensor]]:
    """Write at random what the rules allow, mostly tokens of the phrases.

    Returns:
        Every history on the way, with what was allowed after it.
    """
    dice = torch.Generator().manual_seed(seed)
    spelling, size = Spelling(tokenizer), tokenizer.target_vocabulary_size
    names = [name.strip("\u2581￭") for name in tokenizer.vocabulary("target")]
    wanted = [any(name in phrase for phrase in phrases) for name in names]
    bytes_ = [f"<0x{byte:02X}>" for phrase in phrases for byte in phrase.encode()]
    wanted_V = torch.tensor(wanted) | torch.tensor([name in bytes_ for name in names])
    rules = make(
        [request(max_length=T, forbidden_texts=tuple(map(spelling.forbid, phrases)))],
        never=(*never, PAD, 1, 2),
        size=size,
    )
    histories: list[list[int]] = [[] for _ in range(rows)]
    steps = []
    while histories:
        edited_AV = apply(rules, torch.zeros(len(histories), size), histories)
        steps += [(list(ids), row) for ids, row in zip(histories, edited_AV == 0, strict=True)]
        weight_AV = edited_AV.exp() * torch.where(wanted_V, 30.0, 1.0)
        chosen = torch.multinomial(weight_AV, 1, generator=dice)[:, 0].tolist()
        histories = [[*ids, id_] for ids, id_ in zip(histories, chosen, strict=True)]
        ended = [ids for ids in histories if ids[-1] == EOS or len(ids) == T]
        steps += [(ids, torch.zeros(0, dtype=torch.bool)) for ids in ended]
        histories = [ids for ids in histories if ids not in ended]
    return steps


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=settings.default.max_examples // 4, deadline=None)
@given(st.lists(st.sampled_from(PHRASES), min_size=1, max_size=3), st.integers(0, 2**32))
def test_forbidden_text_never_stands_in_what_is_written(
    kind: str, phrases: list[str], seed: int
) -> None:
    tokenizer = tokenizer_of(kind)
    for ids, allowed in walk(tokenizer, tuple(phrases), seed, rows=41, never=[]):
        text = tokenizer.decode_target(ids)
        is_ended = len(allowed) == 0
        assert not any(holds(text, phrase, is_ended=is_ended) for phrase in phrases), text


@pytest.mark.sample(12)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("phrases", [*((phrase,) for phrase in PHRASES), PHRASES])
def test_forbidden_text_nothing_else_is_forbidden(kind: str, phrases: tuple[str, ...]) -> None:
    tokenizer = tokenizer_of(kind)
    names = tokenizer.vocabulary("target")
    loose = [id_ for id_, name in enumerate(names) if name.startswith(("<0x8", "<0x9"))]
    loose += [id_ for id_, name in enumerate(names) if "<0xA0>" <= name <= "<0xFF>"]
    never = {*loose, PAD, 1, 2}
    for ids, allowed in walk(tokenizer, phrases, 5, rows=2, never=loose):
        is_last = len(ids) + 1 == T
        for id_ in (id_ for id_ in range(len(allowed)) if id_ not in never):
            text = tokenizer.decode_target([*ids, id_])
            is_ended = is_last or id_ == EOS
            is_bad = any(holds(text, phrase, is_ended=is_ended) for phrase in phrases)
            assert bool(allowed[id_]) != is_bad, (ids, names[id_])


def allowed_after(tokenizer: Tokenizer, phrase: str, names: list[str], token: str) -> bool:
    """Tell whether a token may follow others if a phrase is forbidden."""
    vocabulary = tokenizer.vocabulary("target")
    asked = request(max_length=99, forbidden_texts=(Spelling(tokenizer).forbid(phrase),))
    rules = make([asked], size=len(vocabulary))
    ids = [vocabulary.index(name) for name in names]
    edited_AV = apply(rules, torch.zeros(1, len(vocabulary)), [ids])
    return edited_AV[0, vocabulary.index(token)].item() == 0


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("phrase", "names", "token", "is_allowed"),
    [
        ("cat", ["\u2581", "c", "a"], "t", True),  # could still be "cats"
        ("cat", ["\u2581", "c", "a", "t"], "s", True),
        ("cat", ["\u2581", "c", "a", "t"], "</s>", False),
        ("cat", ["\u2581", "c", "a", "t"], "\u2581", False),
        ("cat", ["\u2581", "c", "a", "t"], "!", False),
        ("cat", ["\u2581", "<0x63>", "a", "<0x74>"], "\u2581", False),
        ("cat", ["s", "c", "a", "t"], "\u2581", True),  # "scat"
        ("cat", ["!", "c", "a", "t"], "\u2581", False),
        ("cat", ["c", "a", "t"], "\u2581", False),  # at the beginning
        ("cat", ["\u2581", "C", "a", "t"], "\u2581", True),
        ("cat", ["<0xC3>", "<0x89>", "c", "a", "t"], "\u2581", False),  # half a letter, half not
        ("cat", ["\u2581", "c", "a", "t"], "<0xC3>", False),
        ("!", ["\u2581", "c"], "!", False),
        ("é", ["\u2581", "<0xC3>"], "<0xA9>", True),
        ("é", ["\u2581", "<0xC3>", "<0xA9>"], "</s>", False),
        ("é", ["\u2581", "<0xC3>", "<0xA9>"], "s", True),
    ],
)
def test_forbidden_text_edges_of_words_decide(
    phrase: str, names: list[str], token: str, is_allowed: bool
) -> None:
    lines = ["a c C t s é !", "cat Cat"]
    recipe = TokenizerRecipe.model_validate({"vocabulary_size": 273})
    tokenizer = learn_tokenizer(recipe, lambda: lines, lambda: lines)
    assert allowed_after(tokenizer, phrase, names, token) == is_allowed


def test_forbidden_text_requests_have_their_own() -> None:
    tokenizer = tokenizer_of("words")
    spelling, size = Spelling(tokenizer), tokenizer.target_vocabulary_size
    texts = (("cat",), (), ("dog", "!"), ("cat",))
    rules = make(
        [request(forbidden_texts=tuple(map(spelling.forbid, phrases))) for phrases in texts],
        size=size,
    )
    cat, dog, mark = (tokenizer.encode_target(word)[0] for word in ("cat", "dog", "door!"))
    joined = tokenizer.encode_target("door!")[1]
    histories = [[cat], [cat], [cat], [dog], [dog]]
    edited_AV = apply(rules, torch.zeros(5, size), histories, 0, 1, 2, 3, 2)
    assert (edited_AV[:, EOS] == 0).tolist() == [False, True, True, True, False]
    assert (edited_AV[:, joined] == 0).tolist() == [False, True, False, True, False]
    assert (edited_AV[:, mark] == 0).tolist() == [False, True, True, True, False]


def test_forbidden_text_prefix_beats_it() -> None:
    tokenizer = tokenizer_of("bpe")
    ids = tuple(tokenizer.encode_target("the cat")[:-1])
    asked = request(prefix_ids=ids, forbidden_texts=(Spelling(tokenizer).forbid("cat"),))
    size = tokenizer.target_vocabulary_size
    rules = make([asked], size=size)
    for length in range(len(ids)):
        edited_AV = apply(rules, torch.zeros(1, size), [list(ids[:length])])
        assert edited_AV[0].isfinite().nonzero().flatten().tolist() == [ids[length]]
    edited_AV = apply(rules, torch.zeros(1, size), [list(ids)])
    assert edited_AV[0, EOS] == -math.inf


@pytest.mark.parametrize("kind", KINDS)
def test_spelling_tokens_joined_are_the_text(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    spelling = Spelling(tokenizer)
    for line in (ENGLISH, FRENCH, "Œuvre d'art"):
        ids = tokenizer.encode_target(line)
        spelled = spelling.automata.text_of(ids).decode()
        assert spelled == tokenizer.decode_target(ids)


@pytest.mark.parametrize("phrase", ["", "  "])
def test_forbidden_text_without_text_is_refused(phrase: str) -> None:
    with pytest.raises(InputError, match="forbidden phrase must hold text"):
        Spelling(tokenizer_of("words")).forbid(phrase)
