"""Tables of rules refuse options that lack or contradict each other."""

from __future__ import annotations

import pytest

from pellucid.cli.option_rules import Apart, Needs, check_rules
from pellucid.errors import InputError, speaking_to

RULES = (
    Needs("column words", "row"),
    Needs("gold", "target pairs", "whose words it links"),
    Apart("json", "csv"),
    Apart("history", "html measures", "these are of one model"),
)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"words": 2}, "--words needs --row. Add it, or leave --words out."),
        ({"column": 0}, "--column needs --row. Add it, or leave --column out."),
        (
            {"gold": "g"},
            "--gold needs --target or --pairs, whose words it links. Add it, or leave --gold out.",
        ),
        (
            {"json": True, "csv": True},
            "--json cannot be combined with --csv. Leave one of them out.",
        ),
        (
            {"history": True, "measures": 0},
            "--history cannot be combined with --measures: these are of one model. Leave one of "
            "them out.",
        ),
    ],
)
def test_broken_rules_are_refused_in_a_sentence(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        check_rules(RULES, options)
    with speaking_to("command"):
        assert str(error.value) == sentence


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"column": None, "words": None, "json": False, "csv": True, "measures": []},
        {"column": 0, "row": "it"},
        {"gold": "g", "pairs": "p", "target": None},
        {"history": True, "html": None, "measures": ()},
    ],
)
def test_what_is_not_given_breaks_no_rule(options: dict[str, object]) -> None:
    check_rules(RULES, options)


def test_options_that_stand_on_both_sides_do_not_contradict_themselves() -> None:
    rule = Apart("links lens", "links lens")
    check_rules([rule], {"links": True})
