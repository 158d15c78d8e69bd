"""Keys and values: computed once for a word, and kept while more words are written."""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from pellucid.config import ModelConfig
from pellucid.inside.pair import Keeper
from pellucid.lessons.why.cells import (
    Cells,
    Column,
    decide,
    judge_seeds,
    measure_cells,
    write,
    write_small,
)
from pellucid.lessons.why.clock import seconds_of
from pellucid.lessons.why.fits import fit_power_law
from pellucid.lessons.why.packaged import load_packaged, packaged_name, write_examples_of
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.machine.randomness import generator
from pellucid.model import Transformer, initialize
from pellucid.model.kv_cache import GrowingKeysValues

ROUNDING = 1e-4
FASTER = 1.1
SOURCE = 32
JUDGED = 64
"""Tokens at which time is judged, and up to which logits are compared: rounding adds up."""


def measure(setting: MeasurementSetting) -> Found:
    """Write tokens with and without kept keys, count products, and compare keys."""
    count = setting.choose(30, 6, 60)
    written = measure_cells(
        setting,
        f"{packaged_name()}, {{length}} tokens",
        lambda length, seed: write_with_and_without_cache(
            length, count, seed, repeats=setting.choose(3, 1)
        ),
        is_timed=True,
        length=setting.choose((4, 8, 16, 32, 64), (2, 5), (4, 8, 16, 32, 64, 128, 256)),
    )
    sentences = setting.choose(30, 6)
    keys = measure_cells(
        setting,
        f"{packaged_name()}, keys without and with the last word, {sentences} sentences",
        lambda seed: compare_keys(sentences, seed),
    )
    # Rounding adds up with the length, so that only short texts are compared.
    compared = Cells(tuple(row for row in written.rows if row["length"] <= JUDGED))
    last = compared.rows[-1]
    found = Found(
        "the decoder of the small translator `demo` writes one token after another. A new token "
        "does not change the keys and values of the tokens before it, so they can be kept. To "
        f"write {last['length']} tokens, a layer then computes {last['cached_keys']} keys. If it "
        f"computed all keys again at every token, it would compute {last['plain_keys']:,}. In an "
        "encoder, words also see those after them. So one more word at the end changes the keys of "
        "all others. Only the first layer is an exception, since its keys are made of the "
        "embeddings, before any attention. Without kept keys and values, "
        f"{last['length']} tokens take {_times(written, last['length']):.1f} times as long. "
        "All multiplications of the decoder together are then "
        f"{last['plain_products'] / last['cached_products']:.0f} times as many, but they take "
        "little of the time in so small a network",
        "The packaged model writes given tokens, one after another: once with the keys and "
        "values of earlier tokens kept, once reading everything again at each step. Products are "
        "the multiplications of all matrix products of the decoder and the output projection.",
        verdicts={
            "kept": judge_seeds(judge_kept, keys, compared),
            "rows": judge_seeds(judge_rows, compared),
        },
        tables=(_tabulate(written), _tabulate_keys(keys)),
        panels=(
            _panel(written, "Multiplications, packaged model", "millions", "{}_products", 1e-6),
            _panel(written, "Time, packaged model", "ms", "{}_seconds", 1000),
        ),
    )
    return _add_steps(setting, found, written) if setting.is_long else found


def _add_steps(setting: MeasurementSetting, found: Found, written: Cells) -> Found:
    """Time single steps of a decoder of the paper's size."""
    shape = _shape(setting)
    steps = measure_cells(
        setting,
        "step {position} of the paper's decoder",
        lambda position, seed: _time_step(position, shape, seed, setting.choose(5, 1)),
        is_timed=True,
        position=setting.choose((1, 4, 16, 64, 256, 1024, 2048), (1, 4, 16)),
    ).add(times=lambda row: row["plain"] / row["cached"])
    title = "Time of one token, paper's size"
    return found.plus(
        method=f" One step: a decoder of {shape.num_decoder_layers} layers of width "
        f"{shape.d_model} with random weights, which reads a source of {SOURCE} tokens and writes "
        "the token at a position; its vocabulary of 1,000 is smaller than the paper's. Exponents "
        "are fitted to the longer half.",
        verdicts={"time": judge_seeds(judge_saved_time, written)},
        tables=[
            steps.table(
                "One step of a decoder of the paper's size, by the token's place",
                "position",
                (
                    Column("ms kept", "cached", scale=1000),
                    Column("again", "plain", scale=1000),
                    Column("times", "times"),
                    Column("MiB kept", "kept_bytes", ".2f", 2**-20, over_seeds="first"),
                ),
                head="token",
                form=",d",
                is_of_this_machine=True,
            ),
            ResultTable(
                "Exponents of the length",
                ("", "kept", "computed again"),
                ("", "", ""),
                (
                    ("products of a whole text", *_exponents(written, "length", "{}_products")),
                    ("time of a whole text", *_exponents(written, "length", "{}_seconds")),
                    ("time of one step, paper's size", *_exponents(steps, "position", "{}")),
                ),
                is_of_this_machine=True,
            ),
        ],
        panels=[_panel(steps, title, "ms", "{}", 1000, axis="position")],
    )


def judge_kept(keys: Cells, written: Cells) -> Verdict:
    """Judge by whether earlier keys stay as they are when a word is added."""
    decoder = max(keys.all("decoder"))
    encoder = max(keys.all("encoder"))
    off = max(written.all("difference"))
    return decide(
        f"a relative change below {ROUNDING} is rounding; holds if earlier keys stay in encoder "
        "and decoder, fails if they change in the decoder or the logits differ",
        f"largest change of a key: decoder {decoder:.0e}, encoder {encoder:.0e}; of logits "
        f"{off:.0e}".replace("e-", "e−"),
        "In the decoder, one more word at the end changes the keys of the words before it by "
        f"{f'at most {write_small(decoder)} times their size' if decoder else 'nothing at all'}"
        f". In the encoder it changes them by up to {write_small(encoder)} times their usual size. "
        f"Up to {ROUNDING} is rounding. With kept keys and values, the scores of possible next "
        "words "
        f"change by at most {write_small(off)} times their usual size.",
        fails=decoder >= ROUNDING or off >= ROUNDING,
        # An encoder reads both ways, so a new word changes the others.
        unless={"words see only those before them, as in a decoder": encoder >= ROUNDING},
    )


def judge_rows(written: Cells) -> Verdict:
    """Judge by the rows that a step reads with and without kept keys, for equal logits."""
    last = written.rows[-1]
    cached = last["cached_keys"] / last["length"]
    plain = last["plain_keys"] / last["length"]
    return decide(
        f"holds if a step reads one row in any case; only with kept keys if it does with them and "
        f"the logits are equal up to {ROUNDING}; fails otherwise",
        f"rows a step at {last['length']} tokens: {cached:.1f} with kept keys, {plain:.1f} without",
        f"To write one token, a decoder that keeps keys and values reads {cached:.0f} token. "
        f"Otherwise it reads all tokens so far again, {plain:.1f} on average. To hold without the "
        "condition, it must be 1 token in either case.",
        fails=plain > 1 and (cached > 1 or last["difference"] >= ROUNDING),
        unless={"keys and values of earlier tokens are kept": plain > 1},
    )


def judge_saved_time(written: Cells) -> Verdict:
    """Judge by the time that kept keys save at a length chosen before measuring."""
    lengths = written.values("length")
    judged = JUDGED if JUDGED in lengths else lengths[-1]
    written = written.add(ratio=lambda row: row["plain_seconds"] / row["cached_seconds"])
    ratios = {length: written.all("ratio", length=length) for length in lengths}
    return decide(
        f"judged at {judged} tokens; holds if it takes {FASTER} times as long or longer without "
        "kept keys, fails otherwise",
        "; ".join(f"{length} tokens: × {write(one)}" for length, one in ratios.items()),
        f"To write {judged} tokens takes {fmean(ratios[judged]):.1f} times as long if keys and "
        f"values are not kept. Time counts as saved from {FASTER} times on.",
        fails=fmean(ratios[judged]) < FASTER,
    )


def _times(written: Cells, length: int) -> float:
    """Divide the time without kept keys by the time with them."""
    plain = written.mean("plain_seconds", length=length)
    return plain / written.mean("cached_seconds", length=length)


def long_pair(count: int, seed: int) -> tuple[Tensor, list[int]]:
    """Take the longest source of some new sentences, and the targets of all in a row."""
    tokenizer = load_packaged().tokenizer
    examples = write_examples_of(count, seed=seed)
    source = tokenizer.encode_source(max((one.source for one in examples), key=len))
    # One long text, longer than any sentence: its end tokens are left out.
    target = [id_ for one in examples for id_ in tokenizer.encode_target(one.target)[:-1]]
    return torch.tensor([source]), target


@torch.inference_mode()
def write_with_and_without_cache(
    length: int, count: int, seed: int, *, repeats: int
) -> dict[str, Any]:
    """Write given tokens with and without kept keys: count, time and compare.

    Args:
        length: tokens to write.
        count: sentences to take them from.
        seed: of the sentences.
        repeats: of the timing.

    Returns:
        For each way, ``cached`` and ``plain``, the ``keys`` that a layer's self-attention computes,
        the ``products`` of the whole decoder, and its ``seconds``; and the largest ``difference``
        between both logits, as a share of their spread.
    """
    bundle = load_packaged()
    model = bundle.model
    source_1S, target = long_pair(count, seed)
    read = torch.tensor([[bundle.tokenizer.config.target_start_id, *target[: length - 1]]])
    memory_1SD = model.encode(source_1S)
    rows = {"cached": 0, "plain": 0}

    def run(way: str) -> list[Tensor]:
        # The same model and the same tokens: only the cache differs.
        cache = model.new_cache() if way == "cached" else None
        found = []
        for end in range(1, length + 1):
            # With a cache the step reads only the newest token.
            new_1T = read[:, end - 1 : end] if cache else read[:, :end]
            rows[way] += new_1T.shape[1]
            states_1TD = model.decode(new_1T, memory_1SD, cache=cache)
            found.append(model.logits(states_1TD[:, -1:])[0, 0])
        return found

    found: dict[str, Any] = {"length": length}
    logits = {}
    for way in rows:
        # Counted apart from timing, which counting would slow down.
        with FlopCounterMode(display=False) as counter:
            logits[way] = torch.stack(run(way))
        found[f"{way}_keys"] = rows[way]
        # A multiplication and an addition each.
        found[f"{way}_products"] = counter.get_total_flops() // 2
    for way in logits:
        found[f"{way}_seconds"] = seconds_of(partial(run, way), repeats=repeats)
    # Relative, since logits have no unit.
    off = (logits["cached"] - logits["plain"]).abs().max() / logits["plain"].std()
    return found | {"difference": float(off)}


@torch.inference_mode()
def compare_keys(count: int, seed: int) -> list[dict[str, float]]:
    """Compare the keys of a text without and with its last word, layer by layer."""
    bundle = load_packaged()
    model = bundle.model
    source_1S, target = long_pair(count, seed)
    read_1T = torch.tensor([[bundle.tokenizer.config.target_start_id, *target[:8]]])
    memory_1SD = model.encode(source_1S)

    def keys_of(part: str, cut: int) -> list[Tensor]:
        keeper = Keeper(("key",))
        if part == "encoder":
            model.encode(source_1S[:, : source_1S.shape[1] - cut], probe=keeper)
        else:
            model.decode(read_1T[:, : read_1T.shape[1] - cut], memory_1SD, probe=keeper)
        return [tensor for name, tensor in keeper.found.items() if name.endswith(".self.key")]

    changes = {
        part: [
            # The last word has no counterpart.
            float((whole[:, :, :-1] - key).abs().max() / key.std())
            for whole, key in zip(keys_of(part, 0), keys_of(part, 1), strict=True)
        ]
        for part in ("decoder", "encoder")
    }
    layers = zip(changes["decoder"], changes["encoder"], strict=False)
    return [
        {"layer": layer, "decoder": decoder, "encoder": encoder}
        for layer, (decoder, encoder) in enumerate(layers)
    ]


def _shape(setting: MeasurementSetting) -> ModelConfig:
    width, layers = setting.choose((512, 6), (24, 2))
    return ModelConfig.model_validate(
        {
            "d_model": width,
            "d_ff": setting.choose(2048, 40),
            "num_heads": setting.choose(8, 3),
            "num_encoder_layers": 1,
            "num_decoder_layers": layers,
            "source_vocabulary_size": 1000,
            "target_vocabulary_size": 1000,
            "max_target_length": 4096,
        }
    )


@torch.inference_mode()
def _time_step(position: int, shape: ModelConfig, seed: int, repeats: int) -> dict[str, Any]:
    """Time one step with a cache of all tokens before it, and one pass over all of them."""
    model = Transformer(shape)
    initialize(model, seed)
    model.eval()
    numbers = generator(seed, "why cache", position)
    source_1S = torch.from_numpy(numbers.integers(4, 1000, (1, SOURCE)))
    read_1T = torch.from_numpy(numbers.integers(4, 1000, (1, position)))
    memory_1SD = model.encode(source_1S)
    cache = model.new_cache()
    grown = [layer.past for layer in cache.layers if isinstance(layer.past, GrowingKeysValues)]
    # The first step computes the source's keys, which all later ones have.
    model.decode(read_1T[:, : max(1, position - 1)], memory_1SD, cache=cache)

    def cached() -> None:
        for past in grown:  # The same step again: forget the token that it added.
            past.length = position - 1
        model.logits(model.decode(read_1T[:, -1:], memory_1SD, cache=cache))

    def plain() -> None:
        model.logits(model.decode(read_1T, memory_1SD)[:, -1:])

    # float32 keys and values of each head, layer by layer.
    width = shape.num_heads * (shape.d_key + shape.d_value)
    return {
        "position": position,
        "cached": seconds_of(cached, repeats=repeats),
        "plain": seconds_of(plain, repeats=repeats),
        "kept_bytes": 4 * position * width * shape.num_decoder_layers,
    }


def _tabulate(written: Cells) -> ResultTable:
    columns = []
    for unit, name, form, scale, seeds in (
        ("keys", "keys", ",d", 1, "first"),
        ("products", "products", ",.1f", 1e-6, "first"),
        ("ms", "seconds", ".1f", 1000, ""),
    ):
        for head, way in ((f"{unit} kept", "cached"), ("again", "plain")):
            columns.append(Column(head, f"{way}_{name}", form, scale, over_seeds=seeds))
    title = "Tokens written by the packaged model: keys of a layer, millions of products, time"
    return written.table(title, "length", columns, head="tokens", is_of_this_machine=True)


def _tabulate_keys(keys: Cells) -> ResultTable:
    columns = (Column("decoder", "decoder", ".1e"), Column("encoder", "encoder", ".1e"))
    title = "Largest relative change of earlier words' keys when one word is added"
    return keys.table(title, "layer", columns, head="layer")


def _exponents(cells: Cells, axis: str, name: str) -> tuple[str, str]:
    """Write the exponents of each seed: with kept keys, and computed again."""
    places = cells.values(axis)
    # At small lengths, what does not grow hides what does; a line needs two points.
    late = places[len(places) // 2 :]
    if len(late) > 1:
        places = late

    def fit(way: str) -> str:
        found = []
        for seed in cells.values("seed"):
            here = cells.where(seed=seed)
            costs = [here.all(name.format(way), **{axis: place})[0] for place in places]
            found.append(fit_power_law(places, costs).exponent)
        return write(found)

    return fit("cached"), fit("plain")


def _panel(
    cells: Cells, title: str, label: str, name: str, scale: float, axis: str = "length"
) -> Panel:
    return cells.panel(
        title,
        ("tokens written" if axis == "length" else "the token's place", label),
        {
            "keys and values kept": name.format("cached"),
            "computed again": name.format("plain"),
        },
        axis,
        scale=scale,
        x_log=True,
        y_log=True,
    )
