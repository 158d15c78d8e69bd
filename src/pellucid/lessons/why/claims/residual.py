"""Residual connections: the gradient that reaches the first layer, and what is left of a word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

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
from pellucid.lessons.why.tiny.learn import count_exact, make_tiny, train_tiny
from pellucid.lessons.why.tiny.sentences import draw_statements
from pellucid.lessons.why.tiny.words import Pair, make_pair_batch
from pellucid.train.plain import compute_loss

DEPTHS = (1, 2, 4, 6, 12, 24)
PAPER = 6
"""Layers of the paper's encoder, for which the likeness of words is judged."""
LOST, KEPT = 0.1, 0.5

GRADIENT_SAYS = Statement(
    NOTES,
    "section 3.5",
    "by enabling the gradient to skip layers, help address the vanishing gradient",
)
KNOWLEDGE_SAYS = Statement(
    NOTES, "section 3.5", "preserving knowledge of useful information that would otherwise be lost"
)

_KINDS: dict[str, dict[str, Any]] = {
    "residual and norm": {"residual": True, "norm": "post"},
    "norm only": {"residual": False, "norm": "post"},
    "neither": {"residual": False, "norm": "none"},
}


@dataclass(frozen=True)
class Deep:
    """An untrained encoder of some depth.

    Attributes:
        depth: its layers.
        gradient: the norm of the gradient in the first layer's matrices, as a share of that in an
            encoder of one layer.
        difference: what still tells two words of a sentence apart in the output: 1 minus their
            cosine, on average. It is 0 if all words have become the same.
    """

    depth: int
    gradient: float
    difference: float


def measure(setting: Setting) -> Measurement:
    """Measure gradient and difference of words by depth, and train deep models with and without."""
    depths = setting.choose(DEPTHS, (1, 2, 3))
    count, steps = setting.choose((6000, 400), (60, 4))
    train = draw_statements(count, seed=setting.seed, part="train")
    test = draw_statements(setting.choose(100, 7), seed=setting.seed, part="test")
    found: dict[str, list[Deep]] = {}
    for name, changes in _KINDS.items():
        setting.say(f"{name}, untrained")
        raw = [look_untrained(train[:32], depth, changes, seed=setting.seed) for depth in depths]
        first = raw[0].gradient
        found[name] = [Deep(one.depth, one.gradient / first, one.difference) for one in raw]
    trained: dict[str, tuple[float, float]] = {}
    curves: dict[str, tuple[float, ...]] = {}
    deep = setting.choose(4, 2)
    for name, changes in _KINDS.items():
        setting.say(f"training {deep} layers, {name}")
        tiny = make_tiny(
            [*train, *test], seed=setting.seed, d_model=32, d_ff=64, num_heads=2,
            num_encoder_layers=deep, **changes,
        )  # fmt: skip
        tiny = train_tiny(tiny, train, steps=steps, seed=setting.seed, rate=2e-3)
        trained[name] = (tiny.losses[-1], count_exact(tiny, test))
        curves[name] = tiny.losses
    last = {name: deeps[-1] for name, deeps in found.items()}
    return Measurement(
        claim="residual",
        question="Do residual connections carry gradients and knowledge?",
        number=f"With {depths[-1]} layers the first layer's gradient is "
        f"{last['residual and norm'].gradient:.2g} of that with one layer; "
        f"{last['norm only'].gradient:.2g} without residual connections and "
        f"{last['neither'].gradient:.2g} without norms too.",
        method="Untrained encoders of growing depth read sentences of a tiny language; the "
        "gradient is that of the translation's loss in the first layer's matrices, before "
        f"training. Then models with {deep} encoder layers are trained in {steps} updates. Norms "
        "are post-norm, as in the notes.",
        findings=(
            Finding(GRADIENT_SAYS, judge_gradient(found)),
            Finding(KNOWLEDGE_SAYS, judge_knowledge(found, trained)),
        ),
        tables=(_by_depth(found), _by_training(trained, deep)),
        plot=_plot(found, curves),
        notes=(
            "A difference of 0 means that all words of a sentence have the same vector, so that "
            "later layers cannot tell which word stood where. Attention averages words, and only "
            "the residual connection brings each word itself along.",
        ),
        to_try=("pellucid why norm", "pellucid inspect demo --draw whole"),
        seed=setting.seed,
        size=setting.size,
    )


def judge_gradient(found: dict[str, list[Deep]]) -> Verdict:
    """Judge by the gradient that reaches the first layer of the deepest encoder."""
    kept = {name: deeps[-1].gradient for name, deeps in found.items()}
    rule = (
        f"kept is {KEPT} or more of the gradient with one layer, lost is {LOST} or less; holds if "
        "it is kept with residual connections and lost without, with norms or not; fails if it is "
        "not kept with them, or lost in no other model"
    )
    numbers = ", ".join(f"{name} {share:.2g}" for name, share in kept.items())
    lost = [name for name in ("norm only", "neither") if kept[name] <= LOST]
    if kept["residual and norm"] < KEPT or not lost:
        return Verdict("fails", "", rule, numbers)
    if len(lost) == 2:
        return Verdict("holds", "", rule, numbers)
    condition = "there are no norms" if lost == ["neither"] else "there are norms"
    return Verdict("holds only if", condition, rule, numbers)


def judge_knowledge(
    found: dict[str, list[Deep]], trained: dict[str, tuple[float, float]]
) -> Verdict:
    """Judge by whether words become alike, and by what is learned.

    Args:
        found: encoders by kind and depth.
        trained: last loss and share of exact translations, by kind.
    """
    left = {name: _at_paper(deeps).difference for name, deeps in found.items()}
    right = {name: exact for name, (_, exact) in trained.items()}
    best = "residual and norm"
    rule = (
        f"lost means at most {LOST} of the difference that residual connections leave with "
        f"{PAPER} layers, or at most half as many right translations after training; holds if that "
        "is so with norms and without; fails if it is so in neither"
    )
    numbers = "; ".join(
        f"{name}: difference {left[name]:.1e}, {right[name]:.0%} right".replace("e-", "e−")
        for name in left
    )
    lost = [
        name
        for name in ("norm only", "neither")
        if left[name] <= LOST * left[best] or right[name] <= right[best] / 2 > 0
    ]
    if not lost:
        return Verdict("fails", "", rule, numbers)
    if len(lost) == 2:
        return Verdict("holds", "", rule, numbers)
    condition = "there are no norms" if lost == ["neither"] else "there are norms"
    return Verdict("holds only if", condition, rule, numbers)


def _at_paper(deeps: list[Deep]) -> Deep:
    """Choose the encoder whose depth is nearest to the paper's."""
    return min(deeps, key=lambda one: abs(one.depth - PAPER))


def look_untrained(pairs: list[Pair], depth: int, changes: dict[str, Any], *, seed: int) -> Deep:
    """Measure an untrained encoder; the gradient is not yet divided by that of one layer.

    Args:
        pairs: sentences with their translations.
        depth: layers of the encoder.
        changes: fields of the configuration that differ from the usual tiny model.
        seed: of the weights.
    """
    tiny = make_tiny(pairs, seed=seed, num_encoder_layers=depth, **changes)
    batch = make_pair_batch(
        tiny.source.encode_all([pair[0] for pair in pairs]),
        tiny.target.encode_all([pair[1] for pair in pairs]),
    )
    loss, _ = compute_loss(tiny.model, batch, 0.0, None)
    loss.backward()  # type: ignore[no-untyped-call]
    squares = [
        float(parameter.grad.square().sum())
        for name, parameter in tiny.model.named_parameters()
        if name.startswith("encoder.layers.0.")
        and parameter.dim() == 2
        and parameter.grad is not None
    ]
    with torch.no_grad():
        memory_BSD = tiny.model.encode(batch.source_BS, batch.source_mask_BS)
        unit_BSD = torch.nn.functional.normalize(memory_BSD.double(), dim=-1)
        cosines_BSS = unit_BSD @ unit_BSD.transpose(1, 2)
        is_real_BS = batch.source_mask_BS
        is_pair_BSS = is_real_BS[:, :, None] & is_real_BS[:, None, :]
        is_pair_BSS &= ~torch.eye(is_real_BS.shape[1], dtype=torch.bool)
    return Deep(depth, sum(squares) ** 0.5, max(0.0, 1 - float(cosines_BSS[is_pair_BSS].mean())))


def _by_depth(found: dict[str, list[Deep]]) -> Table:
    depths = [one.depth for one in next(iter(found.values()))]
    rows = tuple(
        (depth, *(deeps[place].gradient for deeps in found.values()),
         *(deeps[place].difference for deeps in found.values()))
        for place, depth in enumerate(depths)
    )  # fmt: skip
    return Table(
        "Gradient in the first layer (1 with one layer), and difference of words after the last; "
        "both: residual and norm",
        ("layers", "both", "norm only", "neither", "difference: both", "norm only", "neither"),
        ("d", ".2g", ".2g", ".2g", ".1e", ".1e", ".1e"),
        rows,
    )


def _by_training(trained: dict[str, tuple[float, float]], deep: int) -> Table:
    return Table(
        f"After training with {deep} encoder layers",
        ("", "loss, nats a word", "right, %"),
        ("", ".3f", ".0f"),
        tuple((name, loss, 100 * exact) for name, (loss, exact) in trained.items()),
    )


def _plot(found: dict[str, list[Deep]], curves: dict[str, tuple[float, ...]]) -> Plot:
    def role(name: str) -> Any:
        return "accent" if name == "residual and norm" else "plain"

    def panel(title: str, label: str, what: str) -> Panel:
        return Panel(
            title, "layers of the encoder", label,
            tuple(
                Series(name, tuple(float(one.depth) for one in deeps),
                       tuple(getattr(one, what) for one in deeps), role(name))
                for name, deeps in found.items()
            ),
            x_log=True, y_log=True,
        )  # fmt: skip

    training = Panel(
        "Training loss of a deep model", "update", "nats a word",
        tuple(
            Series(name, tuple(float(i) for i in range(1, len(losses) + 1)), losses, role(name))
            for name, losses in curves.items()
        ),
    )  # fmt: skip
    return Plot(
        (
            panel("Gradient in the first layer", "share of that with one layer", "gradient"),
            panel("Difference of a sentence's words", "1 − cosine after the last layer",
                  "difference"),
            training,
        )
    )  # fmt: skip
