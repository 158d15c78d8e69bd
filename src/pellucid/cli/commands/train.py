"""``pellucid train``: from a recipe to a model."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pellucid.cli.ending import note, show_made
from pellucid.cli.options import Changes, Texts, Threads, described
from pellucid.machine.launch import find_place

if TYPE_CHECKING:
    from pellucid.cli.recipes import FoundRecipe
    from pellucid.training.update.ranks import Ranks


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
    log_every=("N", "Write a line of the log every N updates.  [default: 50]", {"min": 1}),
    keep_every=(
        "N",
        "Keep the model of every N updates in RUN/history, for study --history.",
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
    log_every: int | None = None,
    keep_every: int | None = None,
    wait: float | None = None,
    threads: Threads = None,
    changes: Changes = None,
) -> int:
    """Train a model from a recipe or a table of pairs; the same command again resumes.

    Without a recipe, one is written next to RUN: it sets a thousand pairs aside for validation,
    as many for a test, and leaves the rest to be chosen for the text. The best model so far is in
    RUN/bundle, which every other command takes. Ctrl-C saves first.
    """
    # --minutes counts from here, the import of PyTorch included.
    began = time.monotonic()
    from pellucid.cli.recipes import find_start, start_of

    settings = {
        "max_minutes": minutes,
        "log_every": log_every,
        "keep_every": keep_every,
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
        recipe = find_start(texts, languages, out, changes, is_checked=False)
        start = start if start is not None else start_of(recipe.values)
        _train(recipe, start, ranks, None if minutes is None else began)
    return 0


def _train(found: FoundRecipe, start: str | None, ranks: Ranks | None, began: float | None) -> None:
    """Complete the recipe's values and train with them."""
    from pellucid.config import Recipe, validate
    from pellucid.training.run.folder import repair_recipe
    from pellucid.training.start.filling import fill_in
    from pellucid.training.start.preparation import preparing

    path, folder, values, run = found
    repair_recipe(run)
    is_new = not (run / "data").is_dir()
    with preparing(values.get("data"), folder, is_new=is_new, say=note) as check:
        # PyTorch takes seconds to import, in which the check has begun already.
        from pellucid.training.loop import train as run_training
        from pellucid.training.start.from_model import with_start

        if start is not None:
            values = with_start(values, start, run)
        filled = fill_in(values, run, folder, note)
        recipe = validate(Recipe, filled.values, str(path))
        run_training(
            recipe, run, recipe_folder=folder, filled=filled, ranks=ranks, check=check, began=began
        )
    show_made(str(run / "bundle"))
