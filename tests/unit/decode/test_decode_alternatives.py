"""Alternatives combined with forbidden words."""

from __future__ import annotations

from typing import Any

import pytest
from of_subwords import SUBWORDS

import pellucid
from pellucid.decode.constraints.request import Constraints

PIZZA = "The pizza came out of the oven and it tasted good."


@pytest.mark.parametrize(("room", "is_left"), [(5, True), (1, False)])
def test_alternative_that_ends_like_a_forbidden_word_may_grow_into_another(
    room: int, is_left: bool
) -> None:
    translator = pellucid.load(SUBWORDS)
    prefix = "La pizza est sortie du four et elle avait bon"
    length = len(translator.tokenizer.encode_target(prefix)) - 1
    options: dict[str, Any] = {"alternatives": True, "n_best": 3, "max_length": length + room}

    def ask(*forbidden: str) -> list[tuple[str, ...]]:
        constraints = Constraints(prefix=prefix, forbidden=forbidden)
        (found,) = translator.translate([PIZZA], constraints=constraints, **options)
        for hypothesis in found.hypotheses:
            assert not set(forbidden) & set(hypothesis.text.rstrip(".").split())
        return [hypothesis.tokens[length:] for hypothesis in found.hypotheses]

    free = ask()
    # The likeliest continues to "goût"; "go" is another word.
    assert free[0][:3] == ("▁go", "û", "t")[:room]
    assert (free[0] in ask("go")) == is_left
    assert free[0] not in ask("goût", "go")


def test_alternative_that_ends_at_once_has_its_score_and_meets_what_is_required() -> None:
    translator = pellucid.load(SUBWORDS)
    prefix = "La pizza est sortie du four et elle avait bon goût"
    options: dict[str, Any] = {"alternatives": True, "n_best": 3, "beam": 3}
    asked = {
        required: translator.translate(
            [PIZZA], constraints=Constraints(prefix=prefix, required=required), **options
        )[0].hypotheses
        for required in ((), ("four",), ("chat",))
    }
    length = len(translator.tokenizer.encode_target(prefix))
    ended = [one for one in asked[()] if len(one.ids) == length]
    assert len(ended) == 1
    alpha = translator.decoding.alpha
    assert ended[0].score == pytest.approx(ended[0].log_probability / ((5 + length) / 6) ** alpha)
    assert ended[0].ids in [one.ids for one in asked[("four",)]]
    assert asked[("chat",)]
    for one in asked[("chat",)]:
        assert "chat" in one.text
