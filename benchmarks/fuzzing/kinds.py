"""The kinds of cases: what each mutates, and the command that reads it."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fuzzing.mutations import HOSTILE_NAMES, HOSTILE_NUMBERS, HOSTILE_TEXTS, mutate_file
from fuzzing.options import random_options
from fuzzing.originals import RECIPES

__all__ = ["KINDS", "Case", "make_case"]

SENTENCES = "the big dog sees a cat\n\nman runs in park 😀\nred red red house\n"
PAIR_FILES = ("train.en", "train.fr", "train.align", "train.tsv", "train.jsonl", "validation.en")


@dataclass(frozen=True)
class Case:
    """One command.

    Attributes:
        arguments: the command line after the word ``pellucid``.
        stdin: standard input.
        has_report: True if a training writes its report.
    """

    arguments: list[str]
    stdin: bytes = SENTENCES.encode()
    has_report: bool = False


Make = Callable[[random.Random, Path, Path], Case]
"""Makes a case from dice, the whole inputs, and the folder to write into."""


def make_case(kind: str, seed: int, originals: Path, here: Path) -> Case:
    """Write the inputs of one case, which depends on kind and seed only.

    Args:
        kind: one of `KINDS`.
        seed: of its random numbers.
        originals: the folder of whole inputs.
        here: the empty folder that the case runs in.
    """
    case = KINDS[kind](random.Random(f"{kind} {seed}"), originals, here)
    # A process has no arguments with a zero byte or half of a character.
    words = [word.replace("\0", "") for word in case.arguments]
    words = [word.encode("utf-8", "replace").decode() for word in words]
    return replace(case, arguments=words)


def repair_hashes(bundle: Path) -> None:
    """Bring the manifest's sizes and hashes up to date, as whoever makes a hostile bundle would."""
    path = bundle / "manifest.json"
    try:
        manifest = json.loads(path.read_text())
        for listed in (manifest["files"], manifest.get("checkpoint", {})):
            for name in listed:
                data = (bundle / name).read_bytes()
                listed[name] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
        path.write_text(json.dumps(manifest))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return  # The manifest itself was mutated.


def _mutate_one_of(folder: Path, dice: random.Random, patterns: Sequence[str] = ("*",)) -> Path:
    """Mutate one file, or remove it, or put another, a link or a folder in its place."""
    files = sorted({path for one in patterns for path in folder.glob(one) if path.is_file()})
    path = dice.choice(files)
    kind = dice.randrange(30)
    if kind == 0:
        path.unlink()
    elif kind == 1:
        shutil.copyfile(dice.choice([one for one in files if one != path] or [__file__]), path)
    elif kind == 2:
        path.unlink()
        path.symlink_to(dice.choice(("missing", path.name, "/etc/hostname", "..")))
    elif kind == 3:
        path.unlink()
        path.mkdir()
    else:
        mutate_file(path, dice)
    return path


def _use_of_bundle(name: str, dice: random.Random) -> list[str]:
    """Choose a command that reads a bundle."""
    pair = ["--source", "text.en", "--target", "text.fr"]
    return dice.choice(
        [
            ["inspect", name],
            ["inspect", name, "--json"],
            ["inspect", name, "--vocabulary"],
            ["translate", name],
            ["translate", name, "--beam", "3", "--n-best", "2"],
            ["translate", name, "--sample", "--set", "decoding.top_p=0.9", "--json"],
            ["translate", name, "--require", "chien", "--beam", "3"],
            ["translate", name, "--stream", "--set", "decoding.strict=true"],
            ["score", name, *pair],
            ["align", name, *pair],
            ["align", name, *pair, "--map", "norms"],
            ["look", name, "the big dog"],
            ["look", name, "the big dog", "--translation", "le grand chien", "-o", "look.json"],
            ["look", name, "the big dog", "--show", "heads"],
            ["look", name, "the big dog", "--measure", "gradients"],
            ["look", name, "the big dog", "-o", "page.html"],
            ["export", name, "--format", "pellucid", "--precision", "int8", "-o", "exported"],
            ["export", name, "--format", "marian", "-o", "exported"],
        ]
    )


def _copy_text(originals: Path, here: Path) -> None:
    for ending in ("en", "fr"):
        shutil.copyfile(originals / "text" / f"validation.{ending}", here / f"text.{ending}")
    (here.parent / "victim").write_text("precious\n")
    for name in ("page.html.part", "look.json.part"):
        (here / name).symlink_to(here.parent / "victim")


def _bundle(tokenizer: str, patterns: Sequence[str], *, is_repaired: bool) -> Make:
    def make(dice: random.Random, originals: Path, here: Path) -> Case:
        chosen = tokenizer or dice.choice(tuple(RECIPES))
        shutil.copytree(originals / chosen / "run" / "bundle", here / "model")
        _copy_text(originals, here)
        _mutate_one_of(here / "model", dice, patterns)
        if is_repaired:
            repair_hashes(here / "model")
        return Case(_use_of_bundle("model", dice))

    return make


def _recipe(dice: random.Random, originals: Path, here: Path) -> Case:
    shutil.copytree(originals / "text", here, dirs_exist_ok=True)
    kind = dice.choice(("subwords", *RECIPES))
    recipe = here / "recipe.toml"
    shutil.copyfile(originals / kind / "recipe.toml", recipe)
    arguments = ["train", "recipe.toml", "-o", "run"]
    if dice.random() < 0.5:
        arguments += ["--set", f"{_setting(originals, dice)}={_value(dice)}"]
    else:
        mutate_file(recipe, dice)
    return Case(["check", "recipe.toml"] if dice.random() < 0.3 else arguments)


def _setting(originals: Path, dice: random.Random) -> str:
    """Choose a setting of the resolved recipe."""
    section, found = "", []
    for line in (originals / "subwords" / "run" / "recipe.toml").read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif " = " in line:
            found.append(f"{section}.{line.partition(' = ')[0]}")
    return dice.choice(found)


def _value(dice: random.Random) -> str:
    texts = ["[]", "{}", '""', "[1, 2]", '["a"]', "true", "1e400", '"auto"', *HOSTILE_TEXTS]
    return dice.choice(dice.choice((HOSTILE_NUMBERS, texts)))


def _corpus(dice: random.Random, originals: Path, here: Path) -> Case:
    shutil.copytree(originals / "text", here, dirs_exist_ok=True)
    for name in dice.sample(PAIR_FILES, dice.choice((1, 1, 2))):
        mutate_file(here / name, dice)
    model = str(originals / "subwords" / "run")
    pairs = dice.choice(("train.tsv", "train.jsonl"))
    as_pairs = ["--set", f"data.train={pairs}"]
    train = ["train", "recipe.toml", "-o", "run"]
    shutil.copyfile(originals / "subwords" / "recipe.toml", here / "recipe.toml")
    files = ["--source", "train.en", "--target", "train.fr"]
    links = [
        "--set",
        "data.train_alignments=train.align",
        "--set",
        "training.guided_head=decoder.0.cross.1",
    ]
    return Case(
        dice.choice(
            [
                train,
                ["check", "recipe.toml"],
                ["check", "recipe.toml", "--json"],
                ["check", "recipe.toml", *as_pairs, "--set", "data.train="],
                ["check", "recipe.toml", "--set", "data.on_bad_line=skip"],
                [*train, *links],
                ["translate", model, "-i", "train.en", "-o", "out.txt"],
                ["translate", model, "-i", pairs, "--format", "lines"],
                ["translate", model, "-i", "train.en", "--require", "@train.fr"],
                ["translate", model, "--glossary", "train.tsv", "--forbid", "@train.fr"],
                ["score", model, *files],
                ["align", model, *files, "--gold", "train.align"],
                ["evaluate", "train.fr", "--reference", "train.en"],
                ["evaluate", "train.fr", "--reference", "train.en", "--tokenize", "char", "--json"],
            ]
        )
    )


def _attend(dice: random.Random, originals: Path, here: Path) -> Case:
    shutil.copytree(originals / "attend", here, dirs_exist_ok=True)
    path = _mutate_one_of(here, dice)
    more = dice.choice(([], [], ["--row", "1"], ["--json"], ["--row", "1:0"]))
    return Case(["attend", path.name, *more])


def _run(dice: random.Random, originals: Path, here: Path) -> Case:
    kind = dice.choice(("subwords", "words"))
    shutil.copytree(originals / kind, here, dirs_exist_ok=True)
    changed = _mutate_one_of(
        here / "run", dice, ("*", "data/*", "bundle/*", "checkpoints/*/*", "untrained/*")
    )
    if dice.random() < 0.5:
        repair_hashes(changed.parent)
    train = ["train", "recipe.toml", "-o", "run", "--set", "training.max_steps=4"]
    uses = [train, train, train, ["train", "recipe.toml", "-o", "new", "--start", "run"]]
    arguments = dice.choice([*uses, ["inspect", "run"], ["translate", "run"]])
    return Case(arguments, has_report=dice.random() < 0.25)


def _imported(name: str) -> Make:
    def make(dice: random.Random, originals: Path, here: Path) -> Case:
        shutil.copytree(originals / name, here / "theirs")
        for _ in range(dice.choice((1, 1, 2))):
            _mutate_one_of(here / "theirs", dice)
        return Case(["convert", "theirs", "-o", "model"])

    return make


def _options(dice: random.Random, originals: Path, here: Path) -> Case:
    shutil.copytree(originals / "text", here, dirs_exist_ok=True)
    shutil.copyfile(originals / "subwords" / "recipe.toml", here / "recipe.toml")
    shutil.copyfile(originals / "attend" / "x.toml", here / "x.toml")
    model = str(originals / dice.choice(tuple(RECIPES)) / "run")
    pair = ["--source", "validation.en", "--target", "validation.fr"]
    start = dice.choice(
        [
            ["translate", model],
            ["translate", model],
            ["translate", model, "-i", "validation.en"],
            ["look", model, "the big dog"],
            ["look", model, "the big dog"],
            ["score", model, *pair],
            ["align", model, *pair],
            ["evaluate", "validation.en", "--reference", "validation.fr"],
            ["inspect", model],
            ["export", model, "-o", "exported"],
            ["export", model],
            ["convert", str(originals / "marian"), "-o", "model"],
            ["attend", "x.toml"],
            ["train", "recipe.toml", "-o", "run"],
            ["corpus", "-o", "corpus", "--count", "20"],
            ["demo", "-o", "demo", "--set", "training.max_steps=1"],
        ]
    )
    arguments = [*start, *random_options(start[0], dice)]
    if dice.random() < 0.1:
        arguments[dice.randrange(len(arguments))] = dice.choice(
            (*HOSTILE_TEXTS, *HOSTILE_NUMBERS, *HOSTILE_NAMES)
        )
    return Case(arguments)


KINDS: dict[str, Make] = {
    "bundles": _bundle("", ("*",), is_repaired=False),
    "bundles, hashes repaired": _bundle("subwords", ("*",), is_repaired=True),
    "vocabularies": _bundle("", ("*.model", "*.txt", "*.json"), is_repaired=True),
    "recipes": _recipe,
    "corpora": _corpus,
    "attend files": _attend,
    "run folders": _run,
    "Hugging Face folders": _imported("hugging_face"),
    "Marian folders": _imported("marian"),
    "options": _options,
}
"""The kinds of cases, by the name that the table shows."""
