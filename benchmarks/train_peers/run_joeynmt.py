"""One measured run of JoeyNMT's own training loop, with a clock at the start of every step."""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path
from typing import Any

import joeynmt
import torch
from joeynmt.batch import Batch
from joeynmt.config import parse_global_args, set_validation_args
from joeynmt.prediction import prepare
from joeynmt.training import TrainManager
from joeynmt.transformer_layers import MultiHeadedAttention, PositionwiseFeedForward
from side_by_side.processes import exchange, peak_megabytes


class TimedTraining(TrainManager):
    """Record the start of each step, and the target tokens of its batch."""

    starts: list[tuple[float, int]]

    def _train_step(self, batch: Batch) -> tuple[float, int]:
        self.starts.append((time.perf_counter(), batch.ntokens))
        found: tuple[float, int] = super()._train_step(batch)
        return found


def measure(work: dict[str, Any]) -> dict[str, Any]:
    """Train one step more than is measured: its start ends the last measured one."""
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory(dir=work["scratch"]) as folder:
        settings = configuration(work, Path(folder))
        arguments = parse_global_args(settings, rank=0, mode="train")
        model, train_data, validation_data, _ = prepare(arguments, rank=0, mode="train")
        leave_dropout_to_the_paper(model)
        training = TimedTraining(
            rank=0,
            model=model,
            model_dir=arguments.model_dir,
            device=arguments.device,
            autocast=arguments.autocast,
            seed=arguments.seed,
            train_args=arguments.train,
            dev_args=set_validation_args(arguments.test),
        )
        training.starts = []
        training.train_and_validate(train_data=train_data, valid_data=validation_data)
    timed = training.starts[work["warm_up"] :]
    return {
        "seconds": timed[-1][0] - timed[0][0],
        "target_tokens": sum(tokens for _, tokens in timed[:-1]),
        "peak_megabytes": peak_megabytes(),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "versions": {"joeynmt": joeynmt.__version__, "torch": torch.__version__},
    }


def configuration(work: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return JoeyNMT's configuration for the work, with token ids as words."""
    size, text = work["size"], Path(work["text"])
    vocabulary = folder / "vocabulary.txt"
    vocabulary.write_text("".join(f"{place}\n" for place in range(4, work["vocabulary"])))
    for name in ("train", "validation"):
        for side in ("source", "target"):
            (folder / f"{name}.{side}").symlink_to(text / f"{name}.{side}.ids")
    layers = {
        "type": "transformer",
        "num_heads": size["num_heads"],
        "embeddings": {"embedding_dim": size["d_model"], "scale": True},
        "hidden_size": size["d_model"],
        "ff_size": size["d_ff"],
        "dropout": work["dropout"],
        "layer_norm": "post",
    }
    side = {"level": "word", "voc_file": str(vocabulary), "max_length": 256}
    return {
        "name": "speed",
        "model_dir": str(folder),
        "use_cuda": False,
        "random_seed": 1,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "validation"),
            "dataset_type": "plain",
            "src": {"lang": "source", **side},
            "trg": {"lang": "target", **side},
        },
        "testing": {},
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "scheduling": "warmupinversesquareroot",  # JoeyNMT has no constant rate.
            "learning_rate_peak": 0.0003,
            "learning_rate_warmup": 100,
            "normalization": "tokens",
            "label_smoothing": work["label_smoothing"],
            "batch_size": work["max_tokens_per_batch"],
            "batch_type": "token",
            "epochs": 1_000_000,
            "updates": work["warm_up"] + work["steps"] + 1,
            "logging_freq": 1_000_000,
            "validation_freq": 1_000_000,
        },
        "model": {
            "initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": {**layers, "num_layers": size["num_encoder_layers"]},
            "decoder": {**layers, "num_layers": size["num_decoder_layers"]},
        },
    }


def leave_dropout_to_the_paper(model: torch.nn.Module) -> None:
    """Remove dropout on attention weights and inside the feed-forward layer."""
    for module in model.modules():
        if isinstance(module, MultiHeadedAttention):
            module.dropout.p = 0.0
        if isinstance(module, PositionwiseFeedForward):
            module.pwff_layer[2].p = 0.0


if __name__ == "__main__":
    exchange(measure)
