"""The package's own kernels, each compared with the same in PyTorch."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from built_kernels import build_wide_kernels, kernels_of_machine
from torch import Tensor

from pellucid.machine.randomness import generator_state, random_bytes
from pellucid.native import loading
from pellucid.native.kernels import kernels as kernels_module
from pellucid.native.kernels.calls import AttentionCall, DropoutBytes, EmbeddingCall, mask_of
from pellucid.native.kernels.kernels import KernelNorm, Kernels, find_kernels, library_name
from pellucid.native.libraries import hash_of_sources
from pellucid.native.loading import load_library
from pellucid.training.weights.optimizer import COEFFICIENTS, orthogonalize

PRECISIONS = ("float32", "bfloat16")


@pytest.fixture(scope="module", params=[*PRECISIONS, *(f"wide {one}" for one in PRECISIONS)])
def kernels(request: Any, tmp_path_factory: Any) -> Kernels:
    is_wide, precision = request.param.startswith("wide"), request.param.split()[-1]
    if is_wide:
        return build_wide_kernels(Path(tmp_path_factory.mktemp("wide")), precision)
    return kernels_of_machine(precision)


def numbers(*sizes: int, seed: int = 1) -> Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed))


def rows(kernels: Kernels, *sizes: int, seed: int = 1) -> Tensor:
    return numbers(*sizes, seed=seed).to(kernels.dtype)


def assert_close(kernels: Kernels, ours: Tensor, theirs: Tensor, *, loose: float = 1.0) -> None:
    """Check that the largest difference is one rounding of float32 or bfloat16."""
    bound = loose * (2e-6 if kernels.dtype == torch.float32 else 1 / 128)
    difference, largest = (ours - theirs).abs().max(), theirs.abs().max()
    assert difference <= bound * largest, f"{difference:.2e} where the largest is {largest:.2e}"


def drawn(count: int, seed: int = 3) -> DropoutBytes:
    noise = np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)
    return DropoutBytes(torch.from_numpy(noise), 64, 256 / 192)


def multiplier(dropped: DropoutBytes, *sizes: int) -> Tensor:
    kept = (dropped.random_bytes >= dropped.threshold).view(sizes)
    return kept.double() * dropped.factor


@pytest.mark.sample(24)
@pytest.mark.parametrize("num_rows", [1, 2, 3, 5, 11, 47, 48, 101])
@pytest.mark.parametrize(("inner", "width"), [(16, 48), (112, 16), (528, 80)])
def test_linear_of_any_number_of_rows_is_the_product(
    kernels: Kernels, num_rows: int, inner: int, width: int
) -> None:
    x_JD, weight_FD, bias_F = rows(kernels, num_rows, inner), numbers(width, inner), numbers(width)
    packed = kernels.pack(weight_FD, transposed=True)
    found_JF = kernels.linear(x_JD, packed, width, bias_F=bias_F)
    weight = weight_FD.to(kernels.dtype).double()
    assert_close(kernels, found_JF, F.linear(x_JD.double(), weight, bias_F.double()))
    back_JD = kernels.linear(found_JF, kernels.pack(weight_FD, transposed=False), inner)
    assert_close(kernels, back_JD, found_JF.double() @ weight)


def test_what_follows_a_linear_layer_follows_in_its_order(kernels: Kernels) -> None:
    x_JD, weight_FD, bias_F = rows(kernels, 53, 48), numbers(80, 48), numbers(80)
    gate_JF, add_JF = rows(kernels, 53, 80, seed=2).relu(), rows(kernels, 53, 80, seed=4)
    dropped = drawn(53 * 80)
    found_JF = kernels.linear(
        x_JD,
        kernels.pack(weight_FD, transposed=True),
        80,
        bias_F=bias_F,
        has_relu=True,
        dropout=dropped,
        gate_JF=gate_JF,
        gate_factor=1.5,
        add_JF=add_JF,
    )
    expected_JF = F.linear(x_JD.double(), weight_FD.to(kernels.dtype).double(), bias_F.double())
    expected_JF = expected_JF.relu() * multiplier(dropped, 53, 80)
    expected_JF = expected_JF * 1.5 * (gate_JF != 0) + add_JF.double()
    assert_close(kernels, found_JF, expected_JF)


def test_rows_may_be_columns_of_longer_rows(kernels: Kernels) -> None:
    whole_JX, weight_FD = rows(kernels, 29, 96), numbers(32, 48)
    packed = kernels.pack(weight_FD, transposed=True)
    found_JF = kernels.linear(whole_JX[:, 32:80], packed, 32)
    assert torch.equal(found_JF, kernels.linear(whole_JX[:, 32:80].contiguous(), packed, 32))


@pytest.mark.parametrize("num_rows", [1, 127, 129, 300])
def test_norm_and_its_gradients_are_those_of_pytorch(kernels: Kernels, num_rows: int) -> None:
    x_JD, grad_JD, add_JD = (rows(kernels, num_rows, 48, seed=seed) for seed in (1, 2, 3))
    gain, shift = numbers(48, seed=4), numbers(48, seed=5)
    norm = KernelNorm(gain, shift, 1e-5, kernels.empty(num_rows, 48), torch.empty(num_rows))
    x, g, b = (one.double().requires_grad_() for one in (x_JD, gain, shift))
    expected_JD = F.layer_norm(x, (48,), g, b, 1e-5)
    assert_close(kernels, kernels.norm(x_JD, norm), expected_JD.detach())
    expected_JD.backward(grad_JD.double())
    assert x.grad is not None
    assert g.grad is not None
    assert b.grad is not None
    dropped, grads = drawn(num_rows * 48), (torch.ones(48), torch.ones(48))
    entering, through = kernels.norm_backward(grad_JD, norm, grads, add_JD=add_JD, dropout=dropped)
    assert_close(kernels, entering, x.grad + add_JD.double(), loose=2)
    assert_close(kernels, through, x.grad * multiplier(dropped, num_rows, 48), loose=2)
    assert_close(kernels, grads[0], g.grad + 1, loose=2)
    assert_close(kernels, grads[1], b.grad + 1, loose=2)


@pytest.mark.parametrize("num_rows", [1, 2, 255, 513, 1030])
@pytest.mark.parametrize(("inner", "width", "parts"), [(48, 80, 1), (16, 48, 3), (112, 32, 2)])
def test_gradients_of_weights_grow_by_the_outer_product(
    kernels: Kernels, num_rows: int, inner: int, width: int, parts: int
) -> None:
    x_JD, grad_JF = rows(kernels, num_rows, inner), rows(kernels, num_rows, width * parts, seed=2)
    weights = [torch.ones(width, inner) for _ in range(parts)]
    biases = [torch.ones(width) for _ in range(parts)]
    kernels.weight_gradient(x_JD, grad_JF, weights, biases)
    expected = grad_JF.double().T @ x_JD.double() + 1
    assert_close(kernels, torch.cat(weights), expected)
    assert_close(kernels, torch.cat(biases), grad_JF.double().sum(dim=0) + 1)


def test_gradients_that_nobody_wants_are_left_out(kernels: Kernels) -> None:
    x_JD, grad_JF = rows(kernels, 31, 16), rows(kernels, 31, 96, seed=2)
    all_three = [torch.zeros(32, 16) for _ in range(3)]
    kernels.weight_gradient(x_JD, grad_JF, all_three, [None, None, None])
    bias, none = torch.zeros(32), [None, None, None]
    kernels.weight_gradient(x_JD, grad_JF, none, [None, bias, None])
    assert_close(kernels, bias, grad_JF[:, 32:64].double().sum(dim=0))
    kernels.weight_gradient(x_JD, grad_JF, none, none)
    last = torch.zeros(32, 16)
    kernels.weight_gradient(x_JD, grad_JF, [None, None, last], [None, None, None])
    assert torch.equal(last, all_three[2])


@pytest.mark.sample(24)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("key_width", "value_width"), [(8, 16), (32, 32), (24, 40)])
@pytest.mark.parametrize("longest", [1, 7, 37])
def test_attention_of_each_sentence_is_that_of_pytorch(
    kernels: Kernels, is_causal: bool, key_width: int, value_width: int, longest: int
) -> None:
    heads, sentences = 2, 5
    draw = torch.Generator().manual_seed(longest)
    starts = []
    for _ in range(2):
        lengths = torch.randint(1, longest + 1, (sentences,), generator=draw)
        starts.append(F.pad(torch.cumsum(lengths, 0), (1, 0)))
    start, memory_start = (starts[0], starts[0]) if is_causal else starts
    query = rows(kernels, int(start[-1]), heads * key_width, seed=1)
    key = rows(kernels, int(memory_start[-1]), heads * key_width, seed=2)
    value = rows(kernels, int(memory_start[-1]), heads * value_width, seed=3)
    grad = rows(kernels, int(start[-1]), heads * value_width, seed=4)
    context, grads = torch.empty_like(grad), [torch.empty_like(one) for one in (query, key, value)]
    call = AttentionCall(
        sentences=sentences,
        heads=heads,
        key_width=key_width,
        value_width=value_width,
        start=start.data_ptr(),
        key_start=memory_start.data_ptr(),
        query_stride=query.stride(0),
        key_stride=key.stride(0),
        value_stride=value.stride(0),
        query=query.data_ptr(),
        key=key.data_ptr(),
        value=value.data_ptr(),
        scale=key_width**-0.5,
        is_causal=is_causal,
        context_stride=context.stride(0),
        context=context.data_ptr(),
    )
    kernels.attend(call)
    call.grad_context = grad.data_ptr()
    call.grad_query, call.grad_key, call.grad_value = (one.data_ptr() for one in grads)
    kernels.attend(call)
    parts = [one.double().requires_grad_() for one in (query, key, value)]
    contexts = []
    for sentence in range(sentences):
        own = slice(int(start[sentence]), int(start[sentence + 1]))
        seen = slice(int(memory_start[sentence]), int(memory_start[sentence + 1]))
        q, k, v = (
            part[where].view(len(part[where]), heads, -1).transpose(0, 1)
            for part, where in zip(parts, (own, seen, seen), strict=True)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        contexts.append(attended.transpose(0, 1).flatten(1))
    expected = torch.cat(contexts)
    expected.backward(grad.double())
    assert_close(kernels, context, expected.detach())
    for ours, part in zip(grads, parts, strict=True):
        assert part.grad is not None
        assert_close(kernels, ours, part.grad, loose=2)


def test_what_all_keys_have_in_common_costs_no_digits(kernels: Kernels) -> None:
    # It shifts all scores of a query equally: scores in bfloat16 would lose their differences.
    start = torch.tensor([0, 11])
    query, key, value = (rows(kernels, 11, 16, seed=seed) for seed in (1, 2, 3))
    context, far = torch.empty_like(value), (key + 64).to(kernels.dtype)
    call = AttentionCall(
        sentences=1,
        heads=1,
        key_width=16,
        value_width=16,
        start=start.data_ptr(),
        key_start=start.data_ptr(),
        query_stride=16,
        key_stride=16,
        value_stride=16,
        query=query.data_ptr(),
        key=far.data_ptr(),
        value=value.data_ptr(),
        scale=0.25,
        context_stride=16,
        context=context.data_ptr(),
    )
    kernels.attend(call)
    expected = F.scaled_dot_product_attention(
        query.double()[None], far.double()[None], value.double()[None]
    )[0]
    assert_close(kernels, context, expected, loose=20 if kernels.dtype == torch.float32 else 1)


def cross_entropy(
    kernels: Kernels,
    states_PD: Tensor,
    table_VD: Tensor,
    target_P: Tensor,
    smoothing: float,
    r_drop: float = 0.0,
) -> tuple[Tensor, ...]:
    packed = (
        kernels.pack(table_VD, transposed=True),
        kernels.pack(
            table_VD, transposed=False, padded_depth=kernels.padded_vocabulary(len(table_VD))
        ),
    )
    grad_table_VD = torch.ones_like(table_VD)
    found = kernels.cross_entropy(
        states_PD,
        table_VD,
        packed,
        table_VD.sum(dim=0),
        target_P,
        smoothing=smoothing,
        factor=0.5,
        grad_table_VD=grad_table_VD,
        r_drop=r_drop,
    )
    return *found, grad_table_VD


def assert_loss_is_that_of_pytorch(
    kernels: Kernels, states_PD: Tensor, table_VD: Tensor, smoothing: float
) -> None:
    vocabulary = len(table_VD)
    target_P = torch.randint(
        vocabulary, (len(states_PD),), generator=torch.Generator().manual_seed(7)
    )
    plain_P, grad_PD, grad_VD = cross_entropy(kernels, states_PD, table_VD, target_P, smoothing)
    x, w = states_PD.double().requires_grad_(), table_VD.to(kernels.dtype).double().requires_grad_()
    logits_PV = x @ w.T
    loss = F.cross_entropy(logits_PV, target_P, reduction="sum", label_smoothing=smoothing)
    (0.5 * loss).backward()
    assert x.grad is not None
    assert w.grad is not None
    logs_PV = logits_PV.detach().log_softmax(dim=1)
    assert_close(kernels, plain_P, -logs_PV.gather(1, target_P[:, None])[:, 0])
    assert_close(kernels, grad_PD, x.grad, loose=12)  # A sum of as many terms as there are tokens.
    assert_close(kernels, grad_VD - 1, w.grad, loose=3)


@pytest.mark.sample(14)
@pytest.mark.parametrize("vocabulary", [37, 480, 481, 4003, 32_003])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradients_are_those_of_pytorch(
    kernels: Kernels, vocabulary: int, smoothing: float
) -> None:
    states_PD, table_VD = rows(kernels, 131, 48), numbers(vocabulary, 48, seed=2) / 5
    assert_loss_is_that_of_pytorch(kernels, states_PD, table_VD, smoothing)


def assert_r_drop_is_that_of_pytorch(
    kernels: Kernels, num_tokens: int, table_VD: Tensor, apart: float
) -> None:
    vocabulary, width = table_VD.shape
    states_PD = rows(kernels, 2 * num_tokens, width)
    other_PD = apart * rows(kernels, num_tokens, width, seed=5)
    states_PD[1::2] = (states_PD[::2] + other_PD).to(kernels.dtype)
    draw = torch.Generator().manual_seed(7)
    target_P = torch.randint(vocabulary, (num_tokens,), generator=draw).repeat_interleave(2)
    plain_P, grad_PD, grad_VD = cross_entropy(kernels, states_PD, table_VD, target_P, 0.1, 3.0)
    x, w = states_PD.double().requires_grad_(), table_VD.to(kernels.dtype).double().requires_grad_()
    logs_PV = (x @ w.T).log_softmax(dim=1)
    there = F.kl_div(logs_PV[1::2], logs_PV[::2], reduction="sum", log_target=True)
    back = F.kl_div(logs_PV[::2], logs_PV[1::2], reduction="sum", log_target=True)
    loss = F.cross_entropy(x @ w.T, target_P, reduction="sum", label_smoothing=0.1)
    (0.5 * (loss + 3.0 / 2 * (there + back))).backward()
    assert x.grad is not None
    assert w.grad is not None
    assert_close(kernels, plain_P, -logs_PV.detach().gather(1, target_P[:, None])[:, 0])
    assert_close(kernels, grad_PD, x.grad, loose=12)
    assert_close(kernels, grad_VD - 1, w.grad, loose=3)


@pytest.mark.sample(8)
@pytest.mark.parametrize("vocabulary", [37, 481, 4003])
@pytest.mark.parametrize("spread", [0.2, 3.0])
def test_r_drop_pulls_two_readings_of_a_token_together(
    kernels: Kernels, vocabulary: int, spread: float
) -> None:
    table_VD = spread * numbers(vocabulary, 48, seed=2)
    assert_r_drop_is_that_of_pytorch(kernels, 67, table_VD, 0.25)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_r_drop_of_more_rows_than_a_chunk_has(precision: Any) -> None:
    kernels = kernels_of_machine(precision)
    vocabulary = 61_001
    num_tokens = kernels.chunk_rows(vocabulary) + 3
    table_VD = numbers(vocabulary, 16, seed=2) / 5
    assert_r_drop_is_that_of_pytorch(kernels, num_tokens, table_VD, 0.25)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_loss_of_more_rows_than_a_chunk_has(precision: Any) -> None:
    kernels = kernels_of_machine(precision)
    vocabulary = 61_001
    num_rows = 2 * kernels.chunk_rows(vocabulary) + 5
    states_PD, table_VD = rows(kernels, num_rows, 16), numbers(vocabulary, 16, seed=2) / 5
    assert_loss_is_that_of_pytorch(kernels, states_PD, table_VD, 0.1)


def test_loss_of_logits_far_above_the_true_one(kernels: Kernels) -> None:
    states_PD, table_VD = rows(kernels, 29, 48), 9 * numbers(1201, 48, seed=2)
    logits_PV = states_PD.double() @ table_VD.double().T
    assert logits_PV.max() - logits_PV.min() > 300, "e^ of their difference leaves float32"
    assert_loss_is_that_of_pytorch(kernels, states_PD, table_VD, 0.1)


def test_gradients_of_tokens_that_are_all_but_certain_keep_their_digits(kernels: Kernels) -> None:
    # p - 1 is small there: the difference of two nearly equal numbers.
    table_VD = numbers(37, 16, seed=2).to(kernels.dtype).float()
    target_P = torch.arange(37)
    states_PD = (3 * F.normalize(table_VD)).to(kernels.dtype)
    *_, grad_PD, _ = cross_entropy(kernels, states_PD, table_VD, target_P, 0.0)
    x = states_PD.double().requires_grad_()
    logits_PV = x @ table_VD.double().T
    F.cross_entropy(logits_PV, target_P, reduction="sum").mul(0.5).backward()
    assert x.grad is not None
    probability_P = logits_PV.detach().softmax(dim=1).diagonal()
    sure = (probability_P > 0.95) & (probability_P < 0.999)
    assert sure.sum() >= 3
    error = (grad_PD.double() - x.grad)[sure].norm(dim=1) / x.grad[sure].norm(dim=1)
    assert error.max() < (1e-3 if kernels.dtype == torch.float32 else 0.01)


def test_relu_keeps_what_is_no_number(kernels: Kernels) -> None:
    x_JD = rows(kernels, 5, 16)
    x_JD[2, 3] = float("nan")
    packed = kernels.pack(numbers(32, 16), transposed=True)
    found_JF = kernels.linear(x_JD, packed, 32, has_relu=True)
    assert found_JF.isnan().all(dim=1).tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_seen_in_the_loss(kernels: Kernels, bad: float) -> None:
    states_PD, table_VD = rows(kernels, 29, 16), numbers(1201, 16, seed=2)
    states_PD[11, 3] = bad
    plain_P, *_ = cross_entropy(kernels, states_PD, table_VD, torch.arange(29), 0.1)
    assert plain_P.isfinite().logical_not().nonzero()[:, 0].tolist() == [11]


def test_embedding_and_its_gradients_are_those_of_pytorch(kernels: Kernels) -> None:
    ids_J, positions_J = torch.tensor([3, 1, 3, 0, 3]), torch.tensor([0, 1, 2, 0, 1])
    table_VD, positions_LD, factors_J = numbers(5, 48), numbers(3, 48, seed=2), torch.rand(5)
    dropped, out_JD, grad_JD = drawn(5 * 48), kernels.empty(5, 48), rows(kernels, 5, 48, seed=3)
    grads = torch.zeros_like(table_VD), torch.zeros_like(positions_LD)
    call = EmbeddingCall(
        rows=5,
        width=48,
        id=ids_J.data_ptr(),
        position=positions_J.data_ptr(),
        table=table_VD.data_ptr(),
        scale=7.0,
        token_factor=factors_J.data_ptr(),
        positions=positions_LD.data_ptr(),
        out=out_JD.data_ptr(),
        grad_table=grads[0].data_ptr(),
        grad_positions=grads[1].data_ptr(),
        dropout=mask_of(dropped),
    )
    kernels.embed(call)
    table, positions = (one.double().requires_grad_() for one in (table_VD, positions_LD))
    x_JD = table[ids_J] * 7 * factors_J.double()[:, None] + positions[positions_J]
    expected_JD = x_JD * multiplier(dropped, 5, 48)
    assert_close(kernels, out_JD, expected_JD.detach())
    call.grad = grad_JD.data_ptr()
    kernels.embed(call)
    expected_JD.backward(grad_JD.double())
    assert table.grad is not None
    assert positions.grad is not None
    assert_close(kernels, grads[0], table.grad)
    assert_close(kernels, grads[1], positions.grad)


def test_random_bytes_are_those_of_the_generators(kernels: Kernels) -> None:
    counts = [1, 8, 1009]
    found = kernels.random_bytes([generator_state(7, "dropout", n) for n in counts], counts)
    for ours, count in zip(found, counts, strict=True):
        assert ours.numpy().tobytes() == random_bytes(count, 7, "dropout", count).tobytes()
    assert kernels.random_bytes([], []) == []


def test_results_do_not_depend_on_the_number_of_threads(kernels: Kernels) -> None:
    states_PD, table_VD = rows(kernels, 301, 48), numbers(4003, 48, seed=2) / 5
    target_P = torch.arange(301)
    before, found = torch.get_num_threads(), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        weight = torch.zeros(48, 48)
        kernels.weight_gradient(states_PD, states_PD, [weight], [None])
        packed = kernels.pack(table_VD[:80], transposed=True)
        others = kernels.linear(states_PD, packed, 80), kernels.sum_rows(table_VD)
        matrices = kernels.orthogonalize(table_VD[:96].view(2, 48, 48), COEFFICIENTS)
        loss = cross_entropy(kernels, states_PD, table_VD, target_P, 0.1)
        found.append((*loss, *others, weight, matrices))
    torch.set_num_threads(before)
    for others in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], others, strict=True))


@pytest.mark.parametrize("shape", [(5, 16, 48), (3, 128, 128), (2, 144, 112)])
def test_orthogonal_matrices_are_those_of_pytorch(
    kernels: Kernels, shape: tuple[int, int, int]
) -> None:
    matrices = numbers(*shape)
    before = matrices.clone()
    found = kernels.orthogonalize(matrices, COEFFICIENTS)
    assert torch.equal(matrices, before), "what is asked about stays"
    exact = orthogonalize(matrices.double(), torch.float64)
    bound = 5e-6 if kernels.dtype == torch.float32 else 0.03
    assert (found - exact).norm() < bound * exact.norm()


def test_a_library_of_other_sources_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels_of_machine("float32")
    assert isinstance(find_kernels("float32"), Kernels)
    monkeypatch.setattr(loading, "hash_of_sources", lambda folder: "changed")
    monkeypatch.setattr(kernels_module, "load_library", load_library.__wrapped__)
    found = find_kernels("float32")
    assert re.fullmatch(r"\w+.so was built from other sources: install the package again", found)


def test_a_library_that_is_not_there_or_none_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kernels_module, "load_library", load_library.__wrapped__)
    monkeypatch.setattr(kernels_module, "FOLDER", tmp_path)
    monkeypatch.setattr(kernels_module, "library_name", lambda precision: "some")
    assert find_kernels("float32") == (
        "some.so was not built with the package, which needs a C compiler"
    )
    (tmp_path / "some.so").write_text("no library")
    assert find_kernels("float32").startswith("some.so cannot be read: ")
    monkeypatch.setattr(kernels_module, "library_name", lambda precision: None)
    assert find_kernels("float32").startswith("this kind of processor")


def test_hash_of_sources_changes_with_a_letter_and_a_name(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int x;")
    found = [hash_of_sources(tmp_path)]
    (tmp_path / "a.c").write_text("int y;")
    found.append(hash_of_sources(tmp_path))
    (tmp_path / "a.c").rename(tmp_path / "b.c")
    found.append(hash_of_sources(tmp_path))
    assert len(set(found)) == 3


@pytest.mark.parametrize(
    ("capability", "has_bfloat16", "precision", "name"),
    [
        ("AVX2", False, "float32", "avx2_float32"),
        ("AVX2", False, "bfloat16", "avx2_bfloat16"),
        ("AVX512", False, "float32", "avx512_float32"),
        ("AVX512", False, "bfloat16", "avx2_bfloat16"),
        ("AVX512", True, "bfloat16", "avx512_bfloat16"),
        ("DEFAULT", False, "float32", None),
    ],
)
def test_library_is_one_that_the_processor_can_run(
    monkeypatch: pytest.MonkeyPatch,
    capability: str,
    has_bfloat16: bool,
    precision: Any,
    name: str | None,
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_bfloat16)
    assert library_name(precision) == name
