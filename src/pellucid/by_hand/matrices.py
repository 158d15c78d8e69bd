"""A user's own matrices, from a TOML or CSV file, as an example to follow by hand.

TOML has either ``x`` with any of ``w_query``, ``w_key`` and ``w_value`` (a missing one is the
identity), or ``query``, ``key`` and ``value`` as they are; optionally also ``tokens``,
``key_tokens``, ``mask`` and ``scale``, and what `pellucid.by_hand.around` reads. CSV has one
matrix, which is queries, keys and values at once; its first line may name the tokens.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from pellucid.attention.masks import causal_mask
from pellucid.by_hand.around import (
    KEYS,
    add_layers,
    position_part,
    read_norm,
    read_surroundings,
    split_heads,
)
from pellucid.by_hand.layer import norm_steps
from pellucid.by_hand.reading import (
    LARGEST_NUMBER,
    MAX_NUMBERS,
    Given,
    read_csv,
    read_toml,
    shorten,
)
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Example,
    Part,
    attend_by_hand,
    make_step,
    make_weight_step,
    table,
    write_number,
)
from pellucid.by_hand.stages import Product, stage_steps
from pellucid.errors import DataError, InputError

_AS_THEY_ARE = ("query", "key", "value")
_WEIGHTS = ("w_query", "w_key", "w_value")
_KNOWN = ("x", *_WEIGHTS, *_AS_THEY_ARE, "tokens", "key_tokens", "mask", "scale", *KEYS)

_GIVEN_NOTE = "Each row of x times a matrix is that token's query, key or value."
_HEAD_NOTE = "Each head has its own block of columns of the queries, the keys and the values."
_ATTENTION_NOTE = (
    "Every query meets every key; the scores become shares of 1, and the values are mixed by them."
)


def read_example(path: Path) -> Example:
    """Read matrices and work out attention with them.

    Args:
        path: a file whose name ends in ``.toml`` or ``.csv``, or in one of these and ``.gz``.

    Raises:
        InputError: one sentence about what is wrong, with file, line and field.
    """
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".csv"):
        return _work_out(path, read_csv(path))
    if name.endswith(".toml"):
        return _work_out(path, read_toml(path))
    raise InputError(f"Matrices must come from a .toml or a .csv file, but {path} is neither.")


def _work_out(path: Path, given: Given) -> Example:
    _check_keys(given)
    x_LD, source = None, None
    before: list[Part] = []
    if "x" in given.values:
        x_LD = given.matrix("x")
        names, _ = _names(given, len(x_LD), len(x_LD))
        place, x_LD = position_part(given, names, x_LD)
        before += [place] if place is not None else []
        source, normed = _normed_first(given, names, x_LD)
        before += [normed] if normed is not None else []
        parts, roles, formulas, products = _project(given, names, source)
        before += parts
    else:
        roles = tuple(given.matrix(name) for name in _AS_THEY_ARE)
        formulas, products = dict.fromkeys(_AS_THEY_ARE, "as given"), {}
    _check_widths(given, *roles)
    around = read_surroundings(given, x_LD, roles[0].shape[-1], roles[2].shape[-1])
    attended = _attend(given, roles, formulas, products, around.num_heads)
    attentions = [part.attention for part in attended if part.attention is not None]
    after = add_layers(around, attentions[0].query_names, x_LD, attentions)
    title = "Attention with your own matrices"
    described = _describe(attentions[0], around.num_heads)
    return Example(str(path), title, "", described, (*before, *attended, *after))


def _normed_first(given: Given, names: tuple[str, ...], x_LD: Tensor) -> tuple[Tensor, Part | None]:
    """Apply the layer norm that stands before the attention, if there is one."""
    place = read_norm(given, x_LD)
    if place is None or not place.is_before:
        return x_LD, None
    steps, normed_LD = norm_steps(names, x_LD, place.norm)
    note = "Pre-norm: each row is shifted to mean 0 and stretched to variance 1 before attention."
    return normed_LD, Part("Norm", note, steps)


def _attend(
    given: Given,
    roles: tuple[Tensor, ...],
    formulas: dict[str, str],
    products: dict[str, Product],
    num_heads: int,
) -> list[Part]:
    """Let each head attend with its block of columns; a single one has all of them."""
    query_LK, key_MK, _ = roles
    query_names, key_names = _names(given, len(query_LK), len(key_MK))
    # The same matrix stays the same object, so that it is shown once.
    blocks = {id(role): split_heads(role, num_heads) for role in roles} if num_heads > 1 else {}
    found = []
    for head in range(num_heads):
        query, key, value = (blocks[id(role)][head] if blocks else role for role in roles)
        attention = attend_by_hand(
            query,
            key,
            value,
            query_names=query_names,
            key_names=key_names,
            mask_LM=_read_mask(given, len(query_LK), len(key_MK)),
            divisor=_read_divisor(given),
        )
        own = {
            name: replace(p, weight_DK=split_heads(p.weight_DK, num_heads)[head])
            for name, p in products.items()
        }
        steps = stage_steps(attention, formulas=formulas, products=own)
        if num_heads > 1:
            title, note = f"Head {head + 1} of {num_heads}", _HEAD_NOTE
        else:
            title, note = "Attention, stage by stage", _ATTENTION_NOTE
        found.append(Part(title, note, steps, attention))
    return found


def _check_keys(given: Given) -> None:
    given.check_keys(_KNOWN)
    names = set(given.values)
    if "x" not in names and "positions" in names:
        raise DataError(
            "positions must come with x, to which they are added, but x is missing "
            f"({given.where('positions')}). Give x, or leave positions out."
        )
    as_they_are = names & set(_AS_THEY_ARE)
    if "x" in names and as_they_are:
        name = next(n for n in _AS_THEY_ARE if n in names)
        raise DataError(
            f"x cannot be combined with {name} ({given.where(name)}). Give either x or query, key "
            "and value."
        )
    if "x" not in names and (weights := [n for n in _WEIGHTS if n in names]):
        raise DataError(
            f"No x was given for {weights[0]} to multiply ({given.where(weights[0])}). Add x, with "
            "one row per token."
        )
    missing = [name for name in _AS_THEY_ARE if name not in names]
    if "x" not in names and missing:
        start = "Give x, or query, key and value" if len(missing) == 3 else f"Add {missing[0]}"
        raise DataError(
            f"There must be x, or query, key and value, but {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing ({given.path}). {start}."
        )


def _project(
    given: Given, names: tuple[str, ...], x_LD: Tensor
) -> tuple[tuple[Part, ...], tuple[Tensor, ...], dict[str, str], dict[str, Product]]:
    """Multiply x by each given matrix; a missing one leaves x as it is."""
    width = x_LD.shape[-1]
    roles, steps, formulas = [], [], {"query = key = value": "x", "key = value": "x"}
    products: dict[str, Product] = {}
    for name, role in zip(_WEIGHTS, _AS_THEY_ARE, strict=True):
        if name not in given.values:
            roles.append(x_LD)
            formulas[role] = "x"
            continue
        weight = given.matrix(name)
        if len(weight) != width:
            raise DataError(
                f"{name} must have one row for each of the {width} columns of x, but has "
                f"{len(weight)} ({given.where(name)}). If it is stored the other way round, "
                "transpose it."
            )
        roles.append(x_LD @ weight)
        formulas[role] = f"x · {name}"
        products[role] = Product(names, x_LD, weight)
        steps.append(make_weight_step(name, weight))
    if not steps:
        return (), tuple(roles), formulas, products
    is_as_given = torch.equal(x_LD, given.matrix("x"))
    formula = "one row per token" if is_as_given else "one row per token, as computed above"
    first = make_step("x", formula, table(names, x_LD, "x"), is_given=True)
    part = Part("What is given", _GIVEN_NOTE, (first, *steps))
    return (part,), tuple(roles), formulas, products


def _check_widths(given: Given, query_LK: Tensor, key_MK: Tensor, value_ME: Tensor) -> None:
    if query_LK.shape[-1] != key_MK.shape[-1]:
        name = next((n for n in ("w_key", "key", "w_query") if n in given.values), "x")
        raise DataError(
            "Queries and keys must have the same width (d_q = d_k), but have "
            f"{query_LK.shape[-1]} and {key_MK.shape[-1]} columns ({given.where(name)}). "
            "Make them equal."
        )
    if len(key_MK) != len(value_ME):
        raise DataError(
            f"There must be one value for each key, but there are {len(value_ME)} values and "
            f"{len(key_MK)} keys ({given.where('value')}). Give as many of both."
        )
    if len(query_LK) * len(key_MK) > MAX_NUMBERS:
        raise DataError(
            f"There must be at most {MAX_NUMBERS} scores to be followed by hand, but there are "
            f"{len(query_LK)} × {len(key_MK)} ({given.path}). For more use pellucid.attend in "
            "Python."
        )


def _names(given: Given, queries: int, keys: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name queries and keys by ``tokens`` and ``key_tokens``, or by number."""
    query_names = _read_names(given, "tokens", queries, "queries")
    if "key_tokens" in given.values:
        return query_names, _read_names(given, "key_tokens", keys, "keys")
    return query_names, query_names if keys == queries else _numbered(keys)


def _read_names(given: Given, name: str, count: int, what: str) -> tuple[str, ...]:
    if name not in given.values:
        return _numbered(count)
    names = given.values[name]
    if not isinstance(names, list) or not all(isinstance(token, str) for token in names):
        raise DataError(
            f'{name} must be a list of texts such as ["a", "b"], but is {shorten(names)} '
            f"({given.where(name)}). Write it so."
        )
    if len(names) != count:
        raise DataError(
            f"There must be one name for each of the {count} {what}, but {name} has "
            f"{len(names)} ({given.where(name)}). Give as many."
        )
    return tuple(names)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"#{index}" for index in range(count))


def _read_mask(given: Given, queries: int, keys: int) -> Tensor | None:
    if "mask" not in given.values:
        return None
    mask = given.values["mask"]
    if mask == "causal":
        if queries > keys:
            raise DataError(
                "A causal mask must have as many keys as queries or more, but there are "
                f"{keys} keys and {queries} queries ({given.where('mask')}). Leave it out."
            )
        return causal_mask(queries, keys)[0, 0]
    is_matrix = isinstance(mask, list) and all(
        isinstance(row, list) and len(row) == keys and all(isinstance(may, bool) for may in row)
        for row in mask
    )
    if is_matrix and len(mask) == queries:
        return torch.tensor(mask)
    raise DataError(
        f'mask must be "causal" or {queries} rows of {keys} true or false (true = may attend), '
        f"but is {shorten(mask)} ({given.where('mask')}). Write it so."
    )


def _read_divisor(given: Given) -> float | None:
    r"""Read the number that divides the scores; None means $\sqrt{d_k}$."""
    scale = given.values.get("scale", True)
    if isinstance(scale, bool):
        return None if scale else 1.0
    if isinstance(scale, int | float) and 1 / LARGEST_NUMBER <= scale <= LARGEST_NUMBER:
        return float(scale)
    raise DataError(
        "scale must be true (scores are divided by √d_k), false (by nothing) or a positive "
        f"number to divide by, but is {shorten(scale)} ({given.where('scale')}). Change it."
    )


def _describe(a: AttentionByHand, num_heads: int) -> str:
    divided = a.divisor_words or write_number(a.divisor)
    masked = "without a mask" if a.mask_LM is None else "with a mask"
    return (
        f"Queries: {len(a.query_names)}; keys: {len(a.key_names)}; scores divided by {divided}; "
        f"{masked}{f'; heads: {num_heads}' if num_heads > 1 else ''}."
    )
