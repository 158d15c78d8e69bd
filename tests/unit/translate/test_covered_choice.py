"""The hypothesis that a document gets is the one that was judged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import pellucid
from pellucid.documents.markup.segments import Segment, Spelled, Syntax
from pellucid.documents.placeholders import make_segment
from pellucid.translate.links.document_texts import choose_covered
from pellucid.translate.masking import hide_copies
from pellucid.translate.results import Translation
from pellucid.translate.translator import Translator


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


def chosen(demo: Translator, texts: Sequence[str]) -> list[tuple[Segment, Translation]]:
    segments = [make_segment(Spelled(text), Syntax({})) for text in texts]
    hidden = hide_copies(demo.tokenizers, segments)
    found = demo.translate([*hidden.texts], beam=4, n_best=4, unknown="source-word")
    return list(zip(segments, choose_covered(demo, segments, hidden, found), strict=True))


def test_words_that_one_hypothesis_leaves_out_are_taken_from_another(demo: Translator) -> None:
    ((_, one),) = chosen(demo, ["With %d gardens"])
    # The likeliest one has the placeholder twice.
    assert "jardins" in one.best.text
    assert one.best.text.count("%d") == 1
    # Another hypothesis that is far less likely is a guess.
    assert "unsure" in one.notes.flags


def test_words_that_all_hypotheses_leave_out_are_named(demo: Translator) -> None:
    ((_, one),) = chosen(demo, ["Something fell on my head %s."])
    assert "partial" in one.notes.flags
    assert {"fell", "on"} <= {*one.notes.unlinked_words}


def test_first_hypothesis_that_has_everything_stays_as_it_was(demo: Translator) -> None:
    ((_, one),) = chosen(demo, ["The dog of %s is big."])
    assert one.best.text == "Le chien de %s est grand."
    assert one.notes.flags == ()


def test_without_placeholders_nothing_is_lost_and_the_order_stays(demo: Translator) -> None:
    texts = ["The old dog eats the red pizza.", ""]
    plain = demo.translate(texts, beam=4, n_best=4, unknown="source-word")
    for (_, one), other in zip(chosen(demo, texts), plain, strict=True):
        assert [each.text for each in one.hypotheses] == [each.text for each in other.hypotheses]
