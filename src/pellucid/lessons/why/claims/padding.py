"""Padding: whether it leaves the words of a sentence as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.decode.greedy import decode_greedily
from pellucid.inside.pair import Keeper
from pellucid.lessons.why.cells import (
    PERCENT,
    Cells,
    Column,
    decide,
    judge_seeds,
    measure_cells,
    write_small,
)
from pellucid.lessons.why.packaged import load_packaged, packaged_name, write_examples_of
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.text.tokenizers.whole_words import JOINER

ROUNDING = 1e-4
"""A relative difference below this is rounding."""
SHOWN = "The pizza is good."
"""The sentence whose weights are shown."""
NUM_SHOWN = 2
"""Its padding tokens."""


def measure(setting: MeasurementSetting) -> Found:
    """Translate sentences with more and more padding, with and without its mask."""
    amounts = setting.choose((1, 2, 4, 8, 16, 32, 64), (1, 8), (1, 2, 4, 8, 16, 32, 64, 128))
    drawn, most = setting.choose((600, 100), (40, 5))
    cells = measure_cells(
        setting,
        f"{packaged_name()}, padding of {', '.join(map(str, amounts))}, of {drawn} sentences "
        f"{most}",
        lambda seed: pad_more(amounts, (drawn, most), seed=seed),
        is_quick=True,
    )
    masked = cells.mean("masked_changed", num_padding=amounts[-1])
    opened = cells.mean("open_changed", num_padding=amounts[-1])
    maps = {
        "masked": look_at_padding(is_open=False),
        "not masked": look_at_padding(is_open=True),
    }
    return Found(
        "padding is empty tokens that make all sentences of a batch equally long. The small "
        "translator `demo` translated new sentences with and without padding. If a mask forbids "
        f"words to attend to them, {amounts[-1]} such tokens change {masked:.0%} of the "
        f"translations. Without the mask they change {opened:.0%}",
        f"The packaged model translates up to {most} new sentences of one length for each seed: as "
        "they are, with padding that no token may attend to, and with padding that all may attend "
        "to. Differences are the largest in the encoder's output of any word, divided by the root "
        "mean square of the outputs. The verdict is about all seeds.",
        {"lengths": judge_seeds(judge, cells)},
        (
            _table(cells),
            *(
                ResultTable(
                    f"Weights of the encoder's last layer, head 0, padding {name}",
                    ("reads", *tokens),
                    ("", *(".2f" for _ in tokens)),
                    tuple((token, *row) for token, row in zip(tokens, rows, strict=True)),
                )
                for name, (tokens, rows) in maps.items()
            ),
        ),
        (
            _panel(cells, "Translations that change", "%", "changed", 100),
            _panel(
                cells,
                "Difference of the encoder's output",
                "share of its root mean square",
                "difference",
                1,
            ),
            _draw_row(maps),
        ),
    )


@torch.inference_mode()
def pad_more(
    amounts: Sequence[int], sizes: tuple[int, int], *, seed: int
) -> list[dict[str, float]]:
    """Translate sentences of one length with more and more padding.

    Args:
        amounts: padding tokens after each sentence.
        sizes: sentences to draw, and the most to take of those of the commonest length.
        seed: of the sentences.

    Returns:
        For each amount the largest difference in the encoder's output of a word, as a share of the
        outputs' root mean square, and the share of translations that change: if padding is masked,
        and if words may attend to it (``open``).
    """
    bundle = load_packaged()
    source_BS = equally_long(bundle, sizes, seed)
    plain_BSD = bundle.model.encode(source_BS)
    expected = _translate(bundle, source_BS, torch.ones_like(source_BS, dtype=torch.bool))
    found = []
    for amount in amounts:
        padding_BX = source_BS.new_full((len(source_BS), amount), bundle.tokenizer.config.pad_id)
        padded_BS = torch.cat((source_BS, padding_BX), dim=1)
        row: dict[str, float] = {"num_padding": amount}
        for name in ("masked", "open"):
            mask_BS = torch.ones_like(padded_BS, dtype=torch.bool)
            # True = may be attended to.
            mask_BS[:, source_BS.shape[1] :] = name == "open"
            memory_BSD = bundle.model.encode(padded_BS, mask_BS)[:, : source_BS.shape[1]]
            # Only the real words are compared.
            off = (memory_BSD - plain_BSD).abs().max() / plain_BSD.square().mean().sqrt()
            written = _translate(bundle, padded_BS, mask_BS)
            changed = sum(a != b for a, b in zip(written, expected, strict=True))
            row[f"{name}_difference"] = float(off)
            row[f"{name}_changed"] = changed / len(expected)
        found.append(row)
    return found


@torch.inference_mode()
def look_at_padding(*, is_open: bool) -> tuple[list[str], list[list[float]]]:
    """Take the weights of the encoder's last layer, head 0, in a sentence with padding.

    Returns:
        The tokens, and a row of weights for each.
    """
    bundle = load_packaged()
    ids = bundle.tokenizer.encode_source(SHOWN)
    padded_1S = torch.tensor([[*ids, *[bundle.tokenizer.config.pad_id] * NUM_SHOWN]])
    mask_1S = torch.ones_like(padded_1S, dtype=torch.bool)
    mask_1S[:, len(ids) :] = is_open
    site = f"encoder.{bundle.model.config.num_encoder_layers - 1}.self"
    keeper = Keeper(("weights",), (site,))
    bundle.model.encode(padded_1S, mask_1S, probe=keeper)
    read = bundle.tokenizer.source_tokens(padded_1S[0].tolist())
    tokens = [token.removeprefix(JOINER) for token in read]
    rows: list[list[float]] = keeper.found[f"{site}.weights"][0, 0].tolist()
    return tokens, rows


def _table(cells: Cells) -> ResultTable:
    return cells.table(
        "Difference of the encoder's output, and translations that change",
        "num_padding",
        (
            Column("masked", "masked_difference", ".1e"),
            Column("changed, %", "masked_changed", ".0f", 100),
            Column("not masked", "open_difference", ".1e"),
            Column("changed, %", "open_changed", ".0f", 100),
        ),
        head="padding",
    )


def _draw_row(maps: Mapping[str, tuple[list[str], list[list[float]]]]) -> Panel:
    """Draw the row of the second token, whose weights padding would share."""
    tokens = maps["masked"][0]
    rows = Cells(tuple({"mask": name, "row": rows[1]} for name, (_, rows) in maps.items()))
    return rows.panel(
        f"Weights of “{tokens[1]}”, last layer, head 0",
        ("attended to", "share of the row"),
        {name: {"mask": name} for name in ("not masked", "masked")},
        range(len(tokens)),
        "row",
        kind="bars",
        names=tuple(tokens),
        y_range=(0, 1),
    )


def judge(cells: Cells) -> Verdict:
    """Judge by what padding changes, with and without its mask."""
    masked = max(cells.all("masked_difference"))
    masked_changed = max(cells.all("masked_changed"))
    opened = max(cells.all("open_difference"))
    open_changed = max(cells.all("open_changed"))
    return decide(
        f"a relative difference below {ROUNDING} and no changed translation is harmless; holds if "
        "padding is harmless even without its mask, fails if it is not even with it",
        f"masked: difference {masked:.1e}, {masked_changed:.0%} changed; not masked: "
        f"{opened:.1e}, {open_changed:.0%} changed".replace("e-", "e−"),
        "With the mask, the numbers that the encoder makes of a word differ by at most "
        f"{write_small(masked)} of their usual size. Up to {ROUNDING} is rounding. Of the "
        f"translations {masked_changed:.0%} change. Without the mask, {open_changed:.0%} of the "
        "translations change. To hold, none may change even without the mask.",
        fails=masked >= ROUNDING or masked_changed > 0,
        unless={"padding is masked": opened >= ROUNDING or open_changed > 0},
    )


def equally_long(bundle: Bundle, sizes: tuple[int, int], seed: int) -> Tensor:
    """Take sentences of one length, so that the batch itself has no padding."""
    drawn, most = sizes
    examples = write_examples_of(drawn, seed=seed)
    encoded = [bundle.tokenizer.encode_source(one.source) for one in examples]
    ((commonest, _),) = Counter(map(len, encoded)).most_common(1)
    return torch.tensor([ids for ids in encoded if len(ids) == commonest][:most])


def _translate(bundle: Bundle, source_BS: Tensor, mask_BS: Tensor) -> list[tuple[int, ...]]:
    special = bundle.tokenizer.config
    found = decode_greedily(
        bundle.model,
        source_BS,
        mask_BS,
        start_id=special.target_start_id,
        eos_id=special.eos_id,
        # Longer than any sentence of the corpus; without its mask, padding may keep a model from
        # ending.
        max_lengths=[40] * len(source_BS),
    )
    return [one.ids for one in found]


def _panel(cells: Cells, title: str, label: str, what: str, scale: float) -> Panel:
    is_share = label == "%"
    return cells.panel(
        title,
        ("padding tokens after each sentence", label),
        {"not masked": f"open_{what}", "masked": f"masked_{what}"},
        "num_padding",
        scale=scale,
        x_log=True,
        y_log=not is_share,
        y_range=PERCENT if is_share else None,
    )
