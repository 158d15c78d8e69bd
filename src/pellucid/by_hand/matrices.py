"""A file of matrices worked out as an example by hand: see `pellucid.by_hand.matrix_files`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import torch
from torch import Tensor

from pellucid.attention.masks import causal_mask
from pellucid.attention.positions import sinusoidal_positions
from pellucid.by_hand.layer import (
    FeedForwardByHand,
    NormByHand,
    add_step,
    feed_forward_steps,
    joined_steps,
    norm_steps,
)
from pellucid.by_hand.matrix_files import MAX_NUMBERS, MatrixFile, read_matrix_file
from pellucid.by_hand.sheet import (
    AttentionByHand,
    NamedMatrix,
    Part,
    Step,
    WorkedExample,
    attend_by_hand,
    make_given,
    make_step,
    make_weight_step,
    named_matrix,
    write_number,
)
from pellucid.by_hand.written_stages import Product, stage_steps, write_added
from pellucid.errors import DataError, InputError, suggestion
from pellucid.files import endings

_ROLES = ("query", "key", "value")
_WEIGHTS = ("w_query", "w_key", "w_value")
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True, eq=False)
class _Roles:
    """Queries, keys and values of all heads, and what the steps say of them."""

    values: tuple[Tensor, ...]
    formulas: dict[str, str]
    products: dict[str, Product]


def read_example(path: Path) -> WorkedExample:
    """Read matrices and work out attention with them.

    Args:
        path: a file whose name ends in ``.toml`` or ``.csv``, or in one of these and ``.gz``.

    Raises:
        InputError: one sentence about what is wrong, with file, line and key.
    """
    # Compressed files are read like all others.
    if endings(path).kind not in (".csv", ".toml"):
        raise InputError(f"Matrices must come from a .toml or a .csv file, but {path} is neither.")
    return _work_out(read_matrix_file(path), str(path))


def packaged_example(name: str) -> WorkedExample:
    """Work out one of our examples that is a file of matrices."""
    path = files("pellucid.by_hand.examples").joinpath(f"{name}.toml")
    return _work_out(read_matrix_file(Path(str(path))), name)


def _work_out(given: MatrixFile, name: str) -> WorkedExample:
    file = given.file
    _check_keys(given)
    before: list[Part] = []
    x_LD = None
    norm = None
    if file.x is not None:
        x_LD = given.matrix("x", file.x)
        names = _names(given, "tokens", file.tokens, len(x_LD), "queries")
        x_LD = _add_positions(given, names, x_LD, before)
        norm = _read_norm(given, x_LD.shape[-1])
        source_LD = x_LD
        # Pre-norm: attention reads the normed rows, while the residual connection keeps x as it is.
        if norm is not None and norm.is_before:
            steps, source_LD = norm_steps(names, x_LD, norm)
            before.append(given.part("norm", "Norm", _PRE_NORM_NOTE, steps))
    if isinstance(file.heads, list):
        before.append(_input_part(given, names, source_LD))
        attended = _attend_apart(given, names, source_LD)
    elif file.x is not None:
        attended = _attend(given, _project(given, names, source_LD, before), file.heads)
    else:
        roles = tuple(given.matrix(role, getattr(file, role)) for role in _ROLES)
        attended = _attend(given, _Roles(roles, dict.fromkeys(_ROLES, "as given"), {}), file.heads)
    attentions = [part.attention for part in attended if part.attention is not None]
    after = _add_layers(given, x_LD, norm, attentions)
    # Words for a part that is never made would be lost silently: only now is known what is made.
    for name in sorted(file.parts.model_fields_set - given.made):
        fault = f"[parts.{name}] must be a part of this example, but is not (@). "
        given.check(False, f"parts.{name}", fault + suggestion(name, given.made))
    note = file.note or _describe(attentions)
    return WorkedExample(name, file.title, file.text, note, (*before, *attended, *after))


def _check_keys(given: MatrixFile) -> None:
    """Check that the keys of a file go together."""
    file = given.file
    names = given.file.model_fields_set
    has_own_heads = isinstance(file.heads, list)
    if file.x is not None:
        # x makes the roles itself, and given heads bring their own weights.
        clashes = {**dict.fromkeys(_ROLES, "x"), **dict.fromkeys(_WEIGHTS, "[[heads]]")}
        for name, other in clashes.items():
            # Weights clash only with [[heads]], the roles always with x.
            is_clear = name not in names or (other != "x" and not has_own_heads)
            given.check(is_clear, name, f"{other} cannot be combined with {name} (@). Drop one.")
        is_clear = has_own_heads or file.features is None
        fault = "features must come with [[heads]], which are missing (@). Leave it out."
        given.check(is_clear, "features", fault)
        given.check(bool(file.heads), "heads", "heads must not be empty, but is (@). Drop it.")
        return
    needy = {*_WEIGHTS, "positions", "features"} & names
    needy |= {"norm"} if file.norm.place != "none" else set()
    needy |= {"heads"} if has_own_heads else set()
    for name in sorted(needy):
        advice = f"Give x, or leave {name} out."
        given.check(False, name, f"{name} must come with x, but x is missing (@). {advice}")
    # Without x, all three roles must be there.
    missing = [name for name in _ROLES if name not in names]
    if missing:
        start = "Give x, or query, key and value" if len(missing) == 3 else f"Add {missing[0]}"
        verb = "is" if len(missing) == 1 else "are"
        raise DataError(
            f"There must be x, or query, key and value, but {' and '.join(missing)} {verb} missing "
            f"({given.path}). {start}."
        )


def _names(
    given: MatrixFile, key: str, names: list[str] | None, count: int, of: str, letter: str = "#"
) -> tuple[str, ...]:
    """Return the given names of rows or columns, or number them."""
    if names is None:
        return tuple(f"{letter}{index}" for index in range(count))
    given.check(
        len(names) == count,
        key,
        f"There must be one name for each of the {count} {of}, but {key} has {len(names)} (@). "
        "Give as many.",
    )
    return tuple(names)


def _add_positions(
    given: MatrixFile, names: tuple[str, ...], x_LD: Tensor, parts: list[Part]
) -> Tensor:
    """Add positions to x if the file asks for them, and append the part that shows it."""
    positions = given.file.positions
    if positions == "none":
        return x_LD
    if isinstance(positions, list):
        positions_LD = given.matrix("positions", positions)
        formula = "as given"
        given.check(
            positions_LD.shape == x_LD.shape,
            "positions",
            f"positions must have as many rows and columns as x, {len(x_LD)} × "
            f"{x_LD.shape[-1]}, but has {len(positions_LD)} × {positions_LD.shape[-1]} "
            "(@). Give one row for each token.",
        )
    else:
        formula = "sin(i ÷ 10000^(2j÷d)), cos(i ÷ 10000^(2j÷d))"
        given.check(
            x_LD.shape[-1] % 2 == 0,
            "positions",
            "Sinusoidal positions must have an even width, for pairs of a sine and a cosine, "
            f"but x has {x_LD.shape[-1]} columns (@). Add one, or write the positions as rows.",
        )
        # In the precision of x, so that sums by hand agree in every digit that is shown.
        positions_LD = sinusoidal_positions(*x_LD.shape, dtype=x_LD.dtype)
    total_LD = x_LD + positions_LD
    sums = write_added(names, x_LD, positions_LD, "x")
    steps = (
        make_given("x", named_matrix(names, x_LD, "x"), "as given"),
        make_step("positions", formula, named_matrix(names, positions_LD, "p")),
        make_step("x", "x + positions", named_matrix(names, total_LD, "x"), arithmetic=sums),
    )
    parts.append(given.part("positions", "Positions", _POSITIONS_NOTE, steps))
    return total_LD


def _read_norm(given: MatrixFile, width: int) -> NormByHand | None:
    norm = given.file.norm
    if norm.place == "none":
        return None
    gain, bias = (
        given.vector(f"norm.{name}", getattr(norm, name), width, "x") for name in ("gain", "bias")
    )
    return NormByHand(norm.epsilon, gain, bias, norm.place == "pre")


def _project(given: MatrixFile, names: tuple[str, ...], x_LD: Tensor, parts: list[Part]) -> _Roles:
    """Multiply x by each given matrix; without one x stays as it is."""
    file = given.file
    roles = []
    steps = []
    formulas = {"query = key = value": "x", "key = value": "x"}
    products: dict[str, Product] = {}
    for name, role in zip(_WEIGHTS, _ROLES, strict=True):
        rows = getattr(file, name)
        # No matrix is not an identity matrix: the role stays the same object as x, which is then
        # shown once for all roles that share it.
        if rows is None:
            roles.append(x_LD)
            formulas[role] = "x"
            continue
        weight = given.matrix(name, rows, x_LD.shape[-1], "columns of x")
        roles.append(x_LD @ weight)
        formulas[role] = f"x · {name}"
        products[role] = Product(names, x_LD, weight)
        steps.append(make_weight_step(name, weight, file.origin))
    if steps:
        # Positions or a norm may have changed x on the way here.
        is_as_given = torch.equal(x_LD, given.matrix("x", file.x))
        formula = "one row per token" if is_as_given else "one row per token, as computed above"
        first = make_given("x", named_matrix(names, x_LD, "x"), formula)
        parts.append(given.part("given", "What is given", _GIVEN_NOTE, (first, *steps)))
    return _Roles(tuple(roles), formulas, products)


def _input_part(given: MatrixFile, names: tuple[str, ...], x_LD: Tensor) -> Part:
    file = given.file
    width = x_LD.shape[-1]
    columns = _names(given, "features", file.features, width, "columns of x", "x")
    step = make_given("x", NamedMatrix(names, columns, x_LD), file.origin)
    return given.part("input", "The input", _INPUT_NOTE, (step,))


def _attend_apart(given: MatrixFile, names: tuple[str, ...], x_LD: Tensor) -> list[Part]:
    """Let each head attend with the matrices that it has in the file."""
    heads = given.file.heads
    assert isinstance(heads, list)
    parts = []
    for index, head in enumerate(heads):
        key = f"heads[{index}]"
        weights = [
            given.matrix(f"{key}.{name}", getattr(head, name), x_LD.shape[-1], "columns of x")
            for name in _WEIGHTS
        ]
        values = tuple(x_LD @ weight for weight in weights)
        end = str(index + 1).translate(_SUBSCRIPTS)
        letters = [f"W^{role[0]}{end}" for role in _ROLES]
        products = zip(_ROLES, (Product(names, x_LD, weight) for weight in weights), strict=True)
        formulas = {role: f"x · {letter}" for role, letter in zip(_ROLES, letters, strict=True)}
        # One head of the full width: its block of columns is the whole of its own matrices.
        (attended,) = _attend(given, _Roles(values, formulas, dict(products)), 1, f"{key}.w_key")
        own = [
            make_weight_step(letter, weight, given.file.origin)
            for letter, weight in zip(letters, weights, strict=True)
        ]
        title = head.title or f"Head {index + 1} of {len(heads)}"
        note = head.note or _OWN_HEAD_NOTE
        steps = (*own, *attended.steps)
        # The words of [parts.attention] are for all heads together; here each has its own.
        parts.append(replace(attended, title=title, note=note, steps=steps, corrections=()))
    return parts


def _attend(given: MatrixFile, roles: _Roles, num_heads: int, key: str = "") -> list[Part]:
    """Let each head attend with its block of columns; a single one has all of them."""
    file = given.file
    query_LK, key_MK, value_ME = roles.values
    _check_widths(given, roles, num_heads, key)
    num_queries = len(query_LK)
    num_keys = len(key_MK)
    names = _names(given, "tokens", file.tokens, num_queries, "queries")
    key_names = names
    # Self-attention has one list of words for both sides, until the file says otherwise.
    if file.key_tokens is not None or num_keys != num_queries:
        key_names = _names(given, "key_tokens", file.key_tokens, num_keys, "keys")
    mask_LM = _read_mask(given, num_queries, num_keys)
    # The same matrix stays the same object, so that it is shown once.
    blocks: dict[int, tuple[Tensor, ...]] = {id(role): (role,) for role in roles.values}
    if num_heads > 1:
        blocks = {id(role): torch.chunk(role, num_heads, dim=-1) for role in roles.values}
    parts = []
    for head in range(num_heads):
        attention = attend_by_hand(
            # By identity, since equal matrices need not be the same role.
            *(blocks[id(role)][head] for role in (query_LK, key_MK, value_ME)),
            query_names=names,
            key_names=key_names,
            mask_LM=mask_LM,
            divisor=file.scale,
        )
        own = {
            name: replace(p, weight_DK=torch.chunk(p.weight_DK, num_heads, dim=-1)[head])
            for name, p in roles.products.items()
        }
        steps = stage_steps(attention, formulas=roles.formulas, products=own)
        title = "Attention, stage by stage"
        note = _ATTENTION_NOTE
        if num_heads > 1:
            title = f"Head {head + 1} of {num_heads}"
            note = _HEAD_NOTE
        parts.append(given.part("attention", title, note, steps, attention))
    return parts


def _check_widths(given: MatrixFile, roles: _Roles, num_heads: int, key: str) -> None:
    query_LK, key_MK, value_ME = roles.values
    widths = {"queries and keys": key_MK.shape[-1], "values": value_ME.shape[-1]}
    names = given.file.model_fields_set
    given.check(
        query_LK.shape[-1] == key_MK.shape[-1],
        key or next((n for n in ("w_key", "key", "w_query") if n in names), "x"),
        "Queries and keys must have the same width (d_q = d_k), but have "
        f"{query_LK.shape[-1]} and {key_MK.shape[-1]} columns (@). Make them equal.",
    )
    given.check(
        len(key_MK) == len(value_ME),
        "value",
        f"There must be one value for each key, but there are {len(value_ME)} values and "
        f"{len(key_MK)} keys (@). Give as many of both.",
    )
    given.check(
        len(query_LK) * len(key_MK) <= MAX_NUMBERS,
        "x" if given.file.x is not None else "key",
        f"There must be at most {MAX_NUMBERS} scores to be followed by hand, but there are "
        f"{len(query_LK)} × {len(key_MK)} (@). For more use pellucid.attend in Python.",
    )
    for name, width in widths.items():
        given.check(
            width % num_heads == 0,
            "heads",
            f"heads must divide the width of {name} evenly, but {width} columns do not split "
            f"into {num_heads} (@). Change one of them.",
        )


def _read_mask(given: MatrixFile, queries: int, keys: int) -> Tensor | None:
    mask = given.file.mask
    if mask is None:
        return None
    if mask == "causal":
        given.check(
            queries <= keys,
            "mask",
            "A causal mask must have as many keys as queries or more, but there are "
            f"{keys} keys and {queries} queries (@). Leave it out.",
        )
        return causal_mask(queries, keys)[0, 0]
    widths = [len(row) for row in mask]
    given.check(
        widths == [keys] * queries,
        "mask",
        f"mask must have {queries} rows of {keys} true or false, but has rows of {widths} (@). "
        "Give a row for each query.",
    )
    # true = may attend, as everywhere.
    return torch.tensor(mask)


def _add_layers(
    given: MatrixFile,
    x_LD: Tensor | None,
    norm: NormByHand | None,
    attentions: list[AttentionByHand],
) -> list[Part]:
    """Work out everything after the attention: W⁰, add and norm, feed-forward network."""
    file = given.file
    names = attentions[0].query_names
    output_XD = None
    if file.w_output is not None:
        joined = sum(a.value_ME.shape[-1] for a in attentions if a.value_ME is not None)
        of = "columns of the joined heads"
        output_XD = given.matrix("w_output", file.w_output, joined, of)
    parts: list[Part] = []
    name = "W⁰" if isinstance(file.heads, list) else "w_output"
    steps, state_LD = joined_steps(names, attentions, output_XD, name)
    if steps:
        parts.append(given.part("joined", "The heads joined", _JOINED_NOTE, steps))
    if norm is not None and x_LD is not None:
        _check_sum(given, "norm", "x", x_LD, "the output", state_LD)
        # The sum takes x as it came in, whether or not a norm stood before the attention.
        state_LD = _close(
            given, "after_attention", names, x_LD, state_LD, norm, "x + output", parts
        )
    if file.feed_forward is None:
        return parts
    before: tuple[Step, ...] = ()
    entering_LD = state_LD
    network = _read_network(given, state_LD.shape[-1])
    if norm is not None and norm.is_before:
        # Pre-norm again: only what enters the network is normed.
        before, entering_LD = norm_steps(names, state_LD, norm)
    inside, change_LD = feed_forward_steps(names, entering_LD, network)
    title = "Feed-forward network"
    parts.append(given.part("feed_forward", title, _NETWORK_NOTE, (*before, *inside)))
    if norm is not None:
        _check_sum(given, "feed_forward.outer", "its input", state_LD, "its output", change_LD)
        formula = "input + feed-forward"
        _close(given, "after_feed_forward", names, state_LD, change_LD, norm, formula, parts)
    return parts


def _check_sum(
    given: MatrixFile, key: str, first: str, first_LD: Tensor, second: str, second_LD: Tensor
) -> None:
    widths = first_LD.shape[-1], second_LD.shape[-1]
    # W⁰ is the matrix whose width can be changed freely.
    wanted = "w_output" if key == "norm" else key
    given.check(
        widths[0] == widths[1],
        key,
        f"With norm, {first} and {second} are added, so both must have the same width, but they "
        f"have {widths[0]} and {widths[1]} columns (@). Give {wanted} with {widths[0]} columns.",
    )


def _read_network(given: MatrixFile, width: int) -> FeedForwardByHand:
    network = given.file.feed_forward
    assert network is not None
    key = "feed_forward"
    inner = given.matrix(f"{key}.inner", network.inner, width, "columns that come in")
    # The inner width is free; the outer matrix must meet it.
    num_inner = inner.shape[-1]
    outer = given.matrix(f"{key}.outer", network.outer, num_inner, f"columns of {key}.inner")
    inner_bias = given.vector(f"{key}.inner_bias", network.inner_bias, num_inner, f"{key}.inner")
    outer_bias = given.vector(
        f"{key}.outer_bias", network.outer_bias, outer.shape[-1], f"{key}.outer"
    )
    return FeedForwardByHand(inner, outer, inner_bias, outer_bias)


def _close(
    given: MatrixFile,
    key: str,
    names: tuple[str, ...],
    x_LD: Tensor,
    change_LD: Tensor,
    norm: NormByHand,
    formula: str,
    parts: list[Part],
) -> Tensor:
    """Append the residual connection, for post-norm with the layer norm; return the result."""
    added, total_LD = add_step(names, x_LD, change_LD, formula)
    # The norm stood before the sub-layer, so only the sum is left to show.
    if norm.is_before:
        parts.append(given.part(key, "Residual connection", _ADDED_NOTE, (added,)))
        return total_LD
    normed, normed_LD = norm_steps(names, total_LD, norm)
    parts.append(given.part(key, "Add and norm", _NORM_NOTE, (added, *normed)))
    return normed_LD


def _describe(attentions: list[AttentionByHand]) -> str:
    a = attentions[0]
    num_heads = len(attentions)
    divided = a.divisor_words or write_number(a.divisor)
    masked = "without a mask" if a.mask_LM is None else "with a mask"
    return (
        f"Queries: {len(a.query_names)}; keys: {len(a.key_names)}; scores divided by {divided}; "
        f"{masked}{f'; heads: {num_heads}' if num_heads > 1 else ''}."
    )


_POSITIONS_NOTE = "Attention does not see order, so each place adds its own vector to the word's."
_PRE_NORM_NOTE = (
    "Pre-norm: each row is shifted to mean 0 and stretched to variance 1 before attention."
)
_INPUT_NOTE = "One row a word."
_GIVEN_NOTE = "Each row of x times a matrix is that token's query, key or value."
_OWN_HEAD_NOTE = "No other head has these matrices for queries, keys and values."
_HEAD_NOTE = "Each head has its own block of columns of the queries, the keys and the values."
_ATTENTION_NOTE = (
    "Every query meets every key; the scores become shares of 1, and the values are mixed by them."
)
_JOINED_NOTE = "The contexts of all heads stand side by side and are mixed by one matrix."
_ADDED_NOTE = "The input is added to what was made of it, so nothing is lost."
_NORM_NOTE = (
    f"{_ADDED_NOTE} Then each row is shifted to mean 0 and stretched to variance 1, by itself."
)
_NETWORK_NOTE = "Each row goes through the same two matrices by itself."
