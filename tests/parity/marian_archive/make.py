"""Make this folder: a tiny model that Marian itself trained, and the scores that it gives.

Run it in its own environment: ``pip install pymarian sentencepiece``, then
``python make.py``. Marian's results differ a little between machines, so model and scores
belong together.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from pathlib import Path

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


if __name__ == "__main__":
    sys.exit(main())
