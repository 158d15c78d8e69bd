"""Make this folder: a tiny model that Marian itself trained, and the scores that it gives.

Run it in its own environment: ``pip install pymarian sentencepiece``, then
``python make.py``. Marian's results differ a little between machines, so model and scores
belong together. ``python make.py ssru`` makes ``../marian_ssru`` instead, in the form of Firefox
Translations: a decoder of simpler simple recurrent units, a joint SentencePiece vocabulary, and the
binary files that ``marian-conv`` writes.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import sentencepiece
from pymarian import Trainer, Translator

ENGLISH = "the black cat eats a red apple in kitchen while dog sleeps near old door"
FRENCH = "le chat noir mange une pomme rouge dans la cuisine près du vieil étang"
SETTINGS = """\
relative-paths: true
models:
  - model.npz
vocabs:
  - vocab.yml
  - vocab.yml
beam-size: 6
normalize: 1
word-penalty: 0
mini-batch: 1
"""
MODEL = (
    "--type transformer --dim-emb 16 --transformer-heads 2 --transformer-dim-ffn 20 --enc-depth 2 "
    "--dec-depth 1 --transformer-ffn-activation swish --tied-embeddings-all --dim-vocabs 90 90 "
    "--transformer-postprocess-emb d --transformer-dropout 0.1 --label-smoothing 0.1 --seed 3 "
    "--mini-batch 32 --after 120u --learn-rate 0.01 --lr-warmup 20 --cpu-threads 1 -w 100 "
    "--overwrite --quiet"
)

SSRU = (
    "--type transformer --transformer-decoder-autoreg rnn --dec-cell ssru --dim-emb 32 "
    "--transformer-heads 2 --transformer-dim-ffn 48 --enc-depth 1 --dec-depth 2 "
    "--tied-embeddings-all --dim-vocabs 80 80 --transformer-dropout 0.1 --label-smoothing 0.1 "
    "--seed 3 --mini-batch 32 --after 1500u --learn-rate 0.005 --lr-warmup 100 --cpu-threads 1 "
    "-w 100 --overwrite --quiet"
)
GREEDY = (
    "--beam-size 1 --n-best --word-scores --normalize 0 --max-length-factor 2 --cpu-threads 1 "
    "-w 100 --quiet"
)


def sentences(text: str) -> list[str]:
    dice, words = random.Random(7), text.split(" ")
    return [" ".join(dice.choices(words, k=dice.randint(3, 11))) + "." for _ in range(300)]


def main() -> None:
    """Train in a temporary folder and copy what an OPUS-MT zip file holds."""
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cut = {}
        for side, text in (("source", ENGLISH), ("target", FRENCH)):
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences(text)),
                model_prefix=str(folder / side),
                model_type="unigram",
                vocab_size=50,
                normalization_rule_name="identity",
                hard_vocab_limit=False,
                minloglevel=2,
            )
            processor = sentencepiece.SentencePieceProcessor(
                model_file=str(folder / f"{side}.model")
            )
            cut[side] = [" ".join(line) for line in processor.encode(sentences(text), out_type=str)]
            (folder / side).write_text("".join(f"{line}\n" for line in cut[side]))
            shutil.copy(folder / f"{side}.model", here / f"{side}.spm")
        vocabularies = f"--vocabs {folder}/vocab.yml {folder}/vocab.yml"
        files = f"--model {folder}/model.npz --train-sets {folder}/source {folder}/target"
        Trainer(f"{files} {vocabularies} {MODEL}").train()
        translator = Translator(
            f"--models {folder}/model.npz {vocabularies} --beam-size 1 --n-best --word-scores "
            "--normalize 0 --max-length-factor 2 --cpu-threads 1 -w 100 --quiet"
        )
        scores = []
        for source, line in zip(
            sentences(ENGLISH)[:5], translator.translate(cut["source"][:5]), strict=True
        ):
            _, tokens, words, *_ = line.split(" ||| ")
            values = [float(value) for value in words.removeprefix("WordScores= ").split()]
            scores.append({"source": source, "tokens": tokens.split(), "scores": values})
        (here / "scores.json").write_text(json.dumps(scores, ensure_ascii=False, indent=1) + "\n")
        for name in ("model.npz", "vocab.yml"):
            shutil.copy(folder / name, here / name)
    (here / "decoder.yml").write_text(SETTINGS)


def make_ssru() -> None:
    """Train a model with recurrent units, and write it in each form of its weights."""
    here = Path(__file__).parents[1] / "marian_ssru"
    here.mkdir(exist_ok=True)
    # Word by word, so that the model learns to translate what it has not seen.
    words = dict(zip(ENGLISH.split(" "), FRENCH.split(" "), strict=False))
    dice = random.Random(7)
    sources = [" ".join(dice.choices(list(words), k=dice.randint(3, 11))) for _ in range(1800)]
    targets = [" ".join(words[word] for word in source.split(" ")) for source in sources]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([*sources, *targets]),
            model_prefix=str(folder / "vocab"),
            vocab_size=80,
            hard_vocab_limit=False,
            normalization_rule_name="identity",
            bos_id=-1,
            eos_id=0,
            unk_id=1,
            minloglevel=2,
        )
        shutil.copy(folder / "vocab.model", folder / "vocab.spm")
        (folder / "source").write_text("".join(f"{line}\n" for line in sources[:1500]))
        (folder / "target").write_text("".join(f"{line}\n" for line in targets[:1500]))
        vocabularies = f"--vocabs {folder}/vocab.spm {folder}/vocab.spm"
        files = f"--model {folder}/model.npz --train-sets {folder}/source {folder}/target"
        Trainer(f"{files} {vocabularies} {SSRU}").train()
        translator = Translator(f"--models {folder}/model.npz {vocabularies} {GREEDY}")
        scores = []
        for source, line in zip(sources[1500:], translator.translate(sources[1500:]), strict=True):
            _, text, scored, *_ = line.split(" ||| ")
            values = [float(value) for value in scored.removeprefix("WordScores= ").split()]
            scores.append(json.dumps([source, text, values], ensure_ascii=False))
        (here / "scores.jsonl").write_text("\n".join(scores) + "\n")
        # What a fine-tuning stores for each product: how far its input reaches.
        with np.load(folder / "model.npz") as archive:
            arrays = {name: archive[name] for name in archive.files}
        reach = {f"{name}_QuantMultA": np.float32([9.5]) for name in arrays if "_W" in name[-4:]}
        np.savez(folder / "alphas.npz", **arrays, **reach, none_QuantMultA=np.float32([9.5]))
        for source, kind, target in (
            ("model.npz", "float32", "model.bin"),
            ("model.npz", "intgemm8", "model.intgemm8.bin"),
            ("alphas.npz", "intgemm8", "model.intgemm.alphas.bin"),
        ):
            convert = [sys.executable, "-m", "pymarian", "convert", "--gemm-type", kind]
            convert += ["--from", folder / source, "--to", folder / target]
            subprocess.run(convert, check=True)
        for name in ("model.npz", "model.bin", "model.intgemm8.bin", "model.intgemm.alphas.bin"):
            if (folder / name).exists():
                shutil.copy(folder / name, here / name)
        shutil.copy(folder / "vocab.spm", here / "vocab.spm")


if __name__ == "__main__":
    sys.exit(make_ssru() if "ssru" in sys.argv else main())
