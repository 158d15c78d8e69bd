"""``pellucid train``: from a recipe to a model."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from pellucid.cli.ending import note, show_made
from pellucid.cli.options import Changes, Device, Texts, Threads, described
from pellucid.machine.launch import find_place


@described(
    source_language=("CODE", "The language of the source, for text without a recipe: en."),
    target_language=("CODE", "The language of the target."),
    out=("RUN", "The run folder.  [default: runs/NAME]", {"name": "-o --output"}),
    minutes=(
        "N",
        "Time budget in minutes, including preparation and validation; the course of training is "
        "planned for it.",
        {"min": 0.01},
    ),
    start=("MODEL", "Start from a trained model: weights and tokenizer."),
    teachers=(
        "N|auto",
        "First train N models in each direction, which translate the training text for the last "
        "one; auto chooses N for --minutes.  [default: 0]",
    ),
    more_target=(
        "FILE",
        "Sentences in the target language, which a model of the other direction translates for "
        "training; may be repeated.",
    ),
    keep_every=(
        "N",
        "Keep the model of every N updates in RUN/history, for pellucid history.",
        {"min": 1},
    ),
    wait=("S", "With torchrun or srun: seconds in which every rank must come.  [default: 300]"),
)
def train(
    texts: Texts,
    source_language: str | None = None,
    target_language: str | None = None,
    out: Path | None = None,
    start: str | None = None,
    minutes: float | None = None,
    teachers: str | None = None,
    more_target: list[str] | None = None,
    keep_every: int | None = None,
    wait: float | None = None,
    threads: Threads = None,
    device: Device = None,
    changes: Changes = None,
) -> int:
    """Train a model from a recipe or a table of pairs; the same command again resumes.

    Without a recipe, one is written next to RUN: it sets a thousand pairs aside for validation,
    as many for a test, and leaves the rest to be chosen for the text. The best model so far is in
    RUN/bundle, which every other command takes. Ctrl-C saves first.
    """
    # --minutes counts from here, the import of PyTorch included.
    began = time.monotonic()
    from pellucid.functions.train_model import train_found
    from pellucid.training.start.found_recipe import find_start, start_of

    settings = {
        "max_minutes": minutes,
        "keep_every": keep_every,
        "device": device,
    }
    given = [f"training.{key}={value}" for key, value in settings.items() if value is not None]
    changes = [*(changes or ()), *given]
    with contextlib.ExitStack() as stack:
        ranks = None
        place = find_place(os.environ, wait)
        if place is not None:
            # PyTorch's messages about lost connections have the traces of its own calls.
            os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
            from pellucid.training.update.hands import be_hand
            from pellucid.training.update.ranks import Ranks

            # The first rank reads, logs and saves; all others only compute.
            if place.rank:
                return be_hand(place)
            ranks = stack.enter_context(Ranks(place))
        languages = (source_language, target_language)
        recipe = find_start(texts, languages, out, changes, say=note)
        start = start if start is not None else start_of(recipe.values)
        limit = None if minutes is None else began
        train_found(
            recipe,
            start,
            say=note,
            ranks=ranks,
            began=limit,
            teachers=teachers,
            more_target=more_target or (),
        )
        show_made(str(recipe.run / "bundle"))
    return 0
