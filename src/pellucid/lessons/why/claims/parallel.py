"""Training in one pass: the same loss as word by word, in less time."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid.config import ModelConfig
from pellucid.lessons.why.clock import seconds_of
from pellucid.lessons.why.result import (
    NOTES,
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
from pellucid.machine.randomness import generator
from pellucid.model import Transformer, initialize

MASSIVE, AT_ALL = 10.0, 1.5
SAME = 1e-6
ROWS = 16
WIDTHS = (128, 16)

SAYS = Statement(
    NOTES,
    "section 4.2",
    "the entire sequence is computed in parallel, massively improving training efficiency",
)


@dataclass(frozen=True)
class Race:
    """One pass and a loop over the words of a target.

    Attributes:
        length: words of the target.
        pass_seconds: forward and backward for all words at once.
        loop_seconds: forward and backward for one word after another, from the words before it.
        pass_loss: the mean loss of the words.
        loop_loss: the same, word by word.
        gradient_difference: the largest difference between both gradients, as a share of the
            largest gradient.
    """

    length: int
    pass_seconds: float
    loop_seconds: float
    pass_loss: float
    loop_loss: float
    gradient_difference: float

    @property
    def speedup(self) -> float:
        """The number of times that one pass is faster."""
        return self.loop_seconds / self.pass_seconds


def measure(setting: Setting) -> Measurement:
    """Time forward and backward in one pass and in a loop, for targets of 4 to 64 words."""
    found = make_races(setting)
    width = setting.choose(*WIDTHS)
    last = found[-1]
    return Measurement(
        claim="parallel",
        question="How much faster is one pass than word by word?",
        number=f"For {last.length} words one pass takes {1000 * last.pass_seconds:.0f} ms and a "
        f"loop {1000 * last.loop_seconds:.0f} ms: {last.speedup:.0f} times as long, with the same "
        "gradient.",
        method=f"A decoder of two layers, d = {width}, reads {ROWS} targets with teacher forcing, "
        "forward and backward. In one pass, the look-ahead mask lets each row see only the words "
        "up to its own. In the loop, word t is predicted from a decoder that reads words 1 to t "
        "only, and gradients are summed. The encoder's output is given.",
        findings=(Finding(SAYS, judge(found)),),
        tables=(tabulate_races(found),),
        plot=plot_races(found),
        notes=(
            "The loop reads a target of n words in n passes over 1 to n words, n(n + 1)/2 rows "
            "instead of n. Only teacher forcing makes one pass possible: in decoding the next word "
            "is not known yet.",
        ),
        to_try=("pellucid why cache", "pellucid inspect demo --draw training"),
        seed=setting.seed,
        size=setting.size,
        machine=describe_machine(),
    )


def make_races(setting: Setting) -> list[Race]:
    """Time one pass and a loop for each length."""
    width = setting.choose(*WIDTHS)
    config = ModelConfig.model_validate(
        {"d_model": width, "d_ff": 2 * width, "num_heads": 4, "num_encoder_layers": 2}
        | {"num_decoder_layers": 2, "source_vocabulary_size": 500, "target_vocabulary_size": 500}
    )
    model = Transformer(config)
    initialize(model, setting.seed)
    found = []
    for length in setting.choose((4, 8, 16, 32, 64), (2, 5)):
        setting.say(f"{length} words")
        found.append(_race(model, length, setting))
    return found


def judge(found: Sequence[Race]) -> Verdict:
    """Judge by the speedup of the longest target, if loss and gradient are the same."""
    rule = (
        f"massive is {MASSIVE:.0f} times; holds if one pass is that much faster at every length, "
        f"fails if it is not even {AT_ALL} times faster at the longest, or gives another gradient"
    )
    off = max(
        max(one.gradient_difference, abs(one.pass_loss - one.loop_loss) / one.loop_loss)
        for one in found
    )
    speeds = ", ".join(f"{one.speedup:.1f}× at {one.length}" for one in found)
    numbers = f"{speeds} words; largest relative difference {off:.0e}".replace("e-", "e−")
    if off > SAME or found[-1].speedup < AT_ALL:
        return Verdict("fails", "", rule, numbers)
    if min(one.speedup for one in found) >= MASSIVE:
        return Verdict("holds", "", rule, numbers)
    enough = next((one.length for one in found if one.speedup >= MASSIVE), None)
    condition = (
        f"targets have more than {found[-1].length} words"
        if enough is None
        else f"targets have about {enough} words or more"
    )
    return Verdict("holds only if", condition, rule, numbers)


def _race(model: Transformer, length: int, setting: Setting) -> Race:
    numbers = generator(setting.seed, "why parallel", length)
    d_model = model.config.d_model
    memory_BSD = torch.from_numpy(numbers.standard_normal((ROWS, length, d_model), dtype="float32"))
    ids_BT = torch.from_numpy(numbers.integers(4, 500, (ROWS, length + 1)))
    # Compared in double precision: rounding decides for some units whether ReLU passes them.
    exact = copy.deepcopy(model).double()
    pass_loss = _one_pass(exact, memory_BSD.double(), ids_BT)
    whole = _gradients(exact)
    loop_loss = _loop(exact, memory_BSD.double(), ids_BT)
    largest = max(float(gradient.abs().max()) for gradient in whole)
    off = max(
        float((a - b).abs().max()) for a, b in zip(whole, _gradients(exact), strict=True)
    )  # fmt: skip
    return Race(
        length,
        seconds_of(lambda: _one_pass(model, memory_BSD, ids_BT), repeats=setting.choose(3, 1)),
        seconds_of(
            lambda: _loop(model, memory_BSD, ids_BT),
            repeats=setting.choose(3 if length < 32 else 1, 1),
        ),
        pass_loss,
        loop_loss,
        off / largest,
    )


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
        loss = F.cross_entropy(logits_B1V[:, 0], ids_BT[:, end]) / length
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    return total


def _gradients(model: Transformer) -> list[Tensor]:
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def tabulate_races(found: Sequence[Race]) -> Table:
    """Tabulate times and losses by length."""
    return Table(
        "Forward and backward",
        ("words", "one pass, ms", "loop, ms", "times", "loss in one pass", "in the loop"),
        ("d", ".1f", ".1f", ".1f", ".6f", ".6f"),
        tuple(
            (one.length, 1000 * one.pass_seconds, 1000 * one.loop_seconds, one.speedup,
             one.pass_loss, one.loop_loss)
            for one in found
        ),
        is_of_this_machine=True,
    )  # fmt: skip


def plot_races(found: Sequence[Race]) -> Plot:
    """Draw times and speedups by length."""
    lengths = tuple(float(one.length) for one in found)
    time = Panel(
        "Forward and backward", "words of the target", "ms",
        (
            Series("one pass", lengths, tuple(1000 * one.pass_seconds for one in found), "accent"),
            Series("word by word", lengths, tuple(1000 * one.loop_seconds for one in found)),
        ),
        x_log=True, y_log=True,
    )  # fmt: skip
    times = Panel(
        "Times faster", "words of the target", "time of the loop ÷ time of one pass",
        (
            Series("measured", lengths, tuple(one.speedup for one in found), "accent"),
            Series("as many times as words", lengths, lengths, "faint"),
        ),
        x_log=True,
    )  # fmt: skip
    return Plot((time, times))
