"""The recurrent model laid out for decoding: many sentences with many beams, one token a step.

It takes the model's own modules; only the rows are grouped by sentence, so that the hypotheses of
one share its keys and values.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.config import Precision
from pellucid.errors import InputError
from pellucid.model import RecurrentModel
from pellucid.model.cross_attention import AdditiveAttention, DotAttention
from pellucid.model.recurrent import DecoderLayer


@dataclass(frozen=True)
class _Memory:
    """Encoded sentences: the first state of each layer, and what the steps read of the source.

    Without attention ``key_BSK`` and ``value_BSD`` have no columns.
    """

    initial_NBD: Tensor
    vector_BD: Tensor
    key_BSK: Tensor
    value_BSD: Tensor
    length_B: Tensor


class RecurrentState:
    """The states of the sentences in some slots, each with ``width`` rows (its hypotheses).

    Row b · width + w is hypothesis w of slot b. All hypotheses share the source's keys and values.
    """

    def __init__(self, like: _Memory, sentences: int, width: int) -> None:
        self.sentences, self.width = sentences, width
        layers, _, d_model = like.initial_NBD.shape
        self.state_NBWD = like.initial_NBD.new_zeros(layers, sentences, width, d_model)
        self.vector_BD = like.vector_BD.new_zeros(sentences, d_model)
        self.key_BSK = like.key_BSK.new_zeros(sentences, 0, like.key_BSK.shape[2])
        self.value_BSD = like.value_BSD.new_zeros(sentences, 0, d_model)
        self._length_B = torch.ones(sentences, dtype=torch.long, device=like.length_B.device)
        self.hidden_BS: Tensor | None = None

    def insert(self, slots_X: Tensor, memory: _Memory, chosen_X: Tensor) -> None:
        """Start encoded sentences in some slots; sentences in them are replaced.

        Args:
            slots_X: the slots.
            memory: encoded sentences.
            chosen_X: the indices of those to start.
        """
        self.state_NBWD[:, slots_X] = memory.initial_NBD[:, chosen_X, None]
        self.vector_BD[slots_X] = memory.vector_BD[chosen_X]
        self._length_B[slots_X] = memory.length_B[chosen_X]
        columns = memory.key_BSK.shape[1]
        more = columns - self.key_BSK.shape[1]
        if more > 0:
            self.key_BSK = torch.nn.functional.pad(self.key_BSK, (0, 0, 0, more))
            self.value_BSD = torch.nn.functional.pad(self.value_BSD, (0, 0, 0, more))
        self.key_BSK[slots_X, :columns] = memory.key_BSK[chosen_X]
        self.value_BSD[slots_X, :columns] = memory.value_BSD[chosen_X]
        self._hide()

    def retire(self, slots_X: Tensor) -> None:
        """Mark slots as empty, so that they need no columns of the source."""
        self._length_B[slots_X] = 1
        self._hide()

    def keep(self, slots_B: Tensor) -> None:
        """Keep only these slots."""
        self.sentences = len(slots_B)
        self.state_NBWD = self.state_NBWD.index_select(1, slots_B)
        for name in ("vector_BD", "key_BSK", "value_BSD", "_length_B"):
            setattr(self, name, getattr(self, name).index_select(0, slots_B))
        self._hide()

    def reorder(self, parents_BW: Tensor) -> None:
        """Let every hypothesis continue another one of its sentence.

        Args:
            parents_BW: the column of that other one.
        """
        parents = parents_BW[None, :, :, None].expand_as(self.state_NBWD)
        self.state_NBWD = self.state_NBWD.gather(2, parents)

    def _hide(self) -> None:
        """Cut columns that no slot uses, and mark the padding of the others."""
        if self.key_BSK.shape[1]:
            longest = int(self._length_B.max())
            self.key_BSK, self.value_BSD = self.key_BSK[:, :longest], self.value_BSD[:, :longest]
        columns_S = torch.arange(self.key_BSK.shape[1], device=self._length_B.device)
        hidden_BS = columns_S >= self._length_B[:, None]
        self.hidden_BS = hidden_BS if bool(hidden_BS.any()) else None


class RecurrentEngine:
    """One recurrent model, ready to decode with; for a search it is what `Engine` is.

    Args:
        model: the weights.
        precision: must be float32.
        dtype: float64 is for results that must not depend on rounding.

    Raises:
        InputError: the precision is another one.
    """

    def __init__(
        self,
        model: RecurrentModel,
        precision: Precision = "float32",
        *,
        dtype: torch.dtype | None = None,
    ) -> None:
        if precision != "float32":
            raise InputError(
                f"The precision of a recurrent model must be float32, but is {precision}: its "
                "states would add up the rounding of every step. Leave the precision out."
            )
        self.precision = precision
        self.config = model.config
        self.device = model.output_weight.device
        is_same = dtype is None or dtype == model.output_weight.dtype
        self._model = model if is_same else copy.deepcopy(model).to(dtype)
        self._scale = (
            math.sqrt(model.config.d_model) if self.config.embedding_scale == "sqrt" else 1
        )

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens in each row of logits."""
        return self.config.target_vocabulary_size

    @torch.inference_mode()
    def encode(self, sources: Sequence[Sequence[int]]) -> _Memory:
        """Read source sentences, and prepare the first step.

        Args:
            sources: token ids of each sentence, at least one each.
        """
        length_B = torch.tensor([len(ids) for ids in sources], device=self.device)
        longest = int(length_B.max())
        padded = [[*ids, *[0] * (longest - len(ids))] for ids in sources]
        mask_BS = torch.arange(longest, device=self.device) < length_B[:, None]
        memory_BSD = self._model.encode(torch.tensor(padded, device=self.device), mask_BS)
        past = self._model.start(memory_BSD, mask_BS)
        assert past.vector is not None
        nothing_BSD = memory_BSD[:, :0]
        key_BSK, value_BSD = nothing_BSD, nothing_BSD
        if past.key_value is not None:
            key_BSK, value_BSD = (array_B1SX[:, 0] for array_B1SX in past.key_value)
        return _Memory(torch.stack(past.states), past.vector, key_BSK, value_BSD, length_B)

    def new_state(self, sentences: int, width: int) -> RecurrentState:
        """Make empty slots for some sentences, each with ``width`` hypotheses."""
        weight, layers = self._model.output_weight, self.config.num_decoder_layers
        has_keys = self.config.recurrent_attention == "additive"
        like = _Memory(
            weight.new_zeros(layers, 0, self.config.d_model),
            weight.new_zeros(0, self.config.d_model),
            weight.new_zeros(0, 0, self.config.d_key if has_keys else self.config.d_model),
            weight.new_zeros(0, 0, self.config.d_model),
            torch.zeros(0, dtype=torch.long, device=self.device),
        )
        return RecurrentState(like, sentences, width)

    @torch.inference_mode()
    def step(
        self, state: RecurrentState, newest_A: Tensor, is_growing_A: Tensor | None = None
    ) -> Tensor:
        """Read one more token of every row, and return the logits of the next.

        Args:
            state: the states after the tokens before; it is replaced by the one after this token.
            newest_A: a token of each row, sentence by sentence.
            is_growing_A: rows whose logits are needed; here all are computed.

        Returns:
            ``logits_AV``.
        """
        decoder = self._model.decoder
        x_AD = self._model.embedding_of("target").weight[newest_A] * self._scale
        first = decoder.layers[0]
        assert isinstance(first, DecoderLayer)
        context_AD = self._context(first, state)
        from_input = first.cell.input(x_AD) + first.context(context_AD)
        above_AD = from_input
        for index, layer in enumerate(decoder.layers):
            assert isinstance(layer, DecoderLayer)
            entering = from_input if index == 0 else layer.cell.input(above_AD)
            above_AD = layer.cell(entering, state.state_NBWD[index].flatten(0, 1)).state
            state.state_NBWD[index] = above_AD.view_as(state.state_NBWD[index])
        together_AX = torch.cat([x_AD, above_AD, context_AD], dim=-1)
        return self._model.logits(torch.tanh(decoder.readout(together_AX)))

    def _context(self, layer: DecoderLayer, state: RecurrentState) -> Tensor:
        """Compute the context of each row's step: ``context_AD``."""
        if not self.config.has_attention:
            return state.vector_BD.repeat_interleave(state.width, dim=0)
        attention = layer.cross_attention
        assert isinstance(attention, AdditiveAttention | DotAttention)
        query_B1WK = attention.project_query(state.state_NBWD[0])
        scores_B1WS = attention.score(query_B1WK, state.key_BSK[:, None])
        if state.hidden_BS is not None:
            scores_B1WS = scores_B1WS.masked_fill(state.hidden_BS[:, None, None], -math.inf)
        context_BWD = torch.softmax(scores_B1WS, dim=-1)[:, 0] @ state.value_BSD
        return context_BWD.flatten(0, 1)
