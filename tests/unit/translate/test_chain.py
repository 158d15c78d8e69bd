"""From one model to the next: texts, scores, links and notes go through all of them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from relabeled import relabel

import pellucid
from pellucid.errors import InputError
from pellucid.translate.chain.chained import Chain
from pellucid.translate.chain.paths import follow, join_links, join_notes
from pellucid.translate.results import Notes, TranslatedHypothesis, Translation
from pellucid.translate.translator import Translator

SOUP = "The soup was cold."
CAT = "The cat slept."


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for pair in ("fr-en", "en-de", "de-it"):
        relabel(folder / pair, *pair.split("-"))
    return folder


@pytest.fixture(scope="module")
def chain(models: Path) -> Chain:
    return pellucid.chain(f"{models}/fr-en,{models}/en-de")


@pytest.fixture(scope="module")
def each(models: Path) -> tuple[Translator, Translator]:
    return pellucid.load(models / "fr-en"), pellucid.load(models / "en-de")


def test_each_model_translates_what_the_one_before_it_wrote(
    chain: Chain, each: tuple[Translator, Translator]
) -> None:
    first, second = each
    texts = [SOUP, "", f"{CAT}\n\n{SOUP}", "  The cat slept. "]
    for text, found in zip(texts, chain.translate(texts), strict=True):
        middle = first.translate(text)
        last = second.translate(middle.text)
        assert found.source == text
        assert (found.text, found.ids) == (last.text, last.ids)
        assert found.best.middle == (middle.text,)
        assert found.log_probability == middle.log_probability + last.log_probability
        assert found.score == middle.score + last.score
        assert [(one.model, one.translation, one.notes) for one in found.through] == [
            ("fr-en", middle.text, middle.notes),
            ("en-de", last.text, last.notes),
        ]
    assert chain.languages[:2] == ("fr", "de")


def test_names_folders_and_loaded_models_make_the_same_chain(
    chain: Chain, each: tuple[Translator, Translator], models: Path
) -> None:
    found = chain.translate(SOUP)
    assert pellucid.chain(*each).translate(SOUP) == found
    assert pellucid.chain(models / "fr-en", str(models / "en-de")).translate(SOUP) == found
    assert isinstance(chain, Translator)
    assert repr(chain) == "<Chain fr-en, en-de, fr to de>"


def test_n_best_are_the_best_ways_through_all_hypotheses(
    chain: Chain, each: tuple[Translator, Translator]
) -> None:
    first, second = each
    found = chain.translate(SOUP, beam=3, n_best=3)
    sums: dict[str, float] = {}
    for middle in first.translate(SOUP, beam=3, n_best=3).hypotheses:
        for last in second.translate(middle.text, beam=3, n_best=3).hypotheses:
            score = middle.score + last.score
            sums[last.text] = max(score, sums.get(last.text, -math.inf))
    best = sorted(sums.items(), key=lambda one: -one[1])[:3]
    assert [(one.text, one.score) for one in found.hypotheses] == best
    sampled = chain.translate(SOUP, sample=True, n_best=2, seed=3)
    assert 1 <= len(sampled.hypotheses) <= 2


def test_hypotheses_with_different_middle_texts_compete() -> None:
    def write(text: str) -> Translation:
        both = (TranslatedHypothesis(f"{text}a", score=-1.0), TranslatedHypothesis("b", score=-2.0))
        return Translation(text, both)

    (found,) = drive([write, write], ["x"], most=3)
    assert [(one.text, one.score, one.middle) for one in found.hypotheses] == [
        ("xaa", -2.0, ("xa",)),
        ("b", -3.0, ("xa",)),
        ("ba", -3.0, ("b",)),
    ]
    assert [one.translation for one in found.through] == ["xa", "xaa"]


def test_iterator_and_stream_give_the_same(chain: Chain) -> None:
    lines: Iterator[str] = iter([f"{SOUP}\n", CAT])
    found = chain.translate(lines)
    assert not isinstance(found, list)
    assert list(found) == chain.translate([SOUP, CAT])
    stream = chain.stream(SOUP)
    whole = chain.translate(SOUP)
    assert "".join(stream) == whole.text
    assert (stream.translation.best.ids, stream.translation.through[0].translation) == (
        whole.best.ids,
        whole.through[0].translation,
    )
    # A stream computes step by step, which rounds otherwise than one call of the engine.
    assert stream.translation.best.score == pytest.approx(whole.best.score, abs=1e-5)


def test_prefix_and_glossary_are_about_what_the_last_model_writes(chain: Chain) -> None:
    found = chain.translate(SOUP, prefix="Le chien")
    assert found.text.startswith("Le chien")
    assert found.best.middle == ("La soupe était froide.",)
    # The term is found in the text as given, which only the first model reads.
    found = chain.translate([SOUP, CAT], glossary={"soup": "maison"})
    assert "maison" in found[0].text
    assert "maison" not in found[1].text
    assert [[one.outcome for one in each.terms] for each in found] == [["hit"], []]
    stream = chain.stream(SOUP, glossary={"soup": "maison"})
    assert "maison" in "".join(stream)
    assert [one.outcome for one in stream.translation.terms] == ["hit"]


# Links


def links(
    *pairs: tuple[int, int], text: str = "", words: Sequence[str] = ()
) -> TranslatedHypothesis:
    return TranslatedHypothesis(text, alignment=pairs, words=tuple(words or text.split()))


def test_links_are_the_product_of_the_matrices(
    chain: Chain, each: tuple[Translator, Translator]
) -> None:
    first = links((0, 1), (1, 0), (2, 2), text="b a c")
    last = links((0, 0), (1, 2), (1, 3), text="x y z w")
    assert join_links(first, ["b", "a", "c"], last) == ((0, 2), (0, 3), (1, 0))
    # One model masks "%s," as a symbol and the other does not: the words differ, not the letters.
    cut = links((0, 0), (1, 1), text="%s, a")
    assert join_links(cut, ["%s", ",", "a"], links((0, 0), (2, 1), text="x y")) == ((0, 0), (1, 1))
    assert join_links(TranslatedHypothesis("b"), ["b"], last) is None

    one, two = each
    middle = one.translate(SOUP, align=True)
    final = two.translate(middle.text, align=True)
    found = chain.translate(SOUP, align=True)
    assert found.source_words == ("The", "soup", "was", "cold.")
    assert found.best.words == final.best.words
    assert middle.alignment is not None
    assert final.alignment is not None
    product = {(i, k) for i, j in middle.alignment for m, k in final.alignment if j == m}
    assert set(found.alignment or ()) == product
    again = chain.translate(SOUP, align=chain.aligner())
    assert again.alignment == found.alignment


# Errors and notes


def drive(
    models: Sequence[Callable[[str], Translation]], texts: Sequence[str], most: int = 1
) -> list[Translation]:
    following = follow(texts, [f"m{n}" for n in range(len(models))], most)
    found = None
    try:
        while True:
            step = next(following) if found is None else following.send(found)
            found = [models[step.number](text) for text in step.texts]
    except StopIteration as end:
        translations: list[Translation] = end.value
        return translations


def test_error_of_a_model_names_it_and_costs_only_its_text() -> None:
    def fail(text: str) -> Translation:
        if text == "bad!":
            return Translation(text, (), error="It cannot be read.")
        return Translation(text, (TranslatedHypothesis(f"{text}!"),))

    good, bad, worst = drive([fail, fail], ["good", "bad", "bad!"])
    assert good.text == "good!!"
    assert (bad.error, bad.hypotheses, bad.source) == ("m1: It cannot be read.", (), "bad")
    assert worst.error == "It cannot be read."
    assert drive([fail, fail, fail], ["a"])[0].best.middle == ("a!", "a!!")
    assert drive([fail, fail], []) == []


def test_notes_of_all_models_are_joined() -> None:
    first = Notes(unknown={"é": 1}, rare_tokens=0.2, flags=("unsure",), parts=2)
    second = Notes(unknown={"é": 1}, rare_tokens=0.5, flags=("unsure", "long"), precision="int8")
    joined = join_notes((first, Notes(), second))
    assert joined == Notes(
        unknown={"é": 2},
        rare_tokens=0.5,
        flags=("unsure", "long"),
        parts=2,
        precision="int8",
    )


def test_record_says_what_each_model_wrote(chain: Chain) -> None:
    record = json.loads(json.dumps(chain.translate(SOUP).to_dict()))
    assert record["hypotheses"][0]["middle"] == ["La soupe était froide."]
    assert [one["model"] for one in record["through"]] == ["fr-en", "en-de"]
    assert record["through"][0]["notes"] == {}
    assert record["through"][1]["notes"]["unknown_words"] == ["La", "soupe", "était", "froide"]
    assert record["notes"] == record["through"][1]["notes"]


# Refusals


def test_chain_that_is_none_is_refused(models: Path, chain: Chain) -> None:
    with pytest.raises(InputError, match="fr-en writes en and de-it reads de"):
        pellucid.chain(models / "fr-en", models / "de-it")
    with pytest.raises(InputError, match="two models or more, but has 1"):
        pellucid.chain("demo")
    with pytest.raises(InputError, match="before and after each comma"):
        pellucid.chain("demo,")
    with pytest.raises(InputError, match="takes one model, but demo,demo names 2"):
        pellucid.load("demo,demo")


@pytest.mark.parametrize("name", ["look", "pair", "why", "score", "align", "changed"])
def test_what_needs_one_model_is_refused(chain: Chain, name: str) -> None:
    with pytest.raises(InputError, match=rf"chain\.models\[0\]\.{name}"):
        getattr(chain, name)(SOUP)


def test_options_that_need_one_model_are_refused(chain: Chain) -> None:
    with pytest.raises(InputError, match="one of chain"):
        chain.translate(SOUP, changes="cut decoder.1.cross.0")
    with pytest.raises(InputError, match="heads of its own"):
        chain.aligner(head="decoder.1")
    with pytest.raises(InputError, match="its own way"):
        chain.aligner("subwords")
    with pytest.raises(InputError, match="language codes"):
        chain.translate(SOUP, to="ita")
    with pytest.raises(InputError, match="bem"):
        chain.translate(SOUP, bem=3)
