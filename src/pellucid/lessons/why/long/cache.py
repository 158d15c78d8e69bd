"""Kept keys and values at full length: up to 256 tokens, and one step of the paper's decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import torch

from pellucid.config import ModelConfig
from pellucid.lessons.why.claims import cache as short
from pellucid.lessons.why.claims.cache import KEPT_SAYS, Written, long_pair, write_tokens
from pellucid.lessons.why.clock import seconds_of
from pellucid.lessons.why.fits import fit_power_law
from pellucid.lessons.why.intervals import interval
from pellucid.lessons.why.long.sums import mean, series_of, write
from pellucid.lessons.why.packaged import load_packaged
from pellucid.lessons.why.result import (
    Cell,
    Finding,
    Measurement,
    Panel,
    Plot,
    Statement,
    Table,
    Verdict,
)
from pellucid.lessons.why.setting import Setting
from pellucid.machine.randomness import generator
from pellucid.model import Transformer, initialize

LENGTHS = (4, 8, 16, 32, 64, 128, 256)
POSITIONS = (1, 4, 16, 64, 256, 1024, 2048)
SOURCE = 32
FASTER = 1.1

TIME_SAYS = Statement(KEPT_SAYS.text, KEPT_SAYS.place, f"{KEPT_SAYS.says}: it saves time")


@dataclass(frozen=True)
class Step:
    """The cost of writing one more token with the paper's decoder.

    Attributes:
        position: the token's place, from 1.
        cached: seconds with kept keys and values.
        plain: seconds if everything is computed again.
        kept_bytes: of the keys and values kept in self-attention up to this token.
    """

    position: int
    cached: float
    plain: float
    kept_bytes: int


def measure(setting: Setting) -> Measurement:
    """Write longer texts on three seeds, and time single steps of a large decoder."""
    quick = short.measure(replace(setting, size="toy" if setting.size == "toy" else "quick"))
    lengths = setting.choose(LENGTHS, (2, 5))
    runs = [
        [_written(length, seed, setting) for length in lengths] for seed in setting.seeds
    ]  # fmt: skip
    positions = setting.choose(POSITIONS, (1, 4, 16))
    steps = [[_step(position, seed, setting) for position in positions] for seed in setting.seeds]
    last, longest = runs[0][-1], steps[0][-1]
    saved = mean([run[-1].plain / run[-1].cached for run in steps])
    shape = _shape(setting)
    return Measurement(
        claim="cache",
        question=quick.question,
        number=f"For {last.length} tokens each layer computes {last.cached_keys} keys if it keeps "
        f"them and {last.plain_keys:,} if it does not. In a decoder of the paper's size token "
        f"{longest.position:,} takes {saved:.0f} times as long without them; with them it needs "
        f"{longest.kept_bytes / 2**20:.0f} MiB.",
        method=f"{quick.method} One step: a decoder of {shape.num_decoder_layers} layers of width "
        f"{shape.d_model} with random weights, which reads a source of {SOURCE} tokens and writes "
        "the token at a position; its vocabulary of 1,000 is smaller than the paper's. Exponents "
        "are fitted to the longer half.",
        findings=(*quick.findings, Finding(TIME_SAYS, judge_time(runs))),
        tables=(_written_table(runs), _step_table(steps), _exponents(runs, steps),
                *quick.tables[1:]),
        plot=_plot(runs, steps),
        notes=quick.notes,
        to_try=quick.to_try,
        seed=setting.seed,
        size=setting.size,
        machine=quick.machine,
    )  # fmt: skip


def judge_time(runs: Sequence[Sequence[Written]]) -> Verdict:
    """Judge by the length from which kept keys save time.

    Args:
        runs: for each seed the costs by length.
    """
    rule = (
        f"saves: without kept keys it takes {FASTER} times as long or longer, the interval above "
        "1; holds if that is so at every length, fails if not at the longest"
    )
    ratios = [
        interval([one.plain_seconds / one.cached_seconds for one in here])
        for here in zip(*runs, strict=True)
    ]
    lengths = [one.length for one in runs[0]]
    saves = [ratio.mean >= FASTER and ratio.low > 1 for ratio in ratios]
    numbers = "; ".join(
        f"{length} tokens: × {ratio}" for length, ratio in zip(lengths, ratios, strict=True)
    )
    if all(saves):
        return Verdict("holds", "", rule, numbers)
    if not saves[-1]:
        return Verdict("fails", "", rule, numbers)
    start = next(n for n in range(len(saves)) if all(saves[n:]))
    condition = f"the text has about {lengths[start]} tokens or more"
    return Verdict("holds only if", condition, rule, numbers)


def _written(length: int, seed: int, setting: Setting) -> Written:
    def make() -> dict[str, Any]:
        bundle = load_packaged()
        source, target = long_pair(bundle, setting.choose(60, 6), seed=seed)
        with torch.inference_mode():
            repeats = setting.choose(3, 1)
            return asdict(write_tokens(bundle, source, target[:length], repeats=repeats))

    return Written(**setting.cell(f"{length} tokens, seed {seed}", make, is_timed=True))


def _shape(setting: Setting) -> ModelConfig:
    sizes: dict[str, Any] = {"d_model": 512, "d_ff": 2048, "num_heads": 8, "num_decoder_layers": 6}
    if setting.size == "toy":
        sizes = {"d_model": 24, "d_ff": 40, "num_heads": 3, "num_decoder_layers": 2}
    fixed = {"num_encoder_layers": 1, "source_vocabulary_size": 1000,
             "target_vocabulary_size": 1000, "max_target_length": 4096}  # fmt: skip
    return ModelConfig.model_validate(sizes | fixed)


def _step(position: int, seed: int, setting: Setting) -> Step:
    key = f"step {position} of the paper's decoder, seed {seed}"
    make = partial(_time_step, position, seed, setting)
    return Step(**setting.cell(key, make, is_timed=True))


@torch.inference_mode()
def _time_step(position: int, seed: int, setting: Setting) -> dict[str, Any]:
    """Time one step with a cache of all tokens before it, and one pass over all of them."""
    model = Transformer(_shape(setting))
    initialize(model, seed)
    model.eval()
    numbers = generator(seed, "why cache", position)
    source_1S = torch.from_numpy(numbers.integers(4, 1000, (1, SOURCE)))
    read_1T = torch.from_numpy(numbers.integers(4, 1000, (1, position)))
    memory_1SD = model.encode(source_1S)
    cache = model.new_cache()
    if position > 1:
        model.decode(read_1T[:, :-1], memory_1SD, cache=cache)
    else:
        # The first step computes the source's keys, which all later ones have.
        model.decode(read_1T, memory_1SD, cache=cache)

    def cached() -> None:
        for layer in cache.layers:  # The same step again: forget the token that it added.
            layer.self_attention.length = position - 1
        model.logits(model.decode(read_1T[:, -1:], memory_1SD, cache=cache))

    def plain() -> None:
        model.logits(model.decode(read_1T, memory_1SD)[:, -1:])

    repeats = setting.choose(5, 1)
    seconds = seconds_of(cached, repeats=repeats), seconds_of(plain, repeats=repeats)
    config = model.config
    width = config.num_heads * (config.d_key + config.d_value)
    return asdict(Step(position, *seconds, 4 * position * width * config.num_decoder_layers))


def _written_table(runs: Sequence[Sequence[Written]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for here in zip(*runs, strict=True):
        one = here[0]
        rows.append((
            one.length, one.cached_keys, one.plain_keys, one.cached_products / 1e6,
            one.plain_products / 1e6,
            write([run.cached_seconds for run in here], scale=1000),
            write([run.plain_seconds for run in here], scale=1000),
        ))  # fmt: skip
    return Table(
        "Tokens written by the packaged model: keys of a layer, millions of products, time",
        ("tokens", "keys kept", "again", "products kept", "again", "ms kept", "again"),
        ("d", ",d", ",d", ",.1f", ",.1f", "", ""),
        tuple(rows),
        is_of_this_machine=True,
    )


def _step_table(steps: Sequence[Sequence[Step]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for here in zip(*steps, strict=True):
        rows.append((
            here[0].position,
            write([one.cached for one in here], scale=1000),
            write([one.plain for one in here], scale=1000),
            write([one.plain / one.cached for one in here]),
            here[0].kept_bytes / 2**20,
        ))  # fmt: skip
    return Table(
        "One step of a decoder of the paper's size, by the token's place",
        ("token", "ms kept", "again", "times", "MiB kept"),
        (",d", "", "", "", ".2f"),
        tuple(rows),
        is_of_this_machine=True,
    )


def _exponents(runs: Sequence[Sequence[Written]], steps: Sequence[Sequence[Step]]) -> Table:
    def fit(rows: Sequence[Any], place: str, column: str) -> float:
        late = rows[len(rows) // 2 :]
        late = late if len(late) > 1 else rows
        return fit_power_law(
            [getattr(one, place) for one in late], [getattr(one, column) for one in late]
        ).exponent

    def pair(all_rows: Sequence[Sequence[Any]], place: str, columns: tuple[str, str]) -> list[str]:
        return [write([fit(rows, place, column) for rows in all_rows]) for column in columns]

    return Table(
        "Exponents of the length",
        ("", "kept", "computed again"),
        ("", "", ""),
        (
            ("products of a whole text",
             *pair(runs, "length", ("cached_products", "plain_products"))),
            ("time of a whole text", *pair(runs, "length", ("cached_seconds", "plain_seconds"))),
            ("time of one step, paper's size", *pair(steps, "position", ("cached", "plain"))),
        ),
        is_of_this_machine=True,
    )  # fmt: skip


def _plot(runs: Sequence[Sequence[Written]], steps: Sequence[Sequence[Step]]) -> Plot:
    roles: tuple[Literal["accent", "plain"], ...] = ("accent", "plain")
    names = ("keys and values kept", "computed again")

    def panel(
        title: str, labels: tuple[str, str], rows: Sequence[Sequence[Any]], place: str,
        columns: tuple[str, str], scale: float,
    ) -> Panel:  # fmt: skip
        places = [getattr(one, place) for one in rows[0]]
        lines = tuple(
            series_of(name, places, [[getattr(one, column) for one in here]
                                     for here in zip(*rows, strict=True)], role, scale=scale)
            for name, column, role in zip(names, columns, roles, strict=True)
        )  # fmt: skip
        return Panel(title, *labels, lines, x_log=True, y_log=True)

    return Plot(
        (
            panel("Multiplications, packaged model", ("tokens written", "millions"), runs,
                  "length", ("cached_products", "plain_products"), 1e-6),
            panel("Time, packaged model", ("tokens written", "ms"), runs, "length",
                  ("cached_seconds", "plain_seconds"), 1000),
            panel("Time of one token, paper's size", ("the token's place", "ms"), steps,
                  "position", ("cached", "plain"), 1000),
        )
    )  # fmt: skip
