r"""Translation as it was in 2015: an encoder and a decoder of gated recurrent units.

The encoder reads word by word and keeps what it has read in a state. The decoder writes word by
word from its own state. Three forms differ in what passes between the two:

| `recurrent_attention` | the encoder reads | each decoder step gets |
| --- | --- | --- |
| ``none`` | left to right | one vector of fixed length, the encoder's last state |
| ``additive`` | in both directions | a weighted sum of all states; a network finds the weights |
| ``dot`` | in both directions | the same; dot products find the weights |

Source:
    ``none``: Cho et al. 2014, "Learning Phrase Representations using RNN Encoder-Decoder for
    Statistical Machine Translation"; Sutskever et al. 2014, "Sequence to Sequence Learning with
    Neural Networks". ``additive``: Bahdanau et al. 2015, "Neural Machine Translation by Jointly
    Learning to Align and Translate", appendix A. ``dot``: Luong et al. 2015, "Effective Approaches
    to Attention-based Neural Machine Translation", section 3.1.

Differs:
    One decoder serves all forms, so that they can be compared: attention asks with the state
    before the step, as Bahdanau's does, also with Luong's score. A tanh layer makes the states that
    are compared with the embeddings, instead of Bahdanau's maxout, from the state after the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from pellucid.attention.masks import apply_mask, padding_mask
from pellucid.attention.probe import Probe
from pellucid.attention.stages import mix, weigh
from pellucid.config import ModelConfig
from pellucid.errors import InputError
from pellucid.machine.turns import give_way
from pellucid.model.cross_attention import AdditiveAttention, DotAttention, Rows
from pellucid.model.dropout import Dropout
from pellucid.model.encoder_decoder import EncoderDecoder, Output, embed
from pellucid.model.site import Site


class GatedStep(NamedTuple):
    """One step of a cell, or several side by side: its two gates, the candidate, the new state."""

    update: Tensor
    reset: Tensor
    candidate: Tensor
    state: Tensor


class GatedCell(nn.Module):
    r"""A gated recurrent unit: it keeps a part of its state, and replaces the rest.

    $$r = σ(W_r x + b_r + U_r h + c_r) \qquad z = σ(W_z x + b_z + U_z h + c_z)$$
    $$n = \tanh(W_n x + b_n + r ⊙ (U_n h + c_n)) \qquad h' = (1 - z) ⊙ n + z ⊙ h$$

    The rows of a weight belong to reset gate r, update gate z and candidate n, in this order. The
    input's part is computed outside of `forward`, for all positions in one product.

    Source:
        Cho et al. 2014, equations 5 to 8, in the form of PyTorch's ``GRU``.

    Differs:
        Cho et al. reset the state before its product with U, and their z is our 1 - z.
    """

    def __init__(self, input_width: int, state_width: int) -> None:
        super().__init__()
        self.input = nn.Linear(input_width, 3 * state_width)
        self.state = nn.Linear(state_width, 3 * state_width)

    def forward(self, from_input: Tensor, state_BD: Tensor) -> GatedStep:
        """Take one step.

        Args:
            from_input: `input` of the step's input, (B, 3 · D).
            state_BD: the state before.
        """
        reset_x_BD, update_x_BD, candidate_x_BD = from_input.chunk(3, dim=-1)
        reset_h_BD, update_h_BD, candidate_h_BD = self.state(state_BD).chunk(3, dim=-1)
        reset_BD = torch.sigmoid(reset_x_BD + reset_h_BD)
        update_BD = torch.sigmoid(update_x_BD + update_h_BD)
        candidate_BD = torch.tanh(candidate_x_BD + reset_BD * candidate_h_BD)
        # (1 - z) ⊙ n + z ⊙ h with one product less.
        new_BD = candidate_BD + update_BD * (state_BD - candidate_BD)
        return GatedStep(update_BD, reset_BD, candidate_BD, new_BD)

    def run(
        self,
        from_input: Tensor,
        state_BD: Tensor,
        mask_BL: Tensor | None = None,
        *,
        is_backward: bool = False,
    ) -> list[GatedStep]:
        """Take one step a position, in either direction; padding leaves the state as it is.

        Args:
            from_input: `input` of all positions, (B, L, 3 · D).
            state_BD: the state before the first step.
            mask_BL: True for tokens, False for padding; None if nothing is padding.
            is_backward: read from right to left.

        Returns:
            The steps in the order of the positions.
        """
        inputs = from_input.unbind(dim=1)
        masks = [None] * len(inputs) if mask_BL is None else list(mask_BL[..., None].unbind(dim=1))
        order = range(len(inputs))
        steps: dict[int, GatedStep] = {}
        for position in reversed(order) if is_backward else order:
            give_way()
            step = self(inputs[position], state_BD)
            is_token_B1 = masks[position]
            if is_token_B1 is not None:
                # So a short sentence's state comes through its padding unchanged.
                step = step._replace(state=torch.where(is_token_B1, step.state, state_BD))
            steps[position] = step
            state_BD = step.state
        return [steps[position] for position in order]


def _show_steps(directions: Sequence[Sequence[GatedStep]], site: Site) -> Tensor:
    """Put steps into one array a stage, directions side by side; return the ``state_BLD``."""
    # Gates are put together for a probe only: the model itself needs the states alone.
    wanted = GatedStep._fields if site.probe is not None else ("state",)
    arrays = {
        name: torch.cat(
            [torch.stack([getattr(step, name) for step in steps], dim=1) for steps in directions],
            dim=-1,
        )
        for name in wanted
    }
    return {name: site.show(name, array) for name, array in arrays.items()}["state"]


class RecurrentEncoderLayer(nn.Module):
    """Cells that read a sentence: one from left to right, or a second one the other way too.

    With two, each has half the width of the model, and a position's vector is both states: one
    knows what stands before the position, the other what stands after it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        # Two directions side by side are as wide as one alone.
        width = config.d_model // 2 if config.has_attention else config.d_model
        self.left_to_right = GatedCell(config.d_model, width)
        if config.has_attention:
            self.right_to_left = GatedCell(config.d_model, width)

    def directions(self) -> list[tuple[str, GatedCell]]:
        """List the cells with their names, the one from left to right first."""
        # Children come in the order in which they were made.
        return [(name, cast(GatedCell, cell)) for name, cell in self.named_children()]

    def forward(self, x_BSD: Tensor, mask_BS: Tensor | None, site: Site) -> Tensor:
        """Map a layer's input to its states, both ``x_BSD``."""
        directions = []
        for name, cell in self.directions():
            start = x_BSD.new_zeros(len(x_BSD), cell.state.in_features)
            is_backward = name == "right_to_left"
            steps = cell.run(cell.input(x_BSD), start, mask_BS, is_backward=is_backward)
            directions.append(steps)
        return _show_steps(directions, site.within("recurrent"))


class Encoder(nn.Module):
    """The layers that read; each reads the states of the one below."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        layers = range(config.num_encoder_layers)
        made = nn.ModuleList(RecurrentEncoderLayer(config) for _ in layers)
        self.layers = cast(Sequence[RecurrentEncoderLayer], made)


class RecurrentDecoderLayer(nn.Module):
    """A cell that writes, with the layer that makes its first state.

    The first of a decoder's layers also gets a context in every step, and attends for it.
    """

    def __init__(self, config: ModelConfig, *, is_first: bool) -> None:
        super().__init__()
        self.initial = nn.Linear(config.d_model, config.d_model)
        self.cell = GatedCell(config.d_model, config.d_model)
        if is_first:
            # No bias: what it makes is added to the cell's input, which has one.
            self.context = nn.Linear(config.d_model, 3 * config.d_model, bias=False)
            if config.recurrent_attention == "additive":
                self.cross_attention: AdditiveAttention | DotAttention = AdditiveAttention(config)
            elif config.recurrent_attention == "dot":
                self.cross_attention = DotAttention()

    def start(self, vector_BD: Tensor, site: Site) -> Tensor:
        """Make the state before the first step from the encoder's last states: ``state_BD``."""
        initial_B1D = torch.tanh(self.initial(vector_BD))[:, None]
        return site.within("recurrent").show("initial", initial_B1D)[:, 0]

    def read(self, x_BTD: Tensor, state_BD: Tensor, site: Site) -> Tensor:
        """Map the input of a layer above the first to its states, both ``x_BTD``."""
        steps = self.cell.run(self.cell.input(x_BTD), state_BD)
        return _show_steps([steps], site.within("recurrent"))

    def read_vector(
        self, x_BTD: Tensor, state_BD: Tensor, vector_BD: Tensor, site: Site
    ) -> tuple[Tensor, Tensor]:
        """Run the first layer with one vector as the context of every step.

        Returns:
            ``states_BTD`` and ``context_BTD``.
        """
        # The context is the same in every step, so one product serves them all.
        from_input = self.cell.input(x_BTD) + self.context(vector_BD)[:, None]
        states_BTD = _show_steps([self.cell.run(from_input, state_BD)], site.within("recurrent"))
        return states_BTD, vector_BD[:, None].expand_as(states_BTD)

    def read_attending(
        self,
        x_BTD: Tensor,
        state_BD: Tensor,
        key_value: tuple[Tensor, Tensor],
        mask: Tensor | None,
        site: Site,
    ) -> tuple[Tensor, Tensor]:
        """Run the first layer with attention: every step asks the source with the state before.

        Returns:
            ``states_BTD`` and ``context_BTD``.
        """
        cross = site.within("cross")
        key_BHMK, value_BHME = (
            cross.show(stage, array, is_shared=True)
            for stage, array in zip(("key", "value"), key_value, strict=True)
        )
        rows = Rows(cross)
        steps = []
        contexts = []
        # One position after the other, because each asks with the state that the last one left.
        for from_input in self.cell.input(x_BTD).unbind(dim=1):
            give_way()
            query_BH1K = rows.show("query", self.cross_attention.project_query(state_BD[:, None]))
            scores_BH1M = rows.show("scores", self.cross_attention.score(query_BH1K, key_BHMK))
            masked_BH1M = rows.show("masked", apply_mask(scores_BH1M, mask))
            weights_BH1M = rows.show("weights", weigh(masked_BH1M))
            context_BH1E = rows.show("context", mix(weights_BH1M, value_BHME))
            context_BD = context_BH1E[:, 0, 0]
            step = self.cell(from_input + self.context(context_BD), state_BD)
            state_BD = step.state
            steps.append(step)
            contexts.append(context_BD)
        rows.finish()
        return _show_steps([steps], site.within("recurrent")), torch.stack(contexts, dim=1)


class RecurrentDecoder(nn.Module):
    """The layers that write; the last vector comes from input, state and context together."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        layers = range(config.num_decoder_layers)
        made = nn.ModuleList(RecurrentDecoderLayer(config, is_first=i == 0) for i in layers)
        self.layers = cast(Sequence[RecurrentDecoderLayer], made)
        self.readout = nn.Linear(3 * config.d_model, config.d_model)


@dataclass
class RecurrentCache:
    """What a decoder keeps between steps: a state a layer, and what it reads of the source."""

    length: int = 0
    states: list[Tensor] = field(default_factory=list)
    vector: Tensor | None = None
    key_value: tuple[Tensor, Tensor] | None = None

    def reorder(self, rows_B: Tensor) -> None:
        """Keep the listed batch rows, in that order.

        The caller does the same to ``memory_BSD`` and ``source_mask_BS``.
        """
        self.states = [state_BD.index_select(0, rows_B) for state_BD in self.states]
        if self.vector is not None:
            self.vector = self.vector.index_select(0, rows_B)
        if self.key_value is not None:
            key, value = self.key_value
            self.key_value = (key.index_select(0, rows_B), value.index_select(0, rows_B))


class RecurrentModel(EncoderDecoder):
    """An encoder and a decoder of gated recurrent units.

    The methods are those of the `Transformer`, and mean the same. A decoder row reads one token and
    predicts the next.

    Args:
        config: sizes and form, with both vocabulary sizes.
        has_output_bias: True adds a bias to the logits.

    Raises:
        ConfigurationError: a vocabulary size is missing.
    """

    def __init__(self, config: ModelConfig, *, has_output_bias: bool = False) -> None:
        super().__init__(config)
        self.encoder = Encoder(config)
        self.decoder = RecurrentDecoder(config)
        self.output = Output(config, has_output_bias)

    def encode(
        self,
        source_BS: Tensor,
        source_mask_BS: Tensor | None = None,
        *,
        probe: Probe | None = None,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Read source sentences, and keep the state at every token: ``memory_BSD``."""
        site = Site("encoder", probe, dropout)
        x_BSD = embed(
            source_BS, self.embedding_of("source"), self.config, site, end=source_BS.shape[1]
        )
        x_BSD = site.show("input", site.within("input").drop(x_BSD))
        for index, layer in enumerate(self.encoder.layers):
            place = site.within(index)
            # The input of the first layer has had its dropout already.
            x_BSD = layer(x_BSD if index == 0 else place.drop(x_BSD), source_mask_BS, place)
        return x_BSD

    def summarize(self, memory_BSD: Tensor, source_mask_BS: Tensor | None, site: Site) -> Tensor:
        """Take the last state of each direction, which has read the whole source: ``vector_BD``.

        From left to right it is the one at the last token, from right to left at the first.
        """
        rows_B = torch.arange(len(memory_BSD), device=memory_BSD.device)
        last_B = torch.full_like(rows_B, memory_BSD.shape[1] - 1)
        if source_mask_BS is not None:
            # Padding is on the right, so the number of tokens gives the place of the last.
            last_B = source_mask_BS.sum(dim=1) - 1
        vector_BD = memory_BSD[rows_B, last_B]
        if self.config.has_attention:
            half = self.config.d_model // 2
            vector_BD = torch.cat([vector_BD[:, :half], memory_BSD[:, 0, half:]], dim=-1)
        return site.show("vector", vector_BD[:, None])[:, 0]

    def decode(
        self,
        target_BT: Tensor,
        memory_BSD: Tensor,
        source_mask_BS: Tensor | None = None,
        *,
        target_mask_BT: Tensor | None = None,
        cache: RecurrentCache | None = None,
        probe: Probe | None = None,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Turn target tokens into states, from which `logits` predicts the next: ``states_BTD``.

        With a ``cache``, ``target_BT`` holds only the new tokens: the cache keeps the states.
        ``target_mask_BT`` changes nothing: a state knows only what stands to the left of it, so
        padding on the right reaches no real row.

        Raises:
            InputError: a sentence is too long, or a mask comes with a cache.
        """
        if cache is not None and target_mask_BT is not None:
            raise InputError(
                "target_mask_BT cannot be combined with a cache. Leave one of them out."
            )
        site = Site("decoder", probe, dropout)
        past = RecurrentCache() if cache is None else cache
        past.length += target_BT.shape[1]
        x_BTD = embed(target_BT, self.embedding_of("target"), self.config, site, end=past.length)
        x_BTD = site.show("input", site.within("input").drop(x_BTD))
        # Once for each sentence, because all steps read the same of the source.
        if not past.states:
            self.start(memory_BSD, source_mask_BS, past, probe=probe)
        states_BTD, context_BTD = self._read(x_BTD, past, source_mask_BS, site.within(0))
        # Only decoding continues from here, and its targets have no padding.
        past.states[0] = states_BTD[:, -1]
        for index, layer in enumerate(self.decoder.layers[1:], start=1):
            place = site.within(index)
            states_BTD = layer.read(place.drop(states_BTD), past.states[index], place)
            past.states[index] = states_BTD[:, -1]
        together_BTX = torch.cat([x_BTD, states_BTD, context_BTD], dim=-1)
        readout_BTD = torch.tanh(self.decoder.readout(together_BTX))
        return site.within("readout").drop(site.show("readout", readout_BTD))

    def start(
        self,
        memory_BSD: Tensor,
        source_mask_BS: Tensor | None = None,
        past: RecurrentCache | None = None,
        *,
        probe: Probe | None = None,
    ) -> RecurrentCache:
        """Prepare the first step: the states before it, and what all steps read of the source.

        Args:
            memory_BSD: from `encode`.
            source_mask_BS: True for tokens, False for padding.
            past: an empty cache to fill; a new one unless given.
            probe: is handed the results.
        """
        past = RecurrentCache() if past is None else past
        past.vector = self.summarize(memory_BSD, source_mask_BS, Site("encoder", probe))
        site = Site("decoder", probe)
        layers = self.decoder.layers
        past.states = [
            layer.start(past.vector, site.within(index)) for index, layer in enumerate(layers)
        ]
        if self.config.has_attention:
            past.key_value = layers[0].cross_attention.project_key_value(memory_BSD)
        return past

    def _read(
        self, x_BTD: Tensor, past: RecurrentCache, source_mask_BS: Tensor | None, site: Site
    ) -> tuple[Tensor, Tensor]:
        """Run the first layer: ``states_BTD``, ``context_BTD``."""
        layer = self.decoder.layers[0]
        state_BD = past.states[0]
        # `start` has filled it; type checkers cannot know.
        assert past.vector is not None
        if past.key_value is None:
            return layer.read_vector(x_BTD, state_BD, past.vector, site)
        mask = None if source_mask_BS is None else padding_mask(source_mask_BS)
        return layer.read_attending(x_BTD, state_BD, past.key_value, mask, site)

    def new_cache(self) -> RecurrentCache:
        """Make an empty cache for decoding with this model."""
        return RecurrentCache()
