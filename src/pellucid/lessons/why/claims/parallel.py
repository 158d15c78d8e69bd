"""Training in one pass: against a loop over words, against recurrence, and against own words."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.decode.greedy import decode_greedily
from pellucid.lessons.why.cells import (
    Cells,
    Column,
    Row,
    decide,
    judge_seeds,
    measure_cells,
    write_small,
)
from pellucid.lessons.why.clock import seconds_of, thread_seconds
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import (
    END,
    FORMS,
    PAD,
    START,
    Form,
    Pair,
    Tiny,
    Updates,
    count_exact,
    make_form,
    make_pair_batch,
    make_tiny,
    make_transformer,
)
from pellucid.lessons.why.tiny.random_letters import LETTERS, draw_letters
from pellucid.lessons.why.tiny.tiny_language import draw_statements
from pellucid.machine.hardware import some_threads
from pellucid.machine.randomness import generator
from pellucid.model import Transformer

MASSIVE = 10.0
"""Times as fast that count as massive."""
AT_ALL = 1.5
"""Times as fast from which the slower way counts as inefficient."""
SAME = 1e-6
SENTENCE = 16
"""Words at which one pass is judged, and tokens of a short text next to a long one."""
ROWS = 16
WIDTH = 128
TOKENS = 2048
NATIVE = "recurrent layer of PyTorch"


def measure(setting: MeasurementSetting) -> Found:
    """Time one pass against a loop; in the long form also recurrent models, and own words."""
    measured = measure_cells(
        setting, "one pass and loop", lambda seed: _race_all(setting, seed), is_timed=True
    )
    races = average_races(measured)
    first = races.rows[0]
    last = races.rows[-1]
    judged = _judged(races)
    found = Found(
        "in training the correct translation is known, so that a Transformer can predict all its "
        "words at once, or word by word. Both give the same gradients, and so the same model. With "
        f"{last['length']} words, all at once is {last['speedup']:.0f} times as fast. With "
        f"{first['length']} words, it is {first['speedup']:.1f} times as fast. A sentence of "
        f"{judged['length']} words decides: there it is {judged['speedup']:.1f} times as fast",
        f"A decoder of two layers, d = {setting.choose(WIDTH, 16)}, reads {ROWS} targets with "
        "teacher forcing, forward and backward. In one pass, the look-ahead mask lets each row "
        "see only the words up to its own. In the loop, word t is predicted from a decoder "
        "that reads words 1 to t only, and gradients are summed. The encoder's output is given.",
        verdicts={"one-pass": judge_seeds(lambda one: judge(average_races(one)), measured)},
        tables=(_tabulate_races(races),),
        panels=_draw_races(races),
    )
    return _add_sequence(setting, found) if setting.is_long else found


def _add_sequence(setting: MeasurementSetting, found: Found) -> Found:
    """Time recurrent models next to the Transformer, and train on own words."""
    lengths = setting.choose((8, 16, 32, 64, 128, 256), (3, 5))
    speeds = _measure_speeds(setting, "update", _time_update, tuple(FORMS), lengths)
    encoders = _measure_speeds(
        setting, "encoder", _time_encoder, ("fixed vector", NATIVE, "Transformer"), lengths
    )
    own = _learn(setting, setting.choose((120, 300), (3,)))
    short, long = _judged_lengths(lengths)
    return found.plus(
        ". A recurrent network has no choice and must read word by word. Recurrent networks with "
        "and without attention were trained, and a Transformer was compared with the fastest of "
        f"them. On texts of {long} tokens the Transformer trains {_ratio(speeds, long):.1f} times "
        f"as fast. On texts of {short} tokens it trains {_ratio(speeds, short):.1f} times as fast, "
        "where 1 means equally fast. Then only the encoders were compared, that of the Transformer "
        "with PyTorch's recurrent layer, which is faster than the one trained here. On texts of "
        f"{long} tokens the Transformer's encoder is {_ratio(encoders, long):.1f} times as fast",
        f" Models of equal size, d = {WIDTH}, one layer on either side, make updates on "
        f"batches of about {TOKENS:,} source and as many target letters, all of one length. "
        "Next to them only encoders, forward and backward: the cell of this project, a loop in "
        "Python, and PyTorch's own layer of gated units, a loop in C++. "
        "Last, tiny Transformers learn statements on the correct words, or on words that they "
        "write themselves first.",
        verdicts={"sequence": judge_seeds(judge_sequence, speeds, encoders)},
        tables=[
            _tabulate_speeds("1,000 tokens per second, whole updates", speeds),
            _tabulate_speeds(
                "1,000 tokens per second, encoder only, forward and backward", encoders
            ),
            own.table(
                "Training a Transformer on statements",
                ("budget", "kind"),
                (
                    Column("updates", "updates"),
                    Column("seconds", "seconds"),
                    Column("right, %", "exact", scale=100),
                ),
                head=("updates on correct words", "learned from"),
                is_of_this_machine=True,
            ),
        ],
        panels=[
            speeds.panel(
                "Training",
                ("tokens of source and target", "1,000 tokens a second"),
                {"Transformer": {"form": "Transformer"}, **speeds.each("form")},
                "length",
                "speed",
                scale=1e-3,
                x_log=True,
                y_log=True,
            )
        ],
    )


def judge(races: Cells) -> Verdict:
    """Judge by the speedup at a length chosen before, if loss and gradient are the same."""
    off = 0.0
    for race in races.rows:
        between_losses = abs(race["pass_loss"] - race["loop_loss"]) / race["loop_loss"]
        off = max(off, race["gradient_difference"], between_losses)
    judged = _judged(races)
    written = ", ".join(f"{race['speedup']:.1f}× at {race['length']}" for race in races.rows)
    return decide(
        f"massive is {MASSIVE:.0f} times; holds if one pass is that much faster for "
        f"{judged['length']} words "
        "and gives the same gradient, fails otherwise",
        f"{written} words; largest relative difference {off:.0e}".replace("e-", "e−"),
        f"All {judged['length']} words at once are {judged['speedup']:.1f} times as fast as word "
        f"by word. That length, about a sentence, was chosen before measuring. Massive means at "
        f"least {MASSIVE:.0f} times. Both ways must give the same gradients, and they differ by at "
        f"most {write_small(off)} times their size. Up to {write_small(SAME)} is rounding.",
        fails=off > SAME or judged["speedup"] < MASSIVE,
    )


def _judged(races: Cells) -> Row:
    """Find the race at the length chosen before measuring; a toy run has other lengths."""
    return next((race for race in races.rows if race["length"] == SENTENCE), races.rows[-1])


def judge_sequence(speeds: Cells, encoders: Cells) -> Verdict:
    """Judge by the speed of the Transformer next to that of the fastest recurrent form.

    Args:
        speeds: of whole updates.
        encoders: of encoders only, among them PyTorch's own recurrent layer.
    """
    lengths = sorted(speeds.values("length"))
    ratios = {length: (_ratio(speeds, length), _ratio(encoders, length)) for length in lengths}
    short, long = _judged_lengths(lengths)
    is_slow = [min(ratios[length]) >= AT_ALL for length in (short, long)]
    return decide(
        f"inefficient means that the Transformer reads {AT_ALL} times as many tokens a second as "
        "the fastest recurrent form, in whole updates, and in encoders with PyTorch's own layer; "
        f"holds if so at {short} and at {long} tokens, only for long texts if at the latter only, "
        "fails otherwise",
        "times as fast as the fastest recurrence, of updates and of encoders: "
        + ", ".join(f"{a:.1f} and {b:.1f} at {length}" for length, (a, b) in ratios.items()),
        "Speeds were compared twice, of whole networks and of encoders only. With "
        f"{long} tokens the whole Transformer is {ratios[long][0]:.1f} times as fast as the "
        f"fastest recurrent network. Its encoder is {ratios[long][1]:.1f} times as fast. With "
        f"{short} tokens the whole Transformer is {ratios[short][0]:.1f} times as fast. Its "
        f"encoder is {ratios[short][1]:.1f} times as fast. To hold, each must be {AT_ALL} times "
        "or more.",
        fails=not is_slow[-1],
        unless={f"texts are long ({lengths[-1]} tokens)": not is_slow[0]},
    )


def _judged_lengths(lengths: Sequence[int]) -> tuple[int, int]:
    return SENTENCE if SENTENCE in lengths else lengths[0], lengths[-1]


def _ratio(cells: Cells, length: int) -> float:
    """Divide the Transformer's speed by that of the fastest recurrent form."""
    here = cells.where(length=length)
    found = {form: here.mean("speed", form=form) for form in here.values("form")}
    return found.pop("Transformer") / max(found.values())


def _race_all(setting: MeasurementSetting, seed: int) -> list[dict[str, Any]]:
    """Time one pass and a loop for each length."""
    width = setting.choose(WIDTH, 16)
    model = make_transformer(
        seed,
        d_model=width,
        d_ff=2 * width,
        num_heads=4,
        num_encoder_layers=2,
        num_decoder_layers=2,
        source_vocabulary_size=500,
        target_vocabulary_size=500,
    )
    found = []
    for length in setting.choose((4, 8, 16, 32, 64), (2, 5)):
        setting.say(f"{length} words")
        repeats = setting.choose(3, 1)
        # A loop over many words takes so long that little disturbs it.
        loop_repeats = setting.choose(3 if length < 32 else 1, 1)
        found.append(_race(model, length, seed, repeats, loop_repeats))
    return found


def _race(
    model: Transformer, length: int, seed: int, repeats: int, loop_repeats: int
) -> dict[str, Any]:
    """Time forward and backward for all words at once, and for one word after another.

    Returns:
        Seconds and mean loss of each, and the largest difference between both gradients, as a share
        of the largest gradient.
    """
    numbers = generator(seed, "why parallel", length)
    d_model = model.config.d_model
    memory_BSD = torch.from_numpy(numbers.standard_normal((ROWS, length, d_model), dtype="float32"))
    ids_BT = torch.from_numpy(numbers.integers(4, 500, (ROWS, length + 1)))
    # Compared in double precision: rounding decides for some units whether ReLU passes them.
    exact = copy.deepcopy(model).double()
    pass_loss = _one_pass(exact, memory_BSD.double(), ids_BT)
    whole = _gradients(exact)
    loop_loss = _loop(exact, memory_BSD.double(), ids_BT)
    off = max(float((a - b).abs().max()) for a, b in zip(whole, _gradients(exact), strict=True))
    return {
        "length": length,
        "pass_seconds": seconds_of(lambda: _one_pass(model, memory_BSD, ids_BT), repeats=repeats),
        "loop_seconds": seconds_of(lambda: _loop(model, memory_BSD, ids_BT), repeats=loop_repeats),
        "pass_loss": pass_loss,
        "loop_loss": loop_loss,
        "gradient_difference": off / max(float(gradient.abs().max()) for gradient in whole),
    }


def _one_pass(model: Transformer, memory_BSD: Tensor, ids_BT: Tensor) -> float:
    """Compute loss and gradient of all words at once."""
    model.zero_grad(set_to_none=True)
    logits_BTV = model.logits(model.decode(ids_BT[:, :-1], memory_BSD))
    loss = F.cross_entropy(logits_BTV.flatten(0, 1), ids_BT[:, 1:].flatten())
    loss.backward()  # type: ignore[no-untyped-call]
    return float(loss.detach())


def _loop(model: Transformer, memory_BSD: Tensor, ids_BT: Tensor) -> float:
    """Compute the same from the words before each word, one word after another."""
    model.zero_grad(set_to_none=True)
    length = ids_BT.shape[1] - 1
    total = 0.0
    for end in range(1, length + 1):
        states_BTD = model.decode(ids_BT[:, :end], memory_BSD)
        logits_B1V = model.logits(states_BTD[:, -1:])
        # Each step's share of the mean, so that the summed gradients are those of one pass.
        loss = F.cross_entropy(logits_B1V[:, 0], ids_BT[:, end]) / length
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    return total


def _gradients(model: Transformer) -> list[Tensor]:
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def average_races(cells: Cells) -> Cells:
    """Average races of the same length over seeds; the largest difference counts."""
    names = ("pass_seconds", "loop_seconds", "pass_loss", "loop_loss")
    rows = []
    for length in cells.values("length"):
        row = {name: cells.mean(name, length=length) for name in names}
        off = max(cells.all("gradient_difference", length=length))
        rows.append({"length": length, "seed": 0, **row, "gradient_difference": off})
    return Cells(tuple(rows)).add(speedup=lambda row: row["loop_seconds"] / row["pass_seconds"])


def _tabulate_races(races: Cells) -> ResultTable:
    columns = (
        Column("one pass, ms", "pass_seconds", ".1f", 1000),
        Column("loop, ms", "loop_seconds", ".1f", 1000),
        Column("times", "speedup", ".1f"),
        Column("loss in one pass", "pass_loss", ".6f"),
        Column("in the loop", "loop_loss", ".6f"),
    )
    return races.table(
        "Forward and backward", "length", columns, head="words", is_of_this_machine=True
    )


def _draw_races(races: Cells) -> tuple[Panel, Panel]:
    races = races.add(words=lambda row: row["length"])
    reference = races.line("as many times as words", "length", "words", "faint")
    return (
        races.panel(
            "Forward and backward",
            ("words of the target", "ms"),
            {"one pass": "pass_seconds", "word by word": "loop_seconds"},
            "length",
            scale=1000,
            x_log=True,
            y_log=True,
        ),
        races.panel(
            "Times faster",
            ("words of the target", "time of the loop ÷ time of one pass"),
            {"measured": {}},
            "length",
            "speedup",
            more=[reference],
            x_log=True,
        ),
    )


def _measure_speeds(
    setting: MeasurementSetting, what: str, time: Any, forms: Sequence[str], lengths: Sequence[int]
) -> Cells:
    return measure_cells(
        setting,
        f"{what}, {{form}}, {{length}} letters, d = {WIDTH}",
        time,
        read=lambda speed: {"speed": speed},
        is_timed=True,
        form=forms,
        length=lengths,
    )


def _time_update(form: Form, length: int, seed: int) -> float:
    """Time an update: source tokens per second."""
    tiny = make_form(form, LETTERS, seed=seed, d_model=WIDTH, d_ff=2 * WIDTH)
    rows = max(1, TOKENS // length)
    batch = draw_letters("copy", length, rows=rows, numbers=generator(seed, "why speed", length))
    # Without dropout and smoothing, which would take time as well.
    updating = Updates(tiny, TrainingConfig(seed=seed, label_smoothing=0.0, dropout=0.0))
    return batch.num_source_tokens / seconds_of(lambda: updating.make(batch), repeats=3)


def _time_encoder(form: Any, length: int, seed: int) -> float:
    """Time an encoder forward and backward: tokens per second."""
    rows = max(1, TOKENS // length)
    numbers = generator(seed, "why encoder speed", length)
    batch = draw_letters("copy", length, rows=rows, numbers=numbers)
    if form == NATIVE:
        # Recurrence at its fastest: a loop in C++, where this project's cell is one in Python.
        layer = nn.GRU(WIDTH, WIDTH, batch_first=True)
        embedding = nn.Embedding(12, WIDTH)

        def read() -> Tensor:
            states_BSD: Tensor = layer(embedding(batch.source_BS))[0]
            return states_BSD
    else:
        model = make_form(form, LETTERS, seed=seed, d_model=WIDTH, d_ff=2 * WIDTH).model

        def read() -> Tensor:
            return model.encode(batch.source_BS)

    def run() -> None:
        loss: Any = read().square().mean()
        loss.backward()

    return batch.num_source_tokens / seconds_of(run, repeats=3)


def _tabulate_speeds(title: str, speeds: Cells) -> ResultTable:
    columns = speeds.columns("form", "speed", scale=1e-3)
    return speeds.table(title, "length", columns, head="tokens", is_of_this_machine=True)


def _learn(setting: MeasurementSetting, budgets: Sequence[int]) -> Cells:
    """Train on correct words, on own words, and on own words in the time of the first."""
    count, tests = setting.choose((4000, 200), (60, 11))

    def run(seed: int, steps: int, *, is_own: bool) -> dict[str, float]:
        train = draw_statements(count, seed=seed, part="train")
        test = draw_statements(tests, seed=seed, part="test")
        tiny = make_tiny([*train, *test], seed=seed)
        seconds = train_on(tiny, train, is_own=is_own, updates=steps, seed=seed)
        return {"updates": steps, "seconds": seconds, "exact": count_exact(tiny, test)}

    def in_equal_time(budget: int, seed: int) -> dict[str, float]:
        (ours,) = own.all("seconds", budget=budget, seed=seed)
        (theirs,) = gold.all("seconds", budget=budget, seed=seed)
        return run(seed, max(1, round(budget * theirs / ours)), is_own=True)

    def cells_of(key: str, make: Any) -> Cells:
        return measure_cells(setting, key, make, is_timed=True, budget=budgets)

    gold = cells_of(
        "on correct words, {budget} updates", lambda budget, seed: run(seed, budget, is_own=False)
    )
    own = cells_of(
        "on own words, {budget} updates", lambda budget, seed: run(seed, budget, is_own=True)
    )
    timed = cells_of(
        "on own words, in the time of {budget} updates on correct words", in_equal_time
    )
    kinds = {"correct words": gold, "own words": own, "own words, equal time": timed}
    rows = []
    for budget in budgets:
        for kind, found in kinds.items():
            rows += [{"kind": kind, **row} for row in found.where(budget=budget).rows]
    return Cells(tuple(rows))


def train_on(
    tiny: Tiny, pairs: Sequence[Pair], *, is_own: bool, updates: int, seed: int, rows: int = 64
) -> float:
    """Train a model in place on the correct words before each word, or on its own.

    Args:
        tiny: the model.
        pairs: the text.
        is_own: True lets the model write each translation first, and reads that; False reads the
            correct one (teacher forcing). Either is corrected by the correct words.
        updates: to make.
        seed: decides the order of the text.
        rows: pairs in each batch.

    Returns:
        Processor time of one thread, in seconds.
    """
    sources = tiny.source.encode_all([source for source, _ in pairs])
    targets = tiny.target.encode_all([target for _, target in pairs])
    training = TrainingConfig(
        seed=seed,
        learning_rate=3e-3,
        warmup_steps=max(1, updates // 10),
        max_steps=updates,
        schedule="linear",
        label_smoothing=0.0,
        dropout=0.0,
    )
    updating = Updates(tiny, training)
    numbers = generator(seed, "tiny own")
    seconds = 0.0
    with some_threads(1):  # The time of a thread counts only what this one computes.
        for _ in range(updates):
            chosen = numbers.permutation(len(pairs))[:rows]
            started = thread_seconds()
            batch = make_pair_batch([sources[i] for i in chosen], [targets[i] for i in chosen])
            updating.make(put_own_words(tiny, batch) if is_own else batch)
            seconds += thread_seconds() - started
    return seconds


@torch.no_grad()
def put_own_words(tiny: Tiny, batch: Batch) -> Batch:
    """Let a model write, word by word, and give its decoder those words to read.

    A translation that ends early continues with its end token, so that each correct word is
    still asked for.
    """
    length = batch.target_in_BT.shape[1]
    found = decode_greedily(
        tiny.model,
        batch.source_BS,
        batch.source_mask_BS,
        start_id=START,
        eos_id=END,
        max_lengths=[length] * len(batch.source_BS),
    )
    rows = [[START, *one.ids, *[END] * length][:length] for one in found]
    own_BT = torch.tensor(rows).masked_fill(~batch.target_mask_BT, PAD)
    return replace(batch, target_in_BT=own_BT)
