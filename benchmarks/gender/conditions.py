"""The interventions of the study, by name: each gives the margin of every run under it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from gender.probes import CutEdges, CutHeads, Gates, Keep, Put
from gender.subject import DONORS, ROLES, Condition, Subject, margins_of
from torch import Tensor

from pellucid.inside.pair import states_of

Margins = Callable[[], np.ndarray]
EDGES = {
    "pronoun > nouns": ("pronoun", ("antecedent", "rival")),
    "pronoun > antecedent": ("pronoun", ("antecedent",)),
    "pronoun > predicate": ("pronoun", ("predicate",)),
    "predicate > nouns": ("predicate", ("antecedent", "rival")),
    "nouns > predicate": ("nouns", ("predicate",)),
}
"""Lines of the encoder: who must not attend to whom."""
BY_LAYER = ("pronoun > antecedent", "predicate > nouns")


def all_conditions(subject: Subject) -> Iterator[tuple[str, Margins]]:
    """Yield the name of every intervention, and a function that makes it."""
    yield "as it is", subject.margins
    for donor in DONORS:
        yield from patched_states(subject, donor)
    yield from patched_rows(subject)
    yield from patched_memory(subject)
    yield from cut_heads(subject)
    yield from patched_heads(subject)
    yield from cut_encoder_lines(subject)
    yield from cut_decoder_lines(subject)


def mask_of(subject: Subject, number: int, role: str) -> Tensor:
    """Find a part of the sources of a batch: ``is_role_BS``."""
    roles = subject.batches[number].roles
    if role == "all":
        return torch.ones_like(roles["pronoun"])
    if role == "nouns":
        return roles["antecedent"] | roles["rival"]
    return roles[role]


def patched_states(subject: Subject, donor: str) -> Iterator[tuple[str, Margins]]:
    """Put the donor's vectors between two layers of the encoder, in one part of the sentence."""
    kept = subject.keep({"input", "norm", "residual"}, donor)
    places = states_of(subject.model, "encoder")
    differing = {"choice": ("predicate",), "gender": ("antecedent", "rival")}
    for depth, place in enumerate(places):
        # Before the first layer the others have the same vectors in both sentences.
        roles = (*differing[donor], "all") if depth == 0 else (*ROLES, "nouns", "all")
        for role in roles:
            yield f"{donor} {depth} {role}", _put_state(subject, kept, place, role)


def _put_state(subject: Subject, kept: list[Keep], place: str, role: str) -> Margins:
    def change(number: int) -> Put:
        mask_BS = mask_of(subject, number, role)
        return Put({place: kept[number].found[place]}, mask_BS[:, :, None])

    return lambda: subject.margins(change)


def patched_rows(subject: Subject) -> Iterator[tuple[str, Margins]]:
    """Put the state of the donor's predicting row between two layers of the decoder."""
    kept = subject.keep({"input", "norm", "residual"}, "choice")
    for depth, place in enumerate(states_of(subject.model, "decoder")):

        def change(number: int, place: str = place) -> Put:
            is_row_BT = subject.batches[number].is_row_BT
            return Put({place: kept[number].found[place]}, is_row_BT[:, :, None])

        yield f"row {depth}", _in_decoder(subject, change)


def patched_memory(subject: Subject) -> Iterator[tuple[str, Margins]]:
    """Give cross-attention the donor's keys only, or its values only."""
    sites = _cross(subject)
    for donor in DONORS:
        kept = subject.keep({"key", "value"}, donor, sites=sites)
        for stage in ("key", "value"):
            names = [f"{site}.{stage}" for site in sites]

            def change(number: int, names: list[str] = names, kept: list[Keep] = kept) -> Put:
                vectors = {name: kept[number].found[name] for name in names}
                return Put(vectors, torch.tensor(True), sites)

            yield f"{donor} {stage}", _in_decoder(subject, change)


def cut_heads(subject: Subject) -> Iterator[tuple[str, Margins]]:
    """Cut each head, one at a time."""
    for site, head in subject.heads:
        probe = CutHeads({site: [head]})
        is_encoder = site.startswith("encoder")
        yield f"cut {site}.{head}", _same(subject, probe, in_encoder=is_encoder)


def _same(subject: Subject, probe: CutHeads, *, in_encoder: bool) -> Margins:
    return lambda: subject.margins(lambda _: probe, in_encoder=in_encoder)


def patched_heads(subject: Subject) -> Iterator[tuple[str, Margins]]:
    """Put the other sentence's context into each head of encoder and cross-attention."""
    sites = [site for site in subject.sites if not _reads_itself(site)]
    kept = subject.keep({"context"}, "choice", sites=sites)
    for site, head in subject.heads:
        if site not in sites:
            continue
        mask_H11 = torch.zeros(subject.config.num_heads, 1, 1, dtype=torch.bool)
        mask_H11[head] = True

        def change(number: int, name: str = f"{site}.context", mask: Tensor = mask_H11) -> Put:
            return Put({name: kept[number].found[name]}, mask, (name.rpartition(".")[0],))

        if site.startswith("encoder"):
            yield f"patch {site}.{head}", _in_encoder(subject, change)
        else:
            yield f"patch {site}.{head}", _in_decoder(subject, change)


def cut_encoder_lines(subject: Subject) -> Iterator[tuple[str, Margins]]:
    """Cut lines of the encoder, in all layers, and some of them in each layer."""
    layers = [f"encoder.{layer}.self" for layer in range(subject.config.num_encoder_layers)]
    for name, (reader, read) in EDGES.items():
        choices = {"all": layers}
        if name in BY_LAYER:
            choices |= {str(depth): [site] for depth, site in enumerate(layers)}
        for label, sites in choices.items():

            def change(
                number: int,
                sites: list[str] = sites,
                reader: str = reader,
                read: tuple[str, ...] = read,
            ) -> CutEdges:
                keys_BS = torch.stack([mask_of(subject, number, one) for one in read]).any(dim=0)
                queries_BS = mask_of(subject, number, reader)
                return CutEdges(dict.fromkeys(sites, queries_BS[:, :, None] & keys_BS[:, None]))

            yield f"line {label} {name}", _in_encoder(subject, change)


def cut_decoder_lines(subject: Subject) -> Iterator[tuple[str, Margins]]:
    """Cut what the predicting row reads: parts of the source, or all rows before it."""
    cross = _cross(subject)
    itself = [site.replace("cross", "self") for site in cross]
    for role in (*ROLES, "nouns", "prefix", "nouns prefix", "prefix-nouns", "nouns prefix-nouns"):

        def change(number: int, role: str = role) -> CutEdges:
            batch = subject.batches[number]
            edges: dict[str, Tensor] = {}
            if "prefix" in role:
                # The row itself stays.
                before_BT = batch.reads_noun_BT if "-nouns" in role else ~batch.is_row_BT
                edges |= dict.fromkeys(itself, batch.is_row_BT[:, :, None] & before_BT[:, None])
            if not role.startswith("prefix"):
                mask_BS = mask_of(subject, number, role.split()[0])
                edges |= dict.fromkeys(cross, batch.is_row_BT[:, :, None] & mask_BS[:, None])
            return CutEdges(edges)

        yield f"row reads no {role}", _in_decoder(subject, change)


def _cross(subject: Subject) -> list[str]:
    return [f"decoder.{layer}.cross" for layer in range(subject.config.num_decoder_layers)]


def _reads_itself(site: str) -> bool:
    return site.startswith("decoder") and site.endswith("self")


def _in_encoder(subject: Subject, change: Condition) -> Margins:
    return lambda: subject.margins(change)


def _in_decoder(subject: Subject, change: Condition) -> Margins:
    return lambda: subject.margins(change, in_encoder=False)


def head_slopes(subject: Subject) -> dict[str, float]:
    """Differentiate the mean margin by a gate of each head."""
    totals = dict.fromkeys((f"{site}.{head}" for site, head in subject.heads), 0.0)
    for batch in subject.batches:
        probe = Gates()
        memory_BSD = subject.model.encode(batch.source_BS, probe=probe)
        states_BTD = subject.model.decode(batch.read_BT, memory_BSD, probe=probe)
        margin = margins_of(subject.model, states_BTD, batch).sum()
        slopes = torch.autograd.grad(margin, list(probe.gates.values()))
        for site, slope in zip(probe.gates, slopes, strict=True):
            for head, value in enumerate(slope.flatten().tolist()):
                totals[f"{site}.{head}"] += value / len(subject.runs)
    return totals


def head_weights(subject: Subject) -> dict[str, dict[str, float]]:
    """Average each head's weights: of pronoun and predicate, and of the row that predicts."""
    sites = [site for site in subject.sites if not _reads_itself(site)]
    kept = subject.keep({"weights"}, sites=sites)
    found: dict[str, dict[str, float]] = {}
    for site, head in subject.heads:
        if site not in sites:
            continue
        for reader in ("pronoun", "predicate") if site.startswith("encoder") else ("row",):
            sums = dict.fromkeys(ROLES, 0.0)
            for number, keeper in enumerate(kept):
                weights_BLS = keeper.found[f"{site}.weights"][:, head]
                rows_BS = _mean_row(subject, number, weights_BLS, reader)
                for role in ROLES:
                    is_role_BS = subject.batches[number].roles[role]
                    sums[role] += float((rows_BS * is_role_BS).sum()) / len(subject.runs)
            found[f"{site}.{head} {reader}"] = sums
    return found


def _mean_row(subject: Subject, number: int, weights_BLS: Tensor, reader: str) -> Tensor:
    """Average the rows of a reader: ``weights_BS``."""
    batch = subject.batches[number]
    is_reader_BL = batch.is_row_BT if reader == "row" else batch.roles[reader]
    share_BL = is_reader_BL / is_reader_BL.sum(dim=1, keepdim=True)
    found_BS: Tensor = (share_BL[:, None] @ weights_BLS)[:, 0]
    return found_BS
