"""Answer the same questions in Pellucid, TransformerLens and nnsight, of one model.

    pip install . torch==2.13.0 transformers==5.24.0 transformer_lens==4.3.0 nnsight==0.8.1
    python benchmarks/beside.py

The packaged model is exported to MarianMT, which the other two open. Its vocabulary is whole words,
of which MarianMT's tokenizer knows nothing, so all three read the same ids.

Each task is a function in `inside_peers/in_TOOL.py`, as short as its author could write it. What
counts are the statements of that function; imports, opening the model and the metric
(`Question.prefers`) do not. Both other tools patch a grid in batches, which is their fastest way.
Times are processor seconds on one thread, in turn, and the median over the rounds. All compute in
double precision, except for Pellucid's beams, which are those of `pellucid translate`.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import statistics
import tempfile
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from decode_peers.subjects import numbered_words
from inside_peers import in_nnsight, in_pellucid, in_transformer_lens
from inside_peers.question import Question, ask
from side_by_side.results import write_result

import pellucid
from pellucid.bundle import load_bundle, save_bundle
from pellucid.config import BundleConfig, TokenizerConfig
from pellucid.config.head_address import sites_of
from pellucid.formats.tensor_names import halves_order
from pellucid.formats.to_marian import export_marian
from pellucid.text.tokenizers.subwords import SentencePieceTokenizer
from pellucid.translate.translator import Translator

QUESTIONS = (
    (
        "The pizza came out of the oven and it tasted good.",
        "The cake came out of the oven and it tasted good.",
        ("elle", "il"),
    ),
    ("The soup was cold.", "The bread was cold.", ("froide", "froid")),
    (
        "The dog ate the soup because it was good.",
        "The dog ate the bread because it was good.",
        ("qu'elle", "qu'il"),
    ),
)
"""Pairs of sentences of one length each; the first is timed."""

MOST = 1e-5
"""The largest difference that counts as equal."""

TOOLS: dict[str, ModuleType] = {
    "pellucid": in_pellucid,
    "transformer_lens": in_transformer_lens,
    "nnsight": in_nnsight,
}

NORMS = {
    "encoder.self": ("ln1", "self_attn_layer_norm"),
    "encoder.feed_forward": ("ln2", "final_layer_norm"),
    "decoder.self": ("ln1", "self_attn_layer_norm"),
    "decoder.cross": ("ln2", "encoder_attn_layer_norm"),
    "decoder.feed_forward": ("ln3", "final_layer_norm"),
}
"""What both others call the norm behind each sub-layer."""

ATTENTIONS = {
    "encoder.self": ("attn", "self_attn"),
    "decoder.self": ("self_attn", "self_attn"),
    "decoder.cross": ("cross_attn", "encoder_attn"),
}

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Task:
    """A task, and how the results of the three are brought into one form.

    Attributes:
        name: that of its function in each tool.
        title: what is asked.
        read: makes arrays of a result, by name.
    """

    name: str
    title: str
    read: Callable[[str, Any, Translator, Question], Arrays]


def main() -> None:
    """Run every task in each tool, compare, print, and write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, help="the result file (default: a dated one)")
    given = parser.parse_args()
    torch.set_num_threads(1)
    translator = pellucid.load("demo", threads=1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = export_packaged(translator, Path(scratch))
        peers = {
            "transformer_lens": in_transformer_lens.open_model(folder),
            "nnsight": in_nnsight.open_model(folder),
        }
    questions = [ask(translator, *one) for one in QUESTIONS]
    rows = [run_task(task, translator, peers, questions, given.rounds) for task in TASKS]
    refused = in_transformer_lens.refusals(peers["transformer_lens"], questions[0])
    for name, message in refused.items():
        print(f"{name}: {message or 'works'}")
    written = {
        "questions": [list(one) for one in QUESTIONS],
        "rounds": given.rounds,
        "versions": {
            package: version(package) for package in ("transformer_lens", "nnsight", "transformers")
        },
        "tasks": rows,
        "own_functions_of_transformer_lens": refused,
    }
    write_result("beside", written, (), given.out)
    largest = max(tool.get("difference", 0.0) for row in rows for tool in row["tools"].values())
    assert largest <= MOST, f"a difference is larger than {MOST}"


def export_packaged(translator: Translator, folder: Path) -> Path:
    """Export the packaged model with numbers in the place of its words, and return the folder."""
    bundle = translator.bundle
    config = bundle.config.model
    sizes = config.source_vocabulary_size, config.target_vocabulary_size
    tokenizer = SentencePieceTokenizer(
        TokenizerConfig(sharing="separate"), *(numbered_words(size) for size in sizes)
    )
    save_bundle(
        folder / "numbered",
        config=BundleConfig(
            model=config, tokenizer=tokenizer.config, languages=bundle.config.languages
        ),
        weights=bundle.model.state_dict(),
        tokenizer=tokenizer,
        recipe_toml="",
        provenance={},
    )
    export_marian(load_bundle(folder / "numbered"), folder / "marian", "float32")
    return folder / "marian"


def run_task(
    task: Task,
    translator: Translator,
    peers: Mapping[str, Any],
    questions: list[Question],
    rounds: int,
) -> dict[str, Any]:
    """Run one task in every tool: differences over all questions, seconds of the first."""
    differences = dict.fromkeys(peers, 0.0)
    for question in questions:
        models = {"pellucid": in_pellucid.Model(translator, question), **peers}
        # This is also the first call of each, which is not timed.
        found = {
            name: task.read(name, call(name, task, model, question), translator, question)
            for name, model in models.items()
        }
        for name in peers:
            worst = largest_difference(found["pellucid"], found[name])
            differences[name] = max(differences[name], worst)
    first = questions[0]
    models = {"pellucid": in_pellucid.Model(translator, first), **peers}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(rounds):
        for name, model in models.items():
            start = time.process_time()
            call(name, task, model, first)
            seconds[name].append(time.process_time() - start)
    tools: dict[str, dict[str, float]] = {}
    for name, times in seconds.items():
        tools[name] = {
            "statements": count_statements(getattr(TOOLS[name], task.name)),
            "seconds": statistics.median(times),
        }
        if name in differences:
            tools[name]["difference"] = differences[name]
        print(f"{task.name:18} {name:16} {tools[name]}", flush=True)
    return {"task": task.name, "title": task.title, "tools": tools}


def call(name: str, task: Task, model: Any, question: Question) -> Any:
    """Run the function of a task in one tool."""
    return getattr(TOOLS[name], task.name)(model, question)


def count_statements(function: Callable[..., Any]) -> int:
    """Count the statements in a function, without its heading and docstring."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    found = [node for node in ast.walk(tree.body[0]) if isinstance(node, ast.stmt)]
    texts = [node for node in found if isinstance(node, ast.Expr)]
    docstrings = [node for node in texts if isinstance(node.value, ast.Constant)]
    return len(found) - 1 - len(docstrings)


def largest_difference(ours: Arrays, theirs: Arrays) -> float:
    """Find the largest difference of two sets of arrays with the same names and shapes."""
    assert ours.keys() == theirs.keys()
    assert all(array.shape == theirs[name].shape for name, array in ours.items())
    return max(float(np.abs(array - theirs[name]).max()) for name, array in ours.items())


def to_numpy(found: Any) -> np.ndarray:
    """Turn a tensor, a list of single numbers as tensors, or a list of ids into an array."""
    return torch.as_tensor(found).numpy(force=True)


def read_cache(name: str, found: Any, translator: Translator, question: Question) -> Arrays:
    """Take the weights of every attention, and the vector behind every sub-layer."""
    config = translator.bundle.config.model
    # MarianMT has all sines before all cosines, so that its vectors are in another order.
    order = halves_order(config.d_model).numpy()
    num_rows = question.read_1T.shape[1]
    arrays = {}
    for site in sites_of(config):
        part, layer, kind = site.split(".")
        norms = NORMS[f"{part}.{kind}"]
        names = ATTENTIONS.get(f"{part}.{kind}")
        if name == "pellucid":
            # Its pair is of the whole translation, the question of its beginning.
            rows = num_rows if part == "decoder" else None
            arrays[f"{site}.norm"] = to_numpy(found[f"{site}.norm"])[:rows, order]
            if names:
                columns = num_rows if site.startswith("decoder") and kind == "self" else None
                arrays[f"{site}.weights"] = to_numpy(found[f"{site}.weights"])[:, :rows, :columns]
            continue
        if name == "transformer_lens":
            block = f"{part}_blocks.{layer}"
            arrays[f"{site}.norm"] = to_numpy(found[f"{block}.{norms[0]}.hook_out"])[0]
            if names:
                arrays[f"{site}.weights"] = to_numpy(found[f"{block}.{names[0]}.hook_pattern"])[0]
            continue
        block = f"model.model.{part}.layers.{layer}"
        arrays[f"{site}.norm"] = to_numpy(found[f"{block}.{norms[1]}"].output)[0]
        if names:
            arrays[f"{site}.weights"] = to_numpy(found[f"{block}.{names[1]}"].output[1])[0]
    return arrays


def read_logits(name: str, found: Any, translator: Translator, question: Question) -> Arrays:
    """Take the logits of the rows that the question reads."""
    logits_TV = found if name == "pellucid" else found[0]
    return {"logits": to_numpy(logits_TV)[: question.read_1T.shape[1]]}


def read_shares(name: str, found: Any, translator: Translator, question: Question) -> Arrays:
    """Take the shares of single positions; the last column of a map is of all together."""
    return {"shares": found.matrix[:, :-1] if name == "pellucid" else to_numpy(found)}


def read_parts(name: str, found: Any, translator: Translator, question: Question) -> Arrays:
    """Take a number for each part of the model."""
    return {"parts": found.matrix[:, 0] if name == "pellucid" else to_numpy(found)}


def read_numbers(name: str, found: Any, translator: Translator, question: Question) -> Arrays:
    """Take weights or ids as they are."""
    return {"numbers": np.array(found) if name == "pellucid" else to_numpy(found)}


TASKS = (
    Task("cache", "all attention weights and residual vectors", read_cache),
    Task("cut_head", "logits without one head", read_logits),
    Task("patch", "patching grid: 3 × 13 vectors, 8 heads × 13 positions", read_shares),
    Task("patch_by_gradient", "the 3 × 13 vectors by gradient", read_shares),
    Task("logit_attribution", "logit attribution of *elle* against *il*, 21 parts", read_parts),
    Task("head_gradients", "gradients of all 24 heads", read_parts),
    Task("beam_weights", "weights of what a beam of 5 wrote", read_numbers),
    Task("beam_cut", "a beam of 5 without one head", read_numbers),
)


if __name__ == "__main__":
    main()
