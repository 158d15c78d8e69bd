"""The one address of a head: how it is written, and what it names in a model."""

from __future__ import annotations

import pytest

from pellucid.config import ModelConfig
from pellucid.config.head_address import (
    HeadAddress,
    find_heads,
    heads_of_model,
    parse_address,
    sites_of,
)
from pellucid.errors import InputError

SIZES = {"num_heads": 3, "d_model": 6, "num_encoder_layers": 2, "num_decoder_layers": 5}


def a_model(**changes: object) -> ModelConfig:
    return ModelConfig.model_validate(SIZES | changes)


def recurrent(attention: str = "additive") -> ModelConfig:
    return ModelConfig.model_validate(
        {"architecture": "recurrent", "d_model": 6, "num_encoder_layers": 1}
        | {"num_decoder_layers": 2, "recurrent_attention": attention}
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("decoder.1.cross.0", 1),
        ("decoder.1.cross", 3),
        ("decoder.1.cross.*", 3),
        ("decoder.1", 2 * 3),
        ("decoder", 5 * 2 * 3),
        ("*", 3 * (2 + 2 * 5)),
        ("*.*.self", 3 * (2 + 5)),
        ("*.1.*.2", 1 + 2),
        # Only the decoder is that deep.
        ("*.4", 2 * 3),
        ("encoder.0.feed_forward", 0),
    ],
)
def test_address_names_the_heads_that_its_levels_leave_open(text: str, number: int) -> None:
    address = parse_address(text)
    assert str(address) == text
    found = address.heads_of(a_model())
    assert len(found) == number
    assert all(head.is_one_head and parse_address(str(head)) == head for head in found)


def test_levels_that_are_left_out_hold_sublayers_without_heads() -> None:
    assert parse_address("decoder.1").is_at("decoder.1.feed_forward")
    assert not parse_address("decoder.1.*.*").is_at("decoder.1.feed_forward")
    assert not parse_address("decoder").is_at("decoder")


def test_heads_of_several_addresses_come_once_in_the_order_of_the_model() -> None:
    found = find_heads(["decoder.0.cross.2", "decoder.0.cross", "encoder.1.self.0"], a_model())
    assert [str(head) for head in found] == [
        "encoder.1.self.0",
        *(f"decoder.0.cross.{head}" for head in range(3)),
    ]
    assert find_heads("encoder.1.self.0", a_model()) == [HeadAddress("encoder", 1, "self", 0)]
    assert find_heads((), a_model()) == list(heads_of_model(a_model()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("decodre.1.cross.0", "The part in the address 'decodre.1.cross.0'.*'decoder'"),
        ("decoder.one.cross.0", "The layer in the address.*a number from 0 or \\*, but is 'one'"),
        ("decoder.-1.cross.0", "The layer in the address.*but is '-1'"),
        ("decoder.²", "The layer in the address.*but is '²'"),
        ("decoder.1.croos.0", "The kind in the address.*Did you mean 'cross'"),
        ("decoder.1.cross.", "The head in the address.*but is ''"),
        (
            "decoder.1.cross." + "9" * 5000,
            "The head in the address .decoder.1.cross.9+.+ must be",
        ),
        ("decoder.1.cross.0.weights", "at most 4 levels"),
        ("encoder.0.cross.0", "The encoder has no cross-attention"),
        ("encoder.0.feed_forward.0", "Only self and cross have heads"),
        ("", "The part in the address"),
        ("3", "The part in the address '3'"),
    ],
)
def test_text_that_is_no_address_is_refused_at_its_level(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_address(text)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("given", [3, None, b"decoder", ("decoder", 1)])
def test_address_that_is_no_text_is_refused(given: object) -> None:
    with pytest.raises(InputError, match="head must be a text such as"):
        parse_address(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "model", "message"),
    [
        ("encoder.2", a_model(), "A layer must be from 0 to 1 for this model's encoder"),
        ("*.5", a_model(), "A layer must be from 0 to 4 for this model, but is 5"),
        ("*.*.*.3", a_model(), "A head must be from 0 to 2 for this model"),
        ("encoder.0.recurrent", a_model(), "has no encoder.0.recurrent. Did you mean"),
        ("decoder.1.cross", recurrent(), "only head of a recurrent model is decoder.0.cross.0"),
        ("encoder.0.self.0", recurrent(), "only head of a recurrent model is decoder.0.cross.0"),
        ("encoder.0.feed_forward", recurrent(), "has no encoder.0.feed_forward"),
        ("decoder.0.cross.0", recurrent("none"), "has no head"),
    ],
)
def test_address_that_a_model_does_not_have_is_refused_with_what_it_has(
    text: str, model: ModelConfig, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        parse_address(text).heads_of(model)


def test_recurrent_model_has_one_head_and_a_unit_in_each_layer() -> None:
    assert sites_of(recurrent()) == [
        *("encoder.0.recurrent", "decoder.0.cross", "decoder.0.recurrent", "decoder.1.recurrent")
    ]
    assert [str(head) for head in heads_of_model(recurrent())] == ["decoder.0.cross.0"]
    assert list(heads_of_model(recurrent("none"))) == []
    assert [str(head) for head in parse_address("*").heads_of(recurrent())] == ["decoder.0.cross.0"]
