"""Keys and values: computed once for a word, and kept while more words are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from pellucid.bundle import Bundle
from pellucid.inside.pair import Keeper
from pellucid.lessons.why.clock import seconds_of
from pellucid.lessons.why.packaged import load_packaged, write_examples_of
from pellucid.lessons.why.result import (
    NOTES,
    STUDY_NOTES,
    Finding,
    Measurement,
    Panel,
    Plot,
    Series,
    Statement,
    Table,
    Verdict,
)
from pellucid.lessons.why.setting import Setting
from pellucid.machine.hardware import describe_machine

ROUNDING = 1e-4

KEPT_SAYS = Statement(
    STUDY_NOTES, "", "Keys and Values do not need to be recalculated for each word"
)
ROWS_SAYS = Statement(NOTES, "section 5", "one token to one token during inference")


@dataclass(frozen=True)
class Written:
    """The cost of writing a number of tokens, one after another.

    Attributes:
        length: tokens written.
        cached_keys: keys that a layer's self-attention computes if it keeps them.
        plain_keys: the same if it computes all of them at each step.
        cached_products: multiplications of the whole decoder with kept keys and values.
        plain_products: the same without.
        cached_seconds: time with kept keys and values.
        plain_seconds: the same without.
        difference: the largest difference between both logits, as a share of the logits' spread.
    """

    length: int
    cached_keys: int
    plain_keys: int
    cached_products: int
    plain_products: int
    cached_seconds: float
    plain_seconds: float
    difference: float


@dataclass(frozen=True)
class Kept:
    """The change of the first words' keys when one more word comes, by layer.

    Attributes:
        layer: from 0.
        decoder: the largest relative change in the decoder's masked self-attention.
        encoder: the same in the encoder, where words also see later ones.
    """

    layer: int
    decoder: float
    encoder: float


@torch.inference_mode()
def measure(setting: Setting) -> Measurement:
    """Write tokens with and without kept keys, count products, and compare keys."""
    bundle = load_packaged()
    source, target = long_pair(bundle, setting.choose(30, 6), seed=setting.seed)
    written = []
    for length in setting.choose((4, 8, 16, 32, 64), (2, 5)):
        setting.say(f"{length} tokens")
        written.append(write_tokens(bundle, source, target[:length], repeats=setting.choose(3, 1)))
    kept = _compare_keys(bundle, source, target)
    last = written[-1]
    return Measurement(
        claim="cache",
        question="Are keys and values computed only once?",
        number=f"For {last.length} tokens each layer computes {last.cached_keys} keys if it keeps "
        f"them and {last.plain_keys:,} if it does not; the decoder makes "
        f"{last.plain_products / last.cached_products:.1f} times as many multiplications.",
        method="The packaged model writes given tokens, one after another: once with the keys and "
        "values of earlier tokens kept, once reading everything again at each step. Products are "
        "the multiplications of all matrix products of the decoder and the output projection.",
        findings=(
            Finding(KEPT_SAYS, judge_kept(kept, written)),
            Finding(ROWS_SAYS, judge_rows(written)),
        ),
        tables=(_costs(written), _keys(kept)),
        plot=_plot(written),
        notes=(
            "A word's key is not in a table: it is x·W for each occurrence of the word, and x "
            "differs with position and, from layer 1 on, with the words around it.",
        ),
        to_try=("pellucid attend lets-go", "pellucid why parallel"),
        seed=setting.seed,
        size=setting.size,
        machine=describe_machine(),
    )


def judge_kept(kept: Sequence[Kept], written: Sequence[Written]) -> Verdict:
    """Judge by whether earlier keys stay as they are when a word is added."""
    decoder, encoder = max(one.decoder for one in kept), max(one.encoder for one in kept)
    off = max(one.difference for one in written)
    rule = (
        f"a relative change below {ROUNDING} is rounding; holds if earlier keys stay in encoder "
        "and decoder, fails if they change in the decoder or the logits differ"
    )
    numbers = (
        f"largest change of a key: decoder {decoder:.0e}, encoder {encoder:.0e}; of logits "
        f"{off:.0e}"
    ).replace("e-", "e−")
    if decoder >= ROUNDING or off >= ROUNDING:
        return Verdict("fails", "", rule, numbers)
    if encoder >= ROUNDING:
        return Verdict(
            "holds only if", "no word is added, or words see only those before them", rule, numbers
        )
    return Verdict("holds", "", rule, numbers)


def judge_rows(written: Sequence[Written]) -> Verdict:
    """Judge by the rows that a step reads with and without kept keys, for equal logits."""
    last = written[-1]
    cached, plain = last.cached_keys / last.length, last.plain_keys / last.length
    rule = (
        f"holds if a step reads one row in any case; only with kept keys if it does with them and "
        f"the logits are equal up to {ROUNDING}; fails otherwise"
    )
    numbers = (
        f"rows a step at {last.length} tokens: {cached:.1f} with kept keys, {plain:.1f} without"
    )
    if plain <= 1:
        return Verdict("holds", "", rule, numbers)
    if cached <= 1 and last.difference < ROUNDING:
        return Verdict("holds only if", "keys and values of earlier tokens are kept", rule, numbers)
    return Verdict("fails", "", rule, numbers)


def long_pair(bundle: Bundle, count: int, *, seed: int) -> tuple[Tensor, list[int]]:
    """Take the longest source of some new sentences, and the targets of all in a row."""
    examples = write_examples_of(count, seed=seed)
    source = bundle.tokenizer.encode_source(max((one.source for one in examples), key=len))
    target = [id_ for one in examples for id_ in bundle.tokenizer.encode_target(one.target)[:-1]]
    return torch.tensor([source]), target


def write_tokens(bundle: Bundle, source_1S: Tensor, ids: Sequence[int], *, repeats: int) -> Written:
    """Write given tokens with and without kept keys: count, time and compare.

    Args:
        bundle: the model.
        source_1S: what it translates.
        ids: the tokens.
        repeats: of the timing.
    """
    model = bundle.model
    read = torch.tensor([[bundle.tokenizer.config.target_start_id, *ids[:-1]]])
    memory_1SD = model.encode(source_1S)
    rows = {True: 0, False: 0}

    def run(is_cached: bool) -> list[Tensor]:
        cache = model.new_cache() if is_cached else None
        found = []
        for end in range(1, read.shape[1] + 1):
            new_1T = read[:, end - 1 : end] if is_cached else read[:, :end]
            rows[is_cached] += new_1T.shape[1]
            states_1TD = model.decode(new_1T, memory_1SD, cache=cache)
            found.append(model.logits(states_1TD[:, -1:])[0, 0])
        return found

    products, logits, keys = {}, {}, {}
    for is_cached in (True, False):
        with FlopCounterMode(display=False) as counter:
            logits[is_cached] = torch.stack(run(is_cached))
        keys[is_cached] = rows[is_cached]
        products[is_cached] = counter.get_total_flops() // 2
    off = (logits[True] - logits[False]).abs().max() / logits[False].std()
    return Written(
        read.shape[1],
        keys[True],
        keys[False],
        products[True],
        products[False],
        seconds_of(lambda: run(True), repeats=repeats),
        seconds_of(lambda: run(False), repeats=repeats),
        float(off),
    )


def _compare_keys(bundle: Bundle, source_1S: Tensor, target: list[int]) -> list[Kept]:
    """Compare the keys of a text without and with its last word."""
    model = bundle.model
    read_1T = torch.tensor([[bundle.tokenizer.config.target_start_id, *target[:8]]])
    memory_1SD = model.encode(source_1S)

    def keys_of(part: str, cut: int) -> dict[str, Tensor]:
        keeper = Keeper(("key",))
        if part == "encoder":
            model.encode(source_1S[:, : source_1S.shape[1] - cut], probe=keeper)
        else:
            model.decode(read_1T[:, : read_1T.shape[1] - cut], memory_1SD, probe=keeper)
        return {
            name: tensor for name, tensor in keeper.found.items() if name.endswith(".self.key")
        }  # fmt: skip

    changes: dict[str, list[float]] = {}
    for part in ("decoder", "encoder"):
        whole, shorter = keys_of(part, 0), keys_of(part, 1)
        changes[part] = [
            float((whole[name][:, :, :-1] - key).abs().max() / key.std())
            for name, key in shorter.items()
        ]
    return [
        Kept(layer, *numbers)
        for layer, numbers in enumerate(zip(changes["decoder"], changes["encoder"], strict=False))
    ]


def _costs(written: Sequence[Written]) -> Table:
    return Table(
        "Tokens written: keys of a layer, millions of products, time",
        ("tokens", "keys kept", "again", "products kept", "again", "ms kept", "again"),
        ("d", "d", "d", ",.1f", ",.1f", ".1f", ".1f"),
        tuple(
            (one.length, one.cached_keys, one.plain_keys, one.cached_products / 1e6,
             one.plain_products / 1e6, 1000 * one.cached_seconds, 1000 * one.plain_seconds)
            for one in written
        ),
        is_of_this_machine=True,
    )  # fmt: skip


def _keys(kept: Sequence[Kept]) -> Table:
    return Table(
        "Largest relative change of earlier words' keys when one word is added",
        ("layer", "decoder", "encoder"),
        ("d", ".1e", ".1e"),
        tuple((one.layer, one.decoder, one.encoder) for one in kept),
    )


def _plot(written: Sequence[Written]) -> Plot:
    lengths = tuple(float(one.length) for one in written)

    def panel(title: str, label: str, columns: tuple[str, str], scale: float) -> Panel:
        cached, plain = (
            tuple(scale * getattr(one, column) for one in written) for column in columns
        )
        return Panel(
            title, "tokens written", label,
            (
                Series("keys and values kept", lengths, cached, "accent"),
                Series("computed again", lengths, plain),
            ),
            x_log=True, y_log=True,
        )  # fmt: skip

    return Plot(
        (
            panel("Multiplications of the decoder", "millions",
                  ("cached_products", "plain_products"), 1e-6),
            panel("Time", "ms", ("cached_seconds", "plain_seconds"), 1000),
        )
    )  # fmt: skip
