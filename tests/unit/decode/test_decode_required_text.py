"""Required phrases by their text: random cuts against a regular expression, glued phrases found."""

from __future__ import annotations

import random
import re
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.config import TokenizerRecipe
from pellucid.decode.constraints.automata import BEGINS_IN_WORD, SILENT
from pellucid.decode.constraints.build_request import required_ids
from pellucid.decode.constraints.forbidden import Spelling
from pellucid.decode.constraints.request import Request
from pellucid.decode.constraints.required import Progress, RequiredPhrases
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer

EOS = 3
LINES = [
    "le fichier « %s » est vide , les fichiers %s%d aussi",
    "ouvrir <b>le fichier</b> de l'ami ( fichier ) des amis",
    "la clef %s de {nom} vaut %d % , {nom} est l'ami",
    "a-xa-x a-xa a-x ami-ami 猫 と 黒猫",
    "un ami (fichier) «%s» est ici",
]
PHRASES = (
    *("fichier", "%s", "%", "<b>", "</b>", "le fichier", "ami", "l'ami"),
    *("{nom}", "a-xa", "猫", "%s »"),
)
KINDS = ("bpe", "unigram", "words")


@cache
def spelling_of(kind: str) -> tuple[Tokenizer, Spelling]:
    options = {"kind": "words"} if kind == "words" else {"model_type": kind}
    size = {"bpe": 350, "unigram": 305, "words": 100}[kind]
    recipe = TokenizerRecipe.model_validate({**options, "vocabulary_size": size})
    tokenizer = learn_tokenizer(recipe, lambda: LINES * 5, lambda: LINES * 5)
    return tokenizer, Spelling(tokenizer)


def make(kind: str, *phrases: str) -> RequiredPhrases:
    tokenizer, spelling = spelling_of(kind)
    ids = tuple(required_ids(tokenizer, phrase) for phrase in phrases)
    request = Request((EOS,), 99, required=ids, spelling=spelling)
    return RequiredPhrases(
        [request], vocabulary_size=tokenizer.target_vocabulary_size, device="cpu"
    )


def write(phrases: RequiredPhrases, ids: list[int]) -> Progress:
    progress = phrases.start(torch.tensor([0]))
    for token in ids:
        progress = phrases.advance(progress, torch.tensor([token]))
    return progress


def is_met(kind: str, phrases: tuple[str, ...], text: str) -> bool:
    made = make(kind, *phrases)
    return bool(made.is_met(write(made, spelling_of(kind)[0].encode_target(text)[:-1])))


def count(phrase: str, text: str) -> int:
    """Count a phrase as whole words, from the left and without overlap."""
    # In Chinese and Japanese a word may begin at every letter.
    letter = r"[^\W猫黒と]"
    before = f"(?<!{letter})" if re.match(letter, phrase[0]) else ""
    after = f"(?!{letter})" if re.match(letter, phrase[-1]) else ""
    return len(re.findall(before + re.escape(phrase) + after, text))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=settings.default.max_examples // 4, deadline=None)
@given(st.lists(st.sampled_from(PHRASES), min_size=1, max_size=3), st.integers(0, 2**32))
def test_progress_in_any_cut_is_what_a_regular_expression_counts(
    kind: str, phrases: list[str], seed: int
) -> None:
    tokenizer, _ = spelling_of(kind)
    made, dice = make(kind, *phrases), random.Random(seed)
    names = [name.strip("\u2581￭") for name in tokenizer.vocabulary("target")]
    usual = [id_ for id_, name in enumerate(names) if id_ > EOS and not name.startswith("<0x")]
    likely = [id_ for id_ in usual if any(names[id_] in phrase for phrase in phrases)]
    ids: list[int] = []
    progress = made.start(torch.tensor([0]))
    total = int(made.total(torch.tensor([0])))
    for _ in range(dice.randint(1, 25)):
        asked = [token for token in made.wanted(progress)[0].tolist() if token >= 0]
        # Mostly what continues a phrase, so that much of it appears in different cuts.
        choice = dice.choice([usual, likely, likely, asked or likely])
        ids.append(dice.choice(choice or usual))
        progress = made.advance(progress, torch.tensor([ids[-1]]))
        text = tokenizer.decode_target(ids)
        need = {one: sum(count(one, other) for other in phrases) for one in phrases}
        expected = all(count(one, text) >= number for one, number in need.items())
        assert bool(made.is_met(progress)) == expected, text
        assert (int(made.banks(progress)) == total) == expected, text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("phrases", "text", "expected"),
    [
        (("%s",), "la clef «%s» est vide", True),
        (("%s", "%s"), "le %s%s aussi", True),
        (("%s", "%s"), "le %s aussi", False),
        (("<b>", "</b>"), "ouvrir <b>le fichier</b>", True),
        (("<b>", "</b>"), "ouvrir <b>le fichier", False),
        (("fichier",), "ouvrir (fichier)", True),
        (("fichier",), "les fichiers", False),  # a longer word
        (("ami",), "l'ami de", True),
        (("猫",), "黒猫", True),  # no spaces in this script
        (("%", "%s"), "le %s", False),  # the sign must also appear outside
        (("%", "%s"), "le %s %", True),
    ],
)
def test_glued_phrases_are_found_where_no_word_continues(
    kind: str, phrases: tuple[str, ...], text: str, expected: bool
) -> None:
    text = " ".join(text.split())
    if kind == "words" and "猫" in text:
        pytest.skip("a run of ideographs is one word of this vocabulary")
    assert is_met(kind, phrases, text) is expected


@pytest.mark.parametrize("kind", KINDS)
def test_following_what_is_wanted_always_completes_the_phrases(kind: str) -> None:
    tokenizer, _ = spelling_of(kind)
    ami = tokenizer.encode_target("ami")[:-1]
    for phrases in (("le fichier", "</b>"), ("%s", "%s"), ("{nom}", "l'ami", "ami")):
        for start in ([], ami, [*ami, *ami]):
            made = make(kind, *phrases)
            progress = write(made, start)
            for _ in range(40):
                asked = made.wanted(progress)[0].tolist()
                if all(token < 0 for token in asked):
                    break
                token = next(token for token in asked if token >= 0)
                progress = made.advance(progress, torch.tensor([token]))
            assert made.is_met(progress).all()


def test_a_needed_word_must_end_unless_nothing_else_can_follow() -> None:
    tokenizer, spelling = spelling_of("bpe")
    made = make("bpe", "fichier")
    progress = write(made, tokenizer.encode_target("le fichier")[:-1])
    values_1V = torch.zeros(1, tokenizer.target_vocabulary_size)
    kind_V = torch.tensor(spelling.automata.kinds)
    ends_word_V = (kind_V < BEGINS_IN_WORD) | (kind_V == SILENT)
    made.end_words(values_1V, progress)
    assert (values_1V[0] == -torch.inf).equal(~ends_word_V)
    stuck_1V = torch.zeros_like(values_1V).masked_fill(ends_word_V, -torch.inf)
    kept_1V = stuck_1V.clone()
    made.end_words(stuck_1V, progress)
    assert stuck_1V.equal(kept_1V)
