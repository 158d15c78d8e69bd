"""Alignment: tokens to words, maps against an explicit computation, links, choice, direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from of_subwords import SUBWORDS

from pellucid.bundle import Bundle, load_bundle, resolve_model
from pellucid.config import ModelConfig, TokenizerRecipe
from pellucid.corpora import Example, make_split
from pellucid.errors import InputError
from pellucid.evaluation.word_links import GoldLinks
from pellucid.inside.align.alignment_maps import map_pairs
from pellucid.inside.align.attention_links import align_pairs
from pellucid.inside.align.choice import consistencies
from pellucid.inside.align.direction import make_direction
from pellucid.inside.align.link_views import View, all_views
from pellucid.inside.align.linked_units import Aligned, link_words
from pellucid.inside.pair import make_pair
from pellucid.text.link_choices import LinkRule
from pellucid.text.token_words import split_pieces, words_of_tokens
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer

NARROW = "\u202f"


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return load_bundle(resolve_model("demo"))


@pytest.fixture(scope="module")
def of_subwords() -> Bundle:
    return load_bundle(resolve_model(SUBWORDS))


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return make_split("validation", count=60)


def make_tokenizer(*lines: str, **changes: object) -> Tokenizer:
    recipe = TokenizerRecipe.model_validate({"kind": "words", "vocabulary_size": 300, **changes})
    return learn_tokenizer(recipe, lambda: iter(lines), lambda: iter(lines))


def test_split_pieces_cuts_at_every_space_but_those_that_keep_together() -> None:
    assert split_pieces(f" a\tb\u2003c\u3000vie{NARROW}! 10\u00a0000  ") == [
        *("a", "b", "c", f"vie{NARROW}!", "10\u00a0000")
    ]
    assert split_pieces(f" {NARROW} \u00a0 ") == []


def words_of(tokenizer: Tokenizer, line: str) -> list[tuple[str, tuple[int, ...]]]:
    ids = tokenizer.encode_target(line)
    tokens = tokenizer.target_tokens(ids)[:-1]
    return [
        (token, tuple(words))
        for token, words in zip(
            tokens, words_of_tokens(tokenizer, "target", line, ids), strict=True
        )
    ]


def test_words_of_subwords_follow_the_text(of_subwords: Bundle) -> None:
    line = f"Pas de  la vie{NARROW}!"
    found = words_of(of_subwords.tokenizer, line)
    letters = ["", "", "", ""]
    for token, (word,) in found:
        letters[word] += token.replace("▁", "")
    assert letters == ["Pas", "de", "la", f"vie{NARROW}!"]


@pytest.mark.parametrize(
    "line", ["a 😀 b", "😀😀 ▁ é", "\u0007 x", "ça\u2028où", "e\u0301 e\u0301a"]
)
def test_words_of_bytes_and_strange_letters_cover_each_piece_in_order(
    of_subwords: Bundle, line: str
) -> None:
    owners = [words for _, words in words_of(of_subwords.tokenizer, line)]
    assert all(len(words) == 1 for words in owners)
    order = [words[0] for words in owners]
    assert order == sorted(order)
    assert set(order) == set(range(len(split_pieces(line))))


def test_words_of_unknown_letters_do_not_shift_those_behind() -> None:
    lines = ("the old cat sat on the mat", "a cat and a mat", "the cat")
    tokenizer = make_tokenizer(
        *(lines * 5), kind="sentencepiece", vocabulary_size=30, byte_fallback=False
    )
    unknown = [
        words for token, words in words_of(tokenizer, "the Ж ЖЖ cЖt mat") if token == "<unk>"
    ]
    assert unknown == [(1,), (2,), (3,)]
    assert words_of(tokenizer, "the Ж ЖЖ cЖt mat")[-1][1] == (4,)


def test_words_of_whole_words_with_and_without_marks() -> None:
    line = "Not - on your (life)! Xyz"
    tokenizer = make_tokenizer("Not on your life ! - ( )")
    found = [words for _, words in words_of(tokenizer, line)]
    assert found == [(0,), (1,), (2,), (3,), (4,), (4,), (4,), (4,), (5,)]
    tokenizer = make_tokenizer("not on your life", drop_punctuation=True, lowercase=True)
    found = [words for _, words in words_of(tokenizer, line)]
    assert found == [(0,), (2,), (3,), (4,), (5,)]


class Keeper:
    """A probe that keeps every stage of cross-attention."""

    def __init__(self) -> None:
        self.seen: dict[str, torch.Tensor] = {}

    def see(self, site: str, stage: str, tensor: torch.Tensor) -> None:
        self.seen[f"{site}.{stage}"] = tensor[0]


def explicit_maps(
    bundle: Bundle, example: Example
) -> dict[tuple[int, str, int | None], np.ndarray]:
    """Weights and norms of one pair, vector by vector, in float64."""
    probe = Keeper()
    with torch.inference_mode():
        make_pair(bundle, example.source, example.target, float64=True).logits(probe=probe)
    found: dict[tuple[int, str, int | None], np.ndarray] = {}
    for layer in range(bundle.config.model.num_decoder_layers):
        weights = probe.seen[f"decoder.{layer}.cross.weights"].numpy()
        value = probe.seen[f"decoder.{layer}.cross.value"].numpy()
        name = f"decoder.layers.{layer}.cross_attention.output.weight"
        projection = bundle.model.state_dict()[name].double().numpy()
        width = value.shape[2]
        heads = []
        for head in range(len(weights)):
            rows = value[head] @ projection[:, head * width : (head + 1) * width].T
            heads.append(weights[head][:, :, None] * rows[None])
            found[layer, "head", head] = weights[head]
            found[layer, "norms", head] = np.linalg.norm(heads[-1], axis=-1)
        found[layer, "norms", None] = np.linalg.norm(sum(heads), axis=-1)
        found[layer, "layer-mean", None] = sum(weights) / len(weights)
    return found


def test_maps_in_batches_equal_each_pair_computed_vector_by_vector(
    bundle: Bundle, examples: list[Example]
) -> None:
    chosen = [examples[index] for index in (0, 1, 9)]
    tokenizer = bundle.tokenizer
    pairs = [(tokenizer.encode_source(e.source), tokenizer.encode_target(e.target)) for e in chosen]
    views = all_views(bundle.config.model)
    seen = set()
    for maps in map_pairs(bundle.model, pairs, {0, 1}, pad_id=0, start_id=2, has_norms=True):
        seen.add(maps.index)
        expected = explicit_maps(bundle, chosen[maps.index])
        expected[-1, "layer-mean", None] = (
            expected[0, "layer-mean", None] + expected[1, "layer-mean", None]
        ) / 2
        for view in views:
            layer = -1 if view.layer is None else view.layer
            whole = expected[layer, view.map, view.head]
            rows = whole[1:] if view.convention == "reads" else whole[:-1]
            np.testing.assert_allclose(maps.get(view), rows, atol=5e-5, err_msg=str(view))
    assert seen == {0, 1, 2}


def test_views_are_all_there_once_and_can_be_narrowed() -> None:
    model = ModelConfig.model_validate({"num_decoder_layers": 3, "num_heads": 5, "d_model": 20})
    views = all_views(model)
    assert len(set(views)) == len(views) == 2 * (1 + 3 * (5 + 1 + 5 + 1))
    assert all_views(model, maps=["norms"], conventions=["reads"], layer=2, head=4) == [
        View(2, "norms", 4, "reads")
    ]
    assert [view.head for view in all_views(model, maps=["head"], layer=1)[::2]] == [*range(5)]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"layer": 3}, r"layer must be from 0 to 2.* is 3"),
        ({"layer": -1}, r"layer must be from 0 to 2.* is -1"),
        ({"head": 5}, r"head must be from 0 to 4.* is 5"),
        ({"head": 1, "maps": ["layer-mean"]}, r"map layer-mean cannot be combined with head=1"),
    ],
)
def test_views_that_do_not_exist_are_refused(asked: dict[str, object], said: str) -> None:
    model = ModelConfig.model_validate({"num_decoder_layers": 3, "num_heads": 5, "d_model": 20})
    with pytest.raises(InputError, match=said):
        all_views(model, **asked)  # type: ignore[arg-type]


def test_link_words_best_averages_tokens_and_leaves_words_alone() -> None:
    words = [range(1), range(1), range(1, 2)]
    rows = np.array([[0.5, 0.3, 0.2, 0.0], [0.0, 0.4, 0.3, 0.0], [0.6, 0.1, 0.3, 0.0]])
    assert link_words(rows[None], words, 2, "best") == [{(1, 0), (0, 1)}]
    # The third target word has no token, and the fourth source word none either.
    assert link_words(rows[None], words, 3, "best") == [{(1, 0), (0, 1)}]


def test_link_words_both_divides_by_totals_and_asks_each_source_word() -> None:
    words = [range(1), range(1, 2), range(2, 3)]
    rows = np.array([[0.9, 0.1, 0.0], [0.6, 0.4, 0.0], [0.5, 0.2, 0.3]])
    assert link_words(rows[None], words, 3, "best") == [{(0, 0), (0, 1), (0, 2)}]
    # Totals 2.0, 0.7, 0.3: shares 0.45 0.14 0 / 0.3 0.57 0 / 0.25 0.29 1.
    assert link_words(rows[None], words, 3, "both") == [{(0, 0), (1, 1), (2, 2)}]
    # A word's first token is counted again: 0.3 and 0.4 on average, but 0.6 + 0.1 first.
    rows = np.array([[0.6, 0.1], [0.0, 0.7], [0.1, 0.1]])
    tokens = [range(1), range(1), range(1, 2)]
    assert (0, 0) in link_words(rows[None], tokens, 2, "both")[0]
    assert (0, 0) not in link_words(rows[None], tokens, 2, "best")[0]


def test_link_words_of_several_maps_are_those_of_each() -> None:
    maps = np.random.default_rng(3).random((5, 7, 3))
    words = [
        range(0, 1),
        range(0, 2),
        range(2, 3),
        range(2, 3),
        range(3, 4),
        range(5, 6),
        range(5, 6),
    ]
    rules: tuple[LinkRule, ...] = ("best", "both")
    for rule in rules:
        together = link_words(maps, words, 6, rule)
        assert together == [link_words(one[None], words, 6, rule)[0] for one in maps]
        assert all({j for _, j in links} == {0, 1, 2, 3, 5} for links in together)


def test_align_pairs_reaches_the_expected_error_and_keeps_order(
    bundle: Bundle, examples: list[Example]
) -> None:
    view = View(None, "layer-mean", None, "predicts")
    sources, targets = ([getattr(e, side) for e in examples] for side in ("source", "target"))
    aligned = list(align_pairs(bundle.model, bundle.tokenizer, sources, targets, [view]))
    assert [(pair.source, pair.target) for pair in aligned] == [*zip(sources, targets, strict=True)]
    found = sum(len(pair.links[0]) for pair in aligned)
    right = sum(
        len(pair.links[0] & set(e.alignment)) for pair, e in zip(aligned, examples, strict=True)
    )
    assert 1 - 2 * right / (found + sum(len(e.alignment) for e in examples)) < 0.15
    one = next(align_pairs(bundle.model, bundle.tokenizer, sources[9:10], targets[9:10], [view]))
    assert one.links == aligned[9].links
    assert one.end_shares == pytest.approx(aligned[9].end_shares, abs=1e-5)


def test_align_pairs_with_nothing_to_link_or_too_much(bundle: Bundle) -> None:
    views = [View(0, "head", 1, "reads"), View(1, "norms", None, "predicts")]
    pairs = [("", "La"), ("The", " "), ("a " * 300, "un"), ("a", "un " * 300), ("The", "Le")]
    aligned = list(
        align_pairs(
            bundle.model, bundle.tokenizer, [s for s, _ in pairs], [t for _, t in pairs], views
        )
    )
    assert [pair.error is None for pair in aligned] == [True, True, False, False, True]
    assert "source must have at most 256" in (aligned[2].error or "")
    assert "target must have at most 256" in (aligned[3].error or "")
    assert [pair.links for pair in aligned[:4]] == [(frozenset(), frozenset())] * 4
    assert aligned[4].links == (frozenset({(0, 0)}),) * 2


def test_end_share_is_what_a_row_has_left_for_the_end(bundle: Bundle) -> None:
    view = View(1, "head", 2, "predicts")
    pair = next(align_pairs(bundle.model, bundle.tokenizer, ["The cat"], ["Le chat"], [view]))
    ids = (bundle.tokenizer.encode_source("The cat"), bundle.tokenizer.encode_target("Le chat"))
    maps = next(map_pairs(bundle.model, [ids], [1], pad_id=0, start_id=2, has_norms=False))
    rest = 1 - maps.get(view)[:, :-1].sum(axis=1)
    assert pair.end_shares == pytest.approx((rest.mean(),), abs=1e-5)


def made(source: str, target: str, *links: set[tuple[int, int]]) -> Aligned:
    words = (tuple(source.split()), tuple(target.split()))
    return Aligned(source, target, *words, tuple(map(frozenset, links)), (0.0,) * len(links))


def test_consistency_by_hand() -> None:
    pairs = [
        made("the cat", "le chat", {(0, 0), (1, 1)}, {(1, 0), (0, 1)}),
        made("The dog", "Le chien!", {(0, 0), (1, 1)}, {(1, 0), (0, 1)}),
        made("a cat", "un chat.", {(0, 0), (1, 1)}, {(1, 0), (0, 1)}),
    ]
    # the–le and cat–chat are linked twice, each link confirmed fully by the other pair; the
    # second view links nothing alike twice.
    assert consistencies(pairs) == pytest.approx([4 / 6, 0])
    pairs.append(made("the oven", "four le", {(0, 0), (1, 1)}, {(0, 1), (1, 0)}))
    # le and the: in the other pairs "the" has 2 links, "le" 2, together 1.
    assert consistencies(pairs)[0] == pytest.approx((2 * 0.5 + 2) / 8)


def test_consistency_leaves_out_what_could_not_be_aligned() -> None:
    pair = made("the cat", "le chat", {(0, 0)})
    broken = Aligned("the", "le", ("the",), ("le",), (frozenset(),), (0.0,), "too long")
    assert consistencies([pair, broken, pair]) == [1]
    with pytest.raises(InputError, match="No pair can be aligned"):
        consistencies([broken])


def test_recommended_view_is_near_the_best_by_gold(bundle: Bundle, examples: list[Example]) -> None:
    direction = make_direction(bundle, rule="both")
    sources, targets = ([getattr(e, side) for e in examples] for side in ("source", "target"))
    golds = [GoldLinks(frozenset(e.alignment), frozenset(e.alignment)) for e in examples]
    judged = direction.judge(sources, targets, golds, tell=lambda *told: pytest.fail(str(told)))
    errors = {one.view: one.score.error for one in judged}
    ranked = direction.recommend(sources, targets)
    # Views whose links confirm each other equally well are thousandths apart, and not equally
    # right: one of the first six is near the best, and the first is among the better half.
    assert min(errors[one.view] for one in ranked[:6]) <= sorted(errors.values())[2]
    assert errors[ranked[0].view] < sorted(errors.values())[len(errors) // 2]
    assert errors[ranked[0].view] < 0.15
    assert [one.consistency for one in ranked] == sorted(
        (one.consistency for one in ranked), reverse=True
    )
    # The row of the token that it reads is another word's here: nearly all links are wrong, but
    # those of a head that looks where the decoder has just been.
    reads = sorted(e for view, e in errors.items() if view.convention == "reads")
    assert reads[len(reads) // 2] > 0.4
    assert min(errors.values()) < 0.15


def test_judge_counts_a_pair_that_cannot_be_aligned_as_missed(bundle: Bundle) -> None:
    direction = make_direction(bundle, rule="best", layer=0, head=0, maps=["head"])
    gold = GoldLinks(frozenset({(0, 0)}), frozenset({(0, 0)}))
    told: list[int] = []
    judged = direction.judge(
        ["The", "a " * 300], ["Le", "un"], [gold] * 2, tell=lambda index, _: told.append(index)
    )
    assert told == [1]
    assert [one.score.error for one in judged] == pytest.approx([1 - 2 / 3] * 2)
    assert all(math.isfinite(one.end_share) and one.end_share > 0 for one in judged)


def test_backward_direction_swaps_sides_and_links(bundle: Bundle) -> None:
    asked = {"rule": "both", "layer": 1, "head": 2, "maps": ["head"], "conventions": ["predicts"]}
    english, french = ["The cat saw the old dog."], ["Le chat a vu le vieux chien."]
    (there,) = make_direction(bundle, **asked).align(english, french)  # type: ignore[arg-type]
    (back,) = make_direction(bundle, **asked, is_backward=True).align(french, english)  # type: ignore[arg-type]
    assert back.links == (frozenset((j, i) for i, j in there.links[0]),)
    assert (back.source, back.target) == (french[0], english[0])
    assert (len(back.source_words), len(back.target_words)) == (7, 6)
