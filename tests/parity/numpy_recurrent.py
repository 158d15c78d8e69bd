"""A second recurrent model, in NumPy and float64, from a bundle's files and two rows of ids.

It is written from the formulas of the papers, the names of the bundle and the names of the trace
(`docs/formats`), and shares nothing with the package, not even an import.

Source:
    Cho et al. 2014, equations 5 to 8, in the form of PyTorch's GRU; Bahdanau et al. 2015,
    appendix A; Luong et al. 2015, section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy_transformer import COMPUTES, Array, NumpyTransformer

__all__ = ["NumpyRecurrent"]


class NumpyRecurrent(NumpyTransformer):
    """Every array of a recurrent model's trace, computed.

    Of the other NumPy model it uses only the reading of the files and the tables.

    Args:
        folder: a bundle. Only its ``config.json`` and ``model.safetensors`` are read.
    """

    computes = COMPUTES | {
        "architecture": ("recurrent",),
        "recurrent_attention": ("none", "additive", "dot"),
    }

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.form = self.config["recurrent_attention"]

    def run(self, source_ids: Sequence[int], target_ids: Sequence[int]) -> dict[str, Array]:
        """Every array by its name in a trace."""
        self.arrays = {}
        memory = self.read(source_ids)
        if self.form == "none":
            vector = memory[-1]
        else:
            half = memory.shape[1] // 2
            vector = np.concatenate([memory[-1, :half], memory[0, half:]])
        self.arrays["encoder.vector"] = vector[None]
        self.write(target_ids, memory, vector)
        return self.arrays

    def enter(self, part: str, side: str, ids: Sequence[int]) -> Array:
        """The vectors of tokens."""
        x = self.table(side)[list(ids)]
        if self.config["embedding_scale"] == "sqrt":
            x = x * math.sqrt(self.config["d_model"])
        self.arrays[f"{part}.embedding"] = self.arrays[f"{part}.input"] = x
        return x

    def read(self, ids: Sequence[int]) -> Array:
        """The encoder's states."""
        x = self.enter("encoder", "source", ids)
        directions = ["left_to_right"] + ["right_to_left"] * (self.form != "none")
        for layer in range(self.config["num_encoder_layers"]):
            found: dict[str, list[Array]] = {}
            for direction in directions:
                name = f"encoder.layers.{layer}.{direction}"
                state = np.zeros(self.weights[f"{name}.state.weight"].shape[1])
                rows = x if direction == "left_to_right" else x[::-1]
                steps = []
                for row in rows:
                    inputs = self.linear(f"{name}.input", row)
                    steps.append(self.unit(name, inputs, state))
                    state = steps[-1]["state"]
                steps = steps if direction == "left_to_right" else steps[::-1]
                for stage in steps[0]:
                    found.setdefault(stage, []).append(np.stack([step[stage] for step in steps]))
            for stage, halves in found.items():
                joined = np.concatenate(halves, axis=1)
                self.arrays[f"encoder.{layer}.recurrent.{stage}"] = joined
            x = self.arrays[f"encoder.{layer}.recurrent.state"]
        return x

    def write(self, ids: Sequence[int], memory: Array, vector: Array) -> None:
        """The decoder's arrays, one row after the other."""
        inputs = self.enter("decoder", "target", ids)
        depth = range(self.config["num_decoder_layers"])
        states = [
            np.tanh(self.linear(f"decoder.layers.{layer}.initial", vector)) for layer in depth
        ]
        rows: dict[str, list[Array]] = {}
        for layer in depth:
            self.arrays[f"decoder.{layer}.recurrent.initial"] = states[layer][None]
        for x in inputs:
            context = vector
            if self.form != "none":
                context = self.attend(states[0], memory, rows)
            below = x
            for layer in depth:
                name = f"decoder.layers.{layer}.cell"
                entering = self.linear(f"{name}.input", below)
                if layer == 0:
                    entering = entering + self.weights["decoder.layers.0.context.weight"] @ context
                step = self.unit(name, entering, states[layer])
                states[layer] = below = step["state"]
                for stage, row in step.items():
                    rows.setdefault(f"decoder.{layer}.recurrent.{stage}", []).append(row)
            together = np.concatenate([x, below, context])
            readout = np.tanh(self.linear("decoder.readout", together))
            rows.setdefault("decoder.readout", []).append(readout)
            rows.setdefault("decoder.logits", []).append(self.table("output") @ readout)
        for name, found in rows.items():
            array = np.stack(found)
            self.arrays[name] = array[None] if ".cross." in name else array

    def attend(self, state: Array, memory: Array, rows: dict[str, list[Array]]) -> Array:
        """The context of one row; its stages are added to the rows."""
        query, keys = state, memory
        if self.form == "additive":
            name = "decoder.layers.0.cross_attention"
            query = self.weights[f"{name}.query.weight"] @ state
            keys = memory @ self.weights[f"{name}.key.weight"].T
            scores = np.tanh(query + keys) @ self.weights[f"{name}.energy.weight"][0]
        else:
            scores = keys @ query
        exponentials = np.exp(scores - scores.max())
        weights = exponentials / exponentials.sum()
        context = weights @ memory
        self.arrays["decoder.0.cross.key"] = keys[None]
        self.arrays["decoder.0.cross.value"] = memory[None]
        stages = {"query": query, "scores": scores, "masked": scores, "weights": weights}
        for stage, row in {**stages, "context": context}.items():
            rows.setdefault(f"decoder.0.cross.{stage}", []).append(row)
        return context

    def linear(self, name: str, x: Array) -> Array:
        """W x + b."""
        result: Array = self.weights[f"{name}.weight"] @ x + self.weights[f"{name}.bias"]
        return result

    def unit(self, name: str, entering: Array, state: Array) -> dict[str, Array]:
        """One step of a gated recurrent unit."""
        reset_x, update_x, candidate_x = np.split(entering, 3)
        reset_h, update_h, candidate_h = np.split(self.linear(f"{name}.state", state), 3)
        reset = 1 / (1 + np.exp(-(reset_x + reset_h)))
        update = 1 / (1 + np.exp(-(update_x + update_h)))
        candidate = np.tanh(candidate_x + reset * candidate_h)
        new = (1 - update) * candidate + update * state
        return {"update": update, "reset": reset, "candidate": candidate, "state": new}
