"""A study as a page: the heads as a map in the model's shape, in one file without a network."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from pellucid.inside.study.head_study import FIGURES, Study
from pellucid.page.filled_page import script_json

MEANINGS = {
    "previous": "Weight on the position before the row's own.",
    "same": "Weight on the row's own position.",
    "next": "Weight on the position after the row's own.",
    "first": "Weight on the first position.",
    "end": "Weight on the source's </s>.",
    "entropy": "Entropy of a row's weights, in nats.",
    "confidence": "Largest weight of a row.",
    "distance": "Mean distance between a row and what it attends to, in tokens.",
    "error_predicts": "Alignment error if a row counts for the token that it predicts.",
    "error_reads": "Alignment error if a row counts for the token that it reads.",
    "cut_log_probability": "Change of a target's log-probability without the head, in nats a line.",
    "cut_bleu": "Change of BLEU without the head.",
    "cut_lines": "Lines whose greedy translation changes without the head.",
}
"""The meaning of each figure; a page orders them so."""


def study_page(study: Study, *, title: str, sort: str) -> str:
    """Make the page of a study.

    Args:
        study: what to show. Its texts stand in data that the page writes as text only.
        title: the name of the model.
        sort: the figure to begin with.
    """
    template = files(__package__).joinpath("page.html").read_text("utf-8")
    data = {"title": title, "sort": sort, "meanings": MEANINGS, **study.record()}
    assert tuple(MEANINGS) == FIGURES
    for kind in ("style", "script"):
        own = template.split(f"<{kind}>")[1].split(f"</{kind}>")[0]
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        template = template.replace("HASH", f"sha256-{digest}", 1)
    # The data comes last, so that nothing in it can look like a place.
    return template.replace("DATA", script_json(data), 1)
