"""A linear probe for each layer: it tries to read the antecedent from the pronoun's vector.

The pronoun is the same word in both sentences of a minimal pair. So its embedding knows nothing of
the antecedent, and whatever a later layer knows, attention has brought. The predicate differs
between the two, so later layers must be compared with its embedding. A probe may also memorize:
the control task, with random labels for the nouns, measures how much. The two genders of a minimal
pair always differ. So the control task only takes cases whose two nouns have different labels;
otherwise half of the labels would follow from the two nouns without the antecedent.

Source:
    Hewitt and Liang 2019, "Designing and Interpreting Probes with Control Tasks".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from antecedents.cases import Case, Share, share_of_hits

from pellucid.bundle import Bundle
from pellucid.errors import InputError
from pellucid.inside import Pair, Vectors, vectors
from pellucid.inside.pair import Keeper, states_of
from pellucid.machine.randomness import generator
from pellucid.model import EncoderDecoder

Word = Literal["pronoun", "predicate"]

TEST_SHARE = 0.3
PENALTY = 1e-3
MOST_STEPS = 50


@dataclass(frozen=True)
class ProbeResult:
    """The accuracy of a linear probe on one layer.

    Attributes:
        word: the word whose vector was read.
        layer: ``input`` (embedding and position), ``layer 0``, …, and ``norm`` if the encoder ends
            in one.
        task: ``gender``: masculine or feminine in French; ``position``: whether the antecedent is
            the noun nearest to the pronoun.
        accuracy: on sentences whose two nouns never occur together in the probe's training.
        control: the accuracy on the control task, learned and tested on about half of the
            sentences.
        num_train: the number of sentences it learned from.
    """

    word: Word
    layer: str
    task: str
    accuracy: Share
    control: Share
    num_train: int

    @property
    def selectivity(self) -> float:
        """Accuracy beyond what the probe can memorize."""
        return self.accuracy.share - self.control.share


def probe_layers(
    cases: Sequence[Case],
    files: Mapping[str, Vectors] | None = None,
    *,
    word: Word = "pronoun",
    seed: int = 1,
) -> list[ProbeResult]:
    """Train and test a probe for each layer and task.

    Args:
        cases: of the pronoun test.
        files: by layer the vectors of the sources, line i of which is case i, as `collect_layers`
            makes them; each sentence runs by itself unless given.
        word: the vector to read: the pronoun's, or the mean of the other words of its clause.
        seed: decides which pairs of nouns are held out, and the control task's labels.

    Raises:
        InputError: too few cases were given to learn from and to test on.
    """
    is_test = split_combinations(cases, seed=seed)
    controls, is_apart = _random_labels(cases, seed)
    apart = [case for case, is_one in zip(cases, is_apart, strict=True) if is_one]
    num_train, num_test = (int((side & is_apart).sum()) for side in (~is_test, is_test))
    if min(num_train, num_test) < 10:
        raise InputError(
            "A control task must have at least 10 sentences to learn from and 10 to test on, but "
            f"has {num_train} and {num_test}. Take more sentences."
        )
    places = [case.pronoun if word == "pronoun" else case.predicate for case in cases]
    if files is None:
        seen = [
            encoder_vectors(case.pair, positions)
            for case, positions in zip(cases, places, strict=True)
        ]
        layers = {layer: np.stack([one[layer] for one in seen]) for layer in seen[0]}
    else:
        layers = {layer: mean_vectors(found, places) for layer, found in files.items()}
    tasks = {
        "gender": np.array([case.gender == "f" for case in cases]),
        "position": np.array([case.num_between == 0 for case in cases]),
    }
    found = []
    for layer, vectors_ND in layers.items():
        features = vectors_ND.astype(np.float64)
        control = _accuracy(
            "control", features[is_apart], controls[is_apart], is_test[is_apart], apart
        )
        for task, labels in tasks.items():
            accuracy = _accuracy(task, features, labels, is_test, cases)
            found.append(ProbeResult(word, layer, task, accuracy, control, int((~is_test).sum())))
    return found


def split_combinations(cases: Sequence[Case], *, seed: int = 1) -> np.ndarray:
    """Tell which cases are for testing, so that no pair of nouns is on both sides.

    The pair is the two nouns before the pronoun, in either order.
    """
    combinations = [frozenset(case.words[-2:]) for case in cases]
    names = sorted({" ".join(sorted(one)) for one in combinations})
    order = generator(seed, "held-out nouns").permutation(len(names))
    held_out = {names[place] for place in order[: round(TEST_SHARE * len(names))]}
    return np.array([" ".join(sorted(one)) in held_out for one in combinations], dtype=bool)


@torch.inference_mode()
def encoder_vectors(pair: Pair, positions: Sequence[int]) -> dict[str, np.ndarray]:
    """Return the vector of a word after each layer of the encoder, averaged over its tokens.

    Args:
        pair: the sentence.
        positions: the word's source tokens.
    """
    keeper = Keeper({"input", "norm", "residual"})
    pair.model.encode(torch.tensor([pair.source_ids]), probe=keeper)
    return {
        layer: keeper.found[name][0, list(positions)].mean(dim=0).numpy()
        for layer, name in layer_places(pair.model).items()
    }


def layer_places(model: EncoderDecoder) -> dict[str, str]:
    """Name the array after each layer of the encoder."""
    first, *layers = states_of(model, "encoder")
    names = {"input": first} | {f"layer {index}": name for index, name in enumerate(layers)}
    if model.config.norm == "pre":
        names["norm"] = "encoder.norm"
    return names


def collect_layers(bundle: Bundle, cases: Sequence[Case], folder: Path) -> dict[str, Vectors]:
    """Collect the vectors of the cases' sources after each layer, in files of a folder."""
    sources = [case.pair.source_text for case in cases]
    return {
        layer: vectors(bundle, sources, at=name, output=folder / f"{layer}.npz")
        for layer, name in layer_places(bundle.model).items()
    }


def mean_vectors(found: Vectors, places: Sequence[Sequence[int]]) -> np.ndarray:
    """Average the vectors at some positions of each line: ``vectors_ND``."""
    starts = np.searchsorted(found.rows["line"], np.arange(len(places)))
    return np.stack(
        [
            found.vectors[start + np.array(positions)].mean(axis=0)
            for start, positions in zip(starts, places, strict=True)
        ]
    )


def fit_logistic(
    features: np.ndarray, labels: np.ndarray, *, penalty: float = PENALTY
) -> tuple[np.ndarray, float]:
    r"""Fit a logistic regression: the weights and the bias that minimize mean loss and penalty.

    $$\frac{1}{n}\sum_i \ln\left(1 + e^{-s_i(w \cdot x_i + b)}\right) + \frac{\lambda}{2}
    \lVert w\rVert^2, \quad s_i = \pm 1$$

    Newton's method finds them; a step is halved as long as it would raise the sum.

    Args:
        features: (cases, width).
        labels: True or False for each.
        penalty: λ.
    """
    signs = np.where(labels, 1.0, -1.0)
    wide = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    penalties = np.full(wide.shape[1], penalty)
    penalties[-1] = 0.0

    def cost(solution: np.ndarray) -> float:
        losses = np.logaddexp(0.0, -signs * (wide @ solution))
        return float(losses.mean() + (penalties * solution**2).sum() / 2)

    solution = np.zeros(wide.shape[1])
    for _ in range(MOST_STEPS):
        shares = 1 / (1 + np.exp(-(wide @ solution)))
        slope = wide.T @ (shares - (signs > 0)) / len(wide) + penalties * solution
        if np.abs(slope).max() < 1e-8:
            break
        curvature = wide.T @ (wide * (shares * (1 - shares))[:, None]) / len(wide)
        # The bias has no penalty; 1e-9 keeps the matrix invertible.
        step = np.linalg.solve(curvature + np.diag(penalties + 1e-9), slope)
        size = 1.0
        while size > 1e-6 and cost(solution - size * step) > cost(solution):
            size /= 2
        solution = solution - size * step
    return solution[:-1], float(solution[-1])


def _accuracy(
    name: str, features: np.ndarray, labels: np.ndarray, is_test: np.ndarray, cases: Sequence[Case]
) -> Share:
    """Learn on one side and test on the other, with features scaled by the training's spread."""
    training = features[~is_test]
    spread = training.std(axis=0)
    scaled = (features - training.mean(axis=0)) / np.where(spread > 1e-8, spread, 1.0)
    weights, bias = fit_logistic(scaled[~is_test], labels[~is_test])
    guesses = scaled[is_test] @ weights + bias > 0
    tested = [case for case, is_held_out in zip(cases, is_test, strict=True) if is_held_out]
    return share_of_hits(name, (guesses == labels[is_test]).astype(np.float64), tested)


def _random_labels(cases: Sequence[Case], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the control task: the antecedent's random label, and whether both nouns' differ."""
    nouns = sorted({word for case in cases for word in case.words[-2:]})
    order = generator(seed, "control labels").permutation(len(nouns))
    chosen = {nouns[place] for place in order[: len(nouns) // 2]}
    labels = np.array([case.words[case.answer] in chosen for case in cases], dtype=bool)
    is_apart = np.array(
        [(case.words[-1] in chosen) != (case.words[-2] in chosen) for case in cases], dtype=bool
    )
    return labels, is_apart
