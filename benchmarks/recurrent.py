"""The recurrent model in three forms next to the Transformer, on the demo's corpus.

    python benchmarks/recurrent.py [--folder runs/recurrent] [--seeds 1 2 3] [--models additive dot]

All have as many parameters as the Transformer of `pellucid demo`, within 2 %, and see the same
batches as often. Along the way the exact translations of part of the four tests are counted, with
the processor time used so far on one thread, so that the same runs also show what each has learned
after equal time. A finished run is a dated file in `results/recurrent` and is not trained again.
With --table nothing is trained: the finished runs are printed as tables in Markdown.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

from pellucid.config import ModelConfig, Recipe, load_recipe
from pellucid.corpora import DEFAULT_COUNTS, SplitName, make_split, write_examples
from pellucid.demo import TESTS, evaluate_split
from pellucid.files import new_folder
from pellucid.machine.hardware import describe_machine, set_threads
from pellucid.model import make_model
from pellucid.text.reading.lines import read_lines
from pellucid.training.feed import Feed
from pellucid.training.learner import Learner, make_bundle_config
from pellucid.training.run.checkpoint import TrainingState
from pellucid.training.run.folder import RunFolder
from pellucid.training.start.plan import make_plan
from pellucid.training.start.prepare import PreparedData, prepare_data
from pellucid.translate.translator import Translator

RESULTS = Path(__file__).parent / "results" / "recurrent"
RECIPES = Path(str(files("pellucid"))) / "recipes"
MODELS = ("transformer", "none", "additive", "dot")
MEASUREMENTS = 10
SENTENCES = 250
"""Of each test, at the measurements along the way; the last one takes all."""

Tests = Mapping[SplitName, Sequence[tuple[str, str]]]


def main() -> None:
    """Train what is not trained yet, and print one line a model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/recurrent"))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        print_tables(arguments.results)
        return
    set_threads(1)
    arguments.results.mkdir(parents=True, exist_ok=True)
    for seed in arguments.seeds:
        for name in arguments.models:
            result = find_result(arguments.results, name, seed)
            if result is None:
                result = train_one(name, seed, arguments.folder, arguments.set)
                path = arguments.results / f"{result['date']}-{name}-seed-{seed}.json"
                path.write_text(json.dumps(result, indent=2) + "\n")
            last = result["measurements"][-1]
            print(name, seed, result["parameters"], json.dumps(last), flush=True)


def find_result(results: Path, name: str, seed: int) -> dict[str, Any] | None:
    """Read the newest finished run, if there is one."""
    finished = sorted(results.glob(f"????-??-??-{name}-seed-{seed}.json"))
    return json.loads(finished[-1].read_text()) if finished else None


def print_tables(results: Path) -> None:
    """Print exact match after equal updates, and after equal processor time."""
    runs = {
        name: [run for seed in range(1, 10) if (run := find_result(results, name, seed))]
        for name in MODELS
    }
    runs = {name: found for name, found in runs.items() if found}
    least = min(run["measurements"][-1]["seconds"] for found in runs.values() for run in found)
    print("| model | parameters | updates | seconds |", " | ".join(TESTS), "|")
    print("| --- " * (4 + len(TESTS)) + "|")
    for name, found in runs.items():
        print_row(name, found, [run["measurements"][-1] for run in found])
    print(f"\nThe last measurement within {least:.0f} seconds:\n")
    print("| model | parameters | updates | seconds |", " | ".join(TESTS), "|")
    print("| --- " * (4 + len(TESTS)) + "|")
    for name, found in runs.items():
        in_time = [[m for m in run["measurements"] if m["seconds"] <= least] for run in found]
        print_row(name, found, [measured[-1] for measured in in_time])


def print_row(
    name: str, runs: Sequence[Mapping[str, Any]], at: Sequence[Mapping[str, Any]]
) -> None:
    """Print one model: every cell has the figure of each seed."""
    columns = [[f"{run['parameters']:,}" for run in runs]]
    columns += [[str(one[key]) for one in at] for key in ("updates", "seconds")]
    columns += [[f"{one['exact'][test]:.1f}" for one in at] for test in TESTS]
    print(f"| {name} |", " | ".join(map(one_or_each, columns)), "|")


def one_or_each(cells: Sequence[str]) -> str:
    """Write what all seeds share once, and otherwise the figure of each."""
    return cells[0] if len(set(cells)) == 1 else ", ".join(cells)


def train_one(name: str, seed: int, folder: Path, changes: Sequence[str]) -> dict[str, Any]:
    """Train one model, and measure it along the way."""
    recipe = transformer = load_recipe(
        RECIPES / "tiny-en-fr.toml", [f"training.seed={seed}", *changes]
    )
    one_process = "training.processes=1"  # The clock counts this process only.
    asked = [f"training.seed={seed}", one_process, *changes]
    recurrent = load_recipe(RECIPES / "tiny-en-fr-recurrent.toml", asked)
    if name == "transformer":
        updates = {"max_steps": recurrent.training.max_steps}
        recipe = recipe.model_copy(update={"training": recipe.training.model_copy(update=updates)})
    elif name != "transformer":
        asked.append(f'model.recurrent_attention="{name}"')
        recipe = load_recipe(RECIPES / "tiny-en-fr-recurrent.toml", asked)
    corpus = folder / f"seed-{seed}" / "corpus"
    write_corpus(corpus, seed)
    run = RunFolder(folder / f"seed-{seed}" / name, recipe)
    with run.locked(), run.created():
        prepared = prepare_data(recipe, corpus.parent, run)
    wanted = count_parameters(transformer, prepared)
    if name != "transformer":
        recipe = with_parameters(recipe, prepared, wanted)
    measurements = measure_training(recipe, prepared, read_tests(corpus))
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": f"python benchmarks/recurrent.py --models {name} --seeds {seed}",
        "machine": describe_machine(),
        "load_average": round(os.getloadavg()[2], 1),
        "clock": "processor seconds of the process, on one thread, without the measurements",
        "model": recipe.model.model_dump(mode="json"),
        "training": recipe.training.model_dump(mode="json", exclude_defaults=True),
        "parameters": count_parameters(recipe, prepared),
        "parameters_of_transformer": wanted,
        "measurements": measurements,
    }


def write_corpus(folder: Path, seed: int) -> None:
    """Write the corpus of a demo with this seed, unless an earlier call did."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder) as part:
        for name in DEFAULT_COUNTS:
            write_examples(part, name, make_split(name, seed=seed))


def read_tests(corpus: Path) -> Tests:
    """Read the four tests of a demo."""
    sides = {
        name: [read_lines(corpus / f"{name}.{side}") for side in ("en", "fr")] for name in TESTS
    }
    return {name: list(zip(*both, strict=True)) for name, both in sides.items()}


def count_parameters(recipe: Recipe, prepared: PreparedData) -> int:
    """Count the weights of a recipe's model with the vocabularies of the prepared text."""
    config = make_bundle_config(recipe, prepared.tokenizer)
    return sum(weight.numel() for weight in make_model(config.model).parameters())


def with_parameters(recipe: Recipe, prepared: PreparedData, wanted: int) -> Recipe:
    """Change the width of a recurrent recipe to the even one whose model is nearest in size."""

    def widened(width: int) -> Recipe:
        values = recipe.model.model_dump(exclude={"d_key"}) | {"d_model": width}
        return recipe.model_copy(update={"model": ModelConfig.model_validate(values)})

    def distance(width: int) -> int:
        return abs(count_parameters(widened(width), prepared) - wanted)

    return widened(min(range(32, 256, 2), key=distance))


def measure_training(recipe: Recipe, prepared: PreparedData, tests: Tests) -> list[dict[str, Any]]:
    """Make all updates of a recipe; return exact match and processor seconds along the way."""
    training = recipe.training
    config = make_bundle_config(recipe, prepared.tokenizer)
    longest = prepared.longest
    plan = make_plan(config.model, training, TrainingState(), longest=longest)
    learner = Learner(training, config, prepared.tokenizer, plan)
    feed = Feed(prepared, recipe, max_tokens_per_batch=plan.max_tokens_per_batch)
    found: list[dict[str, Any]] = []
    seconds, started = 0.0, time.process_time()
    with closing(learner.updater), closing(feed.updates(0)) as updates:
        for update in updates:
            learner.state.step += 1
            step = learner.state.step
            rate, muon_rate = learner.rates
            learner.count(
                learner.updater.update(step, update.batches, rate=rate, muon_rate=muon_rate)
            )
            is_last = step >= training.max_steps
            if is_last or step % (training.max_steps // MEASUREMENTS) == 0:
                seconds += time.process_time() - started
                exact = exact_match(learner, tests, None if is_last else SENTENCES)
                counts = {"updates": step, "target_tokens": learner.state.target_tokens}
                found.append({**counts, "seconds": round(seconds, 1), "exact": exact})
                print(json.dumps(found[-1]), flush=True)
                started = time.process_time()
            if is_last:
                return found
    raise AssertionError("the feed never ends")


def exact_match(learner: Learner, tests: Tests, count: int | None) -> dict[str, float]:
    """Measure the share of each test that is translated exactly, in percent."""
    translator = Translator(learner.judged_model(), learner.tokenizer)
    results = [evaluate_split(translator, name, pairs[:count]) for name, pairs in tests.items()]
    return {result.name: round(100 * result.exact_match, 2) for result in results}


if __name__ == "__main__":
    main()
