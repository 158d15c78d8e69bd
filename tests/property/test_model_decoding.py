"""Decoding does not depend on padding, on cutting into pieces, or on the order of rows."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.config import ModelConfig
from pellucid.model import Transformer, initialize

V = 37
MODELS = {}
for _norm in ("post", "pre"):
    _config = ModelConfig(
        d_model=6,
        d_ff=7,
        num_heads=2,
        d_key=5,
        d_value=3,
        num_encoder_layers=1,
        num_decoder_layers=2,
        norm=_norm,
        source_vocabulary_size=V,
        target_vocabulary_size=V,
    )
    MODELS[_norm] = Transformer(_config).double()
    initialize(MODELS[_norm], seed=3)

sentences = st.lists(st.integers(0, V - 1), min_size=1, max_size=11)
norms = st.sampled_from(sorted(MODELS))
few = settings(max_examples=30, deadline=None, derandomize=True)


@few
@given(norm=norms, sources=st.lists(sentences, min_size=1, max_size=4), target=sentences)
def test_batch_of_any_lengths_equals_each_sentence_alone(
    norm: str, sources: list[list[int]], target: list[int]
) -> None:
    model = MODELS[norm]
    longest = max(len(source) for source in sources)
    source_BS = torch.tensor([source + [V - 1] * (longest - len(source)) for source in sources])
    lengths = torch.tensor([len(source) for source in sources])
    source_mask_BS = torch.arange(longest) < lengths[:, None]
    target_BT = torch.tensor([target] * len(sources))
    with torch.no_grad():
        batch_BTV = model(source_BS, target_BT, source_mask_BS)
        for row, source in enumerate(sources):
            alone_1TV = model(torch.tensor([source]), torch.tensor([target]))
            assert float((batch_BTV[row] - alone_1TV[0]).abs().max()) <= 1e-10


@few
@given(norm=norms, source=sentences, sizes=st.lists(st.integers(1, 19), min_size=1, max_size=5))
def test_target_fed_in_any_pieces_equals_teacher_forcing(
    norm: str, source: list[int], sizes: list[int]
) -> None:
    model = MODELS[norm]
    numbers = torch.Generator().manual_seed(sum(sizes))
    target_1T = torch.randint(V, (1, sum(sizes)), generator=numbers)
    with torch.no_grad():
        memory_1SD = model.encode(torch.tensor([source]))
        cache = model.new_cache()
        pieces = [
            model.decode(piece, memory_1SD, cache=cache) for piece in target_1T.split(sizes, 1)
        ]
        whole_1TD = model.decode(target_1T, memory_1SD)
    assert float((torch.cat(pieces, 1) - whole_1TD).abs().max()) <= 1e-10


@few
@given(
    norm=norms,
    choices=st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=5),
)
def test_cache_reordered_any_number_of_times_follows_its_rows(
    norm: str, choices: list[list[int]]
) -> None:
    """Reorder rows as a beam does: at every step each of three rows continues one of them."""
    model = MODELS[norm]
    numbers = torch.Generator().manual_seed(len(choices))
    source_3S = torch.randint(V, (1, 5), generator=numbers).expand(3, 5)
    with torch.no_grad():
        memory_3SD = model.encode(source_3S)
        cache = model.new_cache()
        history_3T = torch.zeros(3, 0, dtype=torch.long)
        for rows in choices:
            newest_31 = torch.randint(V, (3, 1), generator=numbers)
            history_3T = torch.cat([history_3T, newest_31], 1)
            cached = model.decode(newest_31, memory_3SD, cache=cache)
            whole = model.decode(history_3T, memory_3SD)[:, -1:]
            assert float((cached - whole).abs().max()) <= 1e-10
            kept = torch.tensor(rows)
            cache.reorder(kept)
            history_3T = history_3T[kept]
