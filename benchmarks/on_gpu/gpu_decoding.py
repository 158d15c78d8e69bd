"""A step of ``gpu.py``: target tokens a second in translation."""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import Any
from unittest import mock

import torch
from on_gpu.gpu_setting import END, LENGTH, PAD, START, Note, Setting
from on_gpu.gpu_training import make_peer

from pellucid.config import DecodingConfig, ModelConfig
from pellucid.decode.constraints.request import SpecialIds
from pellucid.decode.decoder import Decoder
from pellucid.model import EncoderDecoder

ROUNDS = 3


def measure_decoding(setting: Setting, note: Note, *, size: str) -> None:
    """Time searches by graphs, of Hugging Face, and step by step."""
    model = setting.model(size).to(setting.device)
    requests = setting.requests(model.config)
    peer = None
    if importlib.util.find_spec("transformers") is not None:
        peer = make_peer(model.config).to(setting.device, torch.bfloat16).eval()
    kinds: dict[str, Any] = {
        "": setting.graphs,
        ", step by step": lambda *_: None,
    }
    searches = [
        (f"{count:d} sentence{'s' * (count > 1)}, beam {beam}", beam, requests[:count])
        for count, beam in ((512, 1), (1, 1), (512, 5), (1, 5))
    ]
    rounds = ROUNDS
    if setting.is_smallest:
        rounds = 1
        searches = [(name, beam, some[:4]) for name, beam, some in searches]
    for name, beam, some in searches:
        found: dict[str, float] = {}
        for precision in ("bfloat16", "float32"):
            config = DecodingConfig.model_validate({"beam": beam, "precision": precision})
            for kind, graphs in kinds.items():
                run = partial(
                    make_decoder(model).decode, some, config, batch_tokens=len(some) * 64 * beam
                )
                with mock.patch("pellucid.decode.on_pytorch.make_graphs", graphs):
                    run()
                    run()
                    run()  # Every bucket is recorded now.
                    seconds = setting.seconds(run, rounds=rounds)
                found[f"{precision}{kind}"] = len(some) * LENGTH / seconds
            if peer is not None and precision == "bfloat16":
                generate = _generate(setting, peer, model.config, some, beam)
                generate()
                seconds = setting.seconds(generate, rounds=rounds)
                found["Hugging Face, bfloat16"] = len(some) * LENGTH / seconds
                found["times"] = found["bfloat16"] / found["Hugging Face, bfloat16"]
            note({name: found})


def make_decoder(model: EncoderDecoder) -> Decoder:
    """Make a new search, with graphs of its own."""
    return Decoder([model.eval().requires_grad_(False)], SpecialIds(START, END, (PAD,)))


def _generate(setting: Setting, peer: Any, config: ModelConfig, some: Any, beam: int) -> Any:
    """Make a call of `generate` that writes exactly as many tokens."""
    rows = [torch.tensor(one.source_ids) for one in some]
    source_BS = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    source_BS = source_BS.to(setting.device)
    return partial(
        peer.generate,
        input_ids=source_BS,
        attention_mask=(source_BS != PAD).long(),
        num_beams=beam,
        min_new_tokens=LENGTH,
        max_new_tokens=LENGTH,
        do_sample=False,
    )
