"""What a GPU does, in a quarter of an hour: one result file, whatever is cut off.

    make bench-gpu
    python benchmarks/gpu.py --steps products graphs updates exactness train decode
    python benchmarks/gpu.py --steps recipe seeds big german
    python benchmarks/gpu.py --smallest --device cpu --out build/gpu.json

The two lines in the middle take up to 9 minutes each, on one H100 or H200. The last runs every step
at tiny sizes on a processor, to see that nothing is missing before a GPU's minutes begin. Steps
stand in the order of their importance, and each is a separate process with a limit of time: what
it had measured until then is kept, and the next step begins. The result file is written after each
step, and steps that it has from an earlier call stay in it (`--out`).

- `products`: the rate of a large product in bfloat16, which the other rates are shares of;
- `graphs`: whether work can be recorded and repeated, with new data, new seeds and gradients;
- `updates`: weights after some recorded updates next to the plain update in float64, to the same
  again, and to the same without graphs, with dropout;
- `exactness`: logits, the loss in chunks and the gradient in float32 next to float64; greedy tokens
  and the arrays of a look next to the processor's;
- `train`: target tokens a second of size `base`: by graphs, step by step in few shapes, step by
  step in any shapes (what the one line `enable_cudnn_sdp(False)` gave), and of Hugging Face;
- `decode`: target tokens a second by graphs and without, greedy and with beam 5, of 512 sentences
  and of one, and of Hugging Face's `generate`;
- `recipe`, `german`: `pellucid train multi30k-en-fr-lowercased` (en-de) from the shell: minutes and
  BLEU of test_2016_flickr; needs Multi30k in the folder that MULTI30K names;
- `seeds`: 200 updates of that recipe twice with one seed, as usual and with PyTorch's deterministic
  algorithms: equal bytes, or how far apart;
- `big`: as `train`, with size `big`.

At the end the figures stand next to what was wanted. Hugging Face needs `transformers`. For a
machine without a network, see "A GPU without a network" in README.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from on_gpu.gpu_decoding import measure_decoding
from on_gpu.gpu_exactness import measure_exactness, measure_graphs, measure_updates
from on_gpu.gpu_recipe import measure_recipe, measure_seeds
from on_gpu.gpu_setting import Note, Setting
from on_gpu.gpu_training import measure_products, measure_training
from side_by_side.results import write_result

FRENCH, GERMAN = (f"multi30k-en-{one}-lowercased" for one in ("fr", "de"))

STEPS: Mapping[str, tuple[int, Callable[[Setting, Note], None]]] = {
    "products": (40, measure_products),
    "graphs": (40, measure_graphs),
    "updates": (90, measure_updates),
    "exactness": (90, measure_exactness),
    "train": (150, partial(measure_training, size="base")),
    "decode": (150, partial(measure_decoding, size="base")),
    "recipe": (270, partial(measure_recipe, recipe=FRENCH)),
    "seeds": (90, measure_seeds),
    "big": (120, partial(measure_training, size="big")),
    "german": (270, partial(measure_recipe, recipe=GERMAN)),
}
"""What is measured, with the most seconds that each may take."""

LEAST_SECONDS = 15
"""Time that must be left for a step to begin."""

WANTED = {
    "base, tokens/s": ("train", ("recorded", "tokens_per_second"), 800_000),
    "base, share of the best": ("train", ("recorded", "share_of_best"), 0.25),
    "base, times the one line": ("train", ("times_the_one_line",), 3.5),
    "base, times Hugging Face": ("train", ("times_hugging_face",), 3),
    "big, share of the best": ("big", ("recorded", "share_of_best"), 0.4),
    "recipe, BLEU": ("recipe", ("bleu",), 62.5),
    "recipe, minutes at most": ("recipe", ("minutes",), -3),
    "greedy, times Hugging Face": ("decode", ("512 sentences, beam 1", "times"), 5),
    "beam 5, times Hugging Face": ("decode", ("512 sentences, beam 5", "times"), 5),
    "one sentence, times Hugging Face": ("decode", ("1 sentence, beam 1", "times"), 10),
    "same seed, equal bytes": ("seeds", ("deterministic", "equal"), 1),
    "look, off by at most": ("exactness", ("look_off_by",), -1e-4),
}
"""What was wanted: the step, the place in it, and the least; the most if it is negative."""


def main() -> None:
    """Measure each step, and write the result file after each."""
    asked = parse()
    deadline = time.monotonic() + 60 * asked.minutes
    found: dict[str, Any] = {}
    if asked.out and asked.out.exists():
        found = json.loads(asked.out.read_text())
    found |= {"smallest": asked.smallest, "left_out": []}
    for name in asked.steps:
        limit, measure = STEPS[name]
        if asked.smallest:  # A processor may be busy.
            limit *= 10
        left = deadline - time.monotonic()
        if left < LEAST_SECONDS:
            found["left_out"].append(name)
            continue
        found[name] = run_step(partial(measure, Setting(asked.device, asked.smallest)), limit, left)
        print(f"{name}: {json.dumps(found[name])}", flush=True)
        found["wanted"] = compare(found)
        write_result("gpu", found, (), asked.out)
    for name, line in found.get("wanted", {}).items():
        print(f"{name:34} {line}")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N, or cpu with --smallest")
    parser.add_argument("--steps", nargs="*", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--minutes", type=float, default=9, help="no step takes longer than that")
    parser.add_argument("--smallest", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--out", type=Path, help="the result file")
    return parser.parse_args()


def run_step(measure: Callable[[Note], None], limit: float, left: float) -> dict[str, Any]:
    """Run a step in a separate process; return what it noted until it ended or was ended.

    Args:
        measure: the step.
        limit: seconds of the step.
        left: seconds of all steps that are left.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        # A fork has PyTorch imported already, and its own GPU: this process never touches it.
        process = multiprocessing.get_context("fork").Process(target=_work, args=(measure, path))
        process.start()
        process.join(min(limit, left))
        is_late = process.is_alive()
        if is_late:
            process.kill()
            process.join()
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if is_late:
        found["cut_off"] = True
    elif process.exitcode:
        found.setdefault("failed", f"exit code {process.exitcode}")
    found["seconds"] = round(time.monotonic() - began, 1)
    return found


def _work(measure: Callable[[Note], None], path: Path) -> None:
    found: dict[str, Any] = {}

    def note(more: Mapping[str, Any]) -> None:
        found.update(more)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(found))
        part.rename(path)

    try:
        measure(note)
    except BaseException as error:
        traceback.print_exc()
        note({"failed": f"{type(error).__name__}: {error}"[:500]})
        raise SystemExit(1) from None


def compare(found: Mapping[str, Any]) -> dict[str, str]:
    """Put each figure next to what was wanted."""
    lines = {}
    for name, (step, places, wanted) in WANTED.items():
        value: Any = found.get(step, {})
        for place in places:
            value = value.get(place) if isinstance(value, Mapping) else None
        if value is None:
            lines[name] = "not measured"
            continue
        is_reached = value >= wanted if wanted > 0 else value <= -wanted
        verdict = "reached" if is_reached else "NOT reached"
        lines[name] = f"{float(value):,.4g}, wanted {abs(wanted):,}: {verdict}"
    return lines


if __name__ == "__main__":
    main()
