"""Directions of gender: what a linear probe reads, and what adding or removing one does.

Everything is learned from one half of the pairs and tested on the other. The probe's control task
gives each noun a random label instead of its gender, as in Hewitt and Liang 2019.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from antecedents.probe import fit_logistic
from gender.conditions import Margins, mask_of
from gender.probes import Steer
from gender.subject import Subject
from torch import Tensor

from pellucid.inside.pair import states_of
from pellucid.machine.randomness import generator

Vectors = dict[tuple[str, str], np.ndarray]
READERS = ("pronoun", "predicate")


def collect(subject: Subject) -> Vectors:
    """Collect vectors by array and part: of pronoun, mean predicate and predicting row."""
    kept = subject.keep({"input", "norm", "residual"})
    width = subject.config.d_model
    found: Vectors = {}
    for part, roles in (("encoder", READERS), ("decoder", ("row",))):
        for place in states_of(subject.model, part):
            for role in roles:
                vectors_ND = np.empty((len(subject.runs), width))
                for number, keeper in enumerate(kept):
                    batch = subject.batches[number]
                    vectors_ND[batch.numbers] = _mean(subject, number, keeper.found[place], role)
                found[place, role] = vectors_ND
    return found


def _mean(subject: Subject, number: int, states_BLD: Tensor, role: str) -> np.ndarray:
    is_role_BL = _mask(subject, number, role)
    share_BL = is_role_BL / is_role_BL.sum(dim=1, keepdim=True)
    found: np.ndarray = (share_BL[:, None] @ states_BLD)[:, 0].numpy()
    return found


def _mask(subject: Subject, number: int, role: str) -> Tensor:
    return subject.batches[number].is_row_BT if role == "row" else mask_of(subject, number, role)


def is_test(subject: Subject) -> np.ndarray:
    """Choose the half to test on, so that no two nouns occur together in both halves."""
    names = [" ".join(sorted(run.nouns)) for run in subject.runs]
    order = generator(1, "gender halves").permutation(len(set(names)))
    held_out = {sorted(set(names))[place] for place in order[: len(order) // 2]}
    return np.array([name in held_out for name in names])


def probe_accuracies(subject: Subject, vectors: Vectors) -> dict[str, dict[str, float]]:
    """Read the gender, and the control labels, from each vector by logistic regression."""
    is_held_out = is_test(subject)
    is_feminine = np.array([run.is_feminine for run in subject.runs])
    labels, is_apart = _control(subject)
    found = {}
    for (place, role), vectors_ND in vectors.items():
        found[f"{place} {role}"] = {
            "gender": _accuracy(vectors_ND, is_feminine, is_held_out),
            "control": _accuracy(vectors_ND[is_apart], labels[is_apart], is_held_out[is_apart]),
        }
    return found


def _control(subject: Subject) -> tuple[np.ndarray, np.ndarray]:
    """Draw a label for each noun; return the antecedents', and where the two nouns' differ."""
    nouns = sorted({noun for run in subject.runs for noun in run.nouns})
    order = generator(1, "gender control").permutation(len(nouns))
    chosen = {nouns[place] for place in order[: len(nouns) // 2]}
    labels = np.array([[noun in chosen for noun in run.nouns] for run in subject.runs])
    return labels[:, 0], labels[:, 0] != labels[:, 1]


def _accuracy(vectors_ND: np.ndarray, labels: np.ndarray, is_held_out: np.ndarray) -> float:
    training = vectors_ND[~is_held_out]
    spread = training.std(axis=0)
    scaled = (vectors_ND - training.mean(axis=0)) / np.where(spread > 1e-6, spread, 1.0)
    weights, bias = fit_logistic(scaled[~is_held_out], labels[~is_held_out])
    return float(((scaled[is_held_out] @ weights + bias > 0) == labels[is_held_out]).mean())


def steered(subject: Subject, vectors: Vectors) -> Iterator[tuple[str, Margins]]:
    """Add the difference of the genders' means, or as long a random vector, or remove it."""
    is_feminine = np.array([run.is_feminine for run in subject.runs])
    learned = ~is_test(subject)
    for (place, role), vectors_ND in vectors.items():
        if place.endswith("input"):
            continue
        means = [vectors_ND[learned & (is_feminine == side)].mean(axis=0) for side in (False, True)]
        step_D = means[1] - means[0]
        noise_D = generator(1, f"gender noise {place} {role}").standard_normal(len(step_D))
        noise_D *= np.linalg.norm(step_D) / np.linalg.norm(noise_D)
        middle_D = (means[0] + means[1]) / 2
        in_encoder = place.startswith("encoder")
        for name, vector_D in (("steer", step_D), ("noise", noise_D)):
            yield (
                f"{name} {place} {role}",
                _add(subject, place, role, torch.tensor(vector_D).float(), in_encoder=in_encoder),
            )
        unit_D = torch.tensor(step_D / np.linalg.norm(step_D)).float()
        center = float(middle_D @ unit_D.numpy())
        yield (
            f"erase {place} {role}",
            _remove(subject, place, role, unit_D, center, in_encoder=in_encoder),
        )


def _add(subject: Subject, place: str, role: str, vector_D: Tensor, *, in_encoder: bool) -> Margins:
    def change(number: int) -> Steer:
        # Toward the gender that the recipient does not have.
        signs_B = 1.0 - 2.0 * subject.batches[number].is_feminine_B
        mask_BL = _mask(subject, number, role)
        return Steer(place, mask_BL, step=signs_B[:, None] * vector_D)

    return lambda: subject.margins(change, in_encoder=in_encoder)


def _remove(
    subject: Subject, place: str, role: str, unit_D: Tensor, center: float, *, in_encoder: bool
) -> Margins:
    def change(number: int) -> Steer:
        return Steer(place, _mask(subject, number, role), direction=unit_D, center=center)

    return lambda: subject.margins(change, in_encoder=in_encoder)
