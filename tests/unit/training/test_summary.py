"""The screen before and during training."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from forked import Forked
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.errors import ConfigurationError, OutputError
from pellucid.model import Transformer
from pellucid.training.console.messages import expected_time
from pellucid.training.console.summary import (
    TrainingOutlook,
    describe_bytes,
    describe_seconds,
    parameters_by_part,
    screen,
)
from pellucid.training.console.training_progress import (
    Smoothed,
    TrainingProgress,
    describe_time_left,
    describe_training,
)
from pellucid.training.fast.kernels.kernel_model import KernelChoice
from pellucid.training.run import metrics
from pellucid.training.run.checkpoint import TrainingState
from pellucid.training.run.metrics import TensorboardWriter
from pellucid.training.start.plan import TrainingPlan
from pellucid.training.start.training_pairs import CorpusCount

PLAN = TrainingPlan(
    device=torch.device("cpu"),
    precision="bfloat16",
    kernels=KernelChoice(None, "own kernels (avx2_bfloat16)"),
    processes=1,
    ranks=1,
    threads=2,
    max_tokens_per_batch=2048,
    memory_bytes=730 << 20,
    available_bytes=8_267_000_000,
    is_budget_new=True,
)
OUTLOOK = TrainingOutlook(
    corpora=[CorpusCount("train.en.gz, train.fr.gz", 29_000, 28_957)],
    dropped={"source too long": 4, "length ratio": 39},
    source_tokens=473_632,
    target_tokens=532_949,
    validation_pairs=1_014,
    source_vocabulary_size=4000,
    target_vocabulary_size=4000,
    is_joint=True,
    parameters={"embedding": 512_000, "encoder": 527_872, "decoder": 791_040, "output": 0},
    plan=PLAN,
    steps=4500,
    epochs=15.6,
    settings=[
        "Adam, rate 0.004 after 600 steps, then linear.",
        "Dropout 0.1, label smoothing 0.1.",
    ],
    choices=["model.size is tiny: 29,000 pairs are few.", "training.dropout is 0.1."],
)


def test_screen_says_everything_that_is_known() -> None:
    assert screen(OUTLOOK) == (
        "Data       28,957 of 29,000 pairs (dropped: 39 length ratio; 4 source too long)\n"
        "           473,632 source tokens, 532,949 target tokens; 1,014 validation pairs; "
        "vocabulary 4,000,\n"
        "           joint\n"
        "Model      1,830,912 parameters: embedding 512,000, encoder 527,872, decoder 791,040, "
        "output shared\n"
        "Training   at most 4,500 steps (16 epochs), time known after the first steps.\n"
        "           Adam, rate 0.004 after 600 steps, then linear. Dropout 0.1, "
        "label smoothing 0.1.\n"
        "Memory     about 730 MiB of 7.7 GiB available\n"
        "Machine    cpu, 2 threads, bfloat16, own kernels (avx2_bfloat16)\n"
        "Chosen     model.size is tiny: 29,000 pairs are few.\n"
        "           training.dropout is 0.1."
    )


def test_screen_without_what_is_not_known_yet() -> None:
    plan = replace(PLAN, available_bytes=None)
    text = screen(replace(OUTLOOK, plan=plan, dropped={}, choices=()))
    assert "time known after the first steps" in text
    assert "Memory     about 730 MiB\n" in text
    assert "28,957 of 28,957 pairs (dropped: none)" in text
    assert "Chosen" not in text


def test_screen_several_corpora_have_their_weights() -> None:
    corpora = [CorpusCount("a.tsv", 10_030, 10_007, 2.0), CorpusCount("b.tsv", 523, 503)]
    text = screen(replace(OUTLOOK, corpora=corpora, is_joint=False, target_vocabulary_size=3001))
    assert "10,007 pairs × 2  a.tsv" in text
    assert "503 pairs  b.tsv" in text
    assert "10,510 of 10,553 pairs" in text
    assert "4,000 and 3,001" in re.sub(r"\s+", " ", text)


sentences = st.lists(st.text("abc de.", max_size=260), max_size=40)


@settings(max_examples=settings.default.max_examples * 3 // 5, deadline=None)
@given(
    names=st.lists(st.text(min_size=1, max_size=150), min_size=1, max_size=9),
    words=sentences,
    choices=sentences,
    dropped=st.dictionaries(st.text("xyz ", min_size=1, max_size=30), st.integers(0, 10**12)),
    large=st.integers(0, 10**15),
)
def test_screen_fits_whatever_there_is_to_say(
    names: list[str], words: list[str], choices: list[str], dropped: dict[str, int], large: int
) -> None:
    outlook = replace(
        OUTLOOK,
        corpora=[CorpusCount(name, large, large, 0.123) for name in names],
        settings=words,
        choices=choices,
        dropped=dropped,
        plan=replace(PLAN, memory_bytes=large),
        steps=large,
    )
    lines = screen(outlook).split("\n")
    assert len(lines) <= 24
    assert max(len(line) for line in lines) <= 100
    titles = [line[:11].strip() for line in lines]
    assert {"Data", "Model", "Training", "Memory", "Machine"} <= set(titles)


def test_screen_choices_that_do_not_fit_are_counted() -> None:
    text = screen(replace(OUTLOOK, choices=[f"choice {number}." for number in range(50)]))
    shown = text.count("choice ")
    assert 5 < shown < 50
    assert text.endswith(f"and {50 - shown} more settings (recipe.toml)")


@pytest.mark.parametrize("tied", ["all", "decoder", "none"])
def test_parameters_by_part_add_up_to_all_of_them(tied: str) -> None:
    config = ModelConfig.model_validate(
        {
            "d_model": 6,
            "d_ff": 5,
            "num_heads": 3,
            "num_encoder_layers": 1,
            "num_decoder_layers": 2,
            "tied_embeddings": tied,
            "source_vocabulary_size": 11,
            "target_vocabulary_size": 11 if tied == "all" else 13,
            "positions": "learned",
        }
    )
    model = Transformer(config)
    parts = parameters_by_part(model)
    assert sum(parts.values()) == sum(weight.numel() for weight in model.parameters())
    assert parts["embedding"] == {"all": 66, "decoder": 144, "none": 144}[tied]
    assert parts["output"] == (78 if tied == "none" else 0)
    assert parts["encoder"] == sum(weight.numel() for weight in model.encoder.parameters())


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min"), (3569, "59 min"), (11_090, "3 h 05 min")],
)
def test_describe_seconds(seconds: float, words: str) -> None:
    assert describe_seconds(seconds) == words


@pytest.mark.parametrize(
    ("size", "words"), [(5 << 10, "5 KiB"), (310 << 20, "310 MiB"), (1000 << 20, "1.0 GiB")]
)
def test_describe_bytes(size: int, words: str) -> None:
    assert describe_bytes(size) == words


def test_smoothed_halves_the_distance_in_ten_seconds_of_steps() -> None:
    smoothed = Smoothed()
    smoothed.add(100.0, now=5.0)
    assert smoothed.value == 100.0
    for tenth in range(1, 101):
        smoothed.add(200.0, now=5.0 + tenth / 10)
    assert smoothed.value == pytest.approx(150.0)


def test_smoothed_pause_does_not_forget_what_was_before() -> None:
    smoothed = Smoothed()
    smoothed.add(100.0, now=0.0)
    smoothed.add(0.0, now=10_000.0)
    assert smoothed.value > 80.0


@pytest.mark.parametrize(
    ("share", "now", "words"),
    [
        (0.2, 1000.0, ""),
        (0.3, 1004.0, ""),
        (0.3, 1010.0, "1:10 left"),
        (0.21, 1100.0, "2h12m left"),
        (0.2001, 1100.0, "9 days left"),
        (1.0, 1100.0, "0:00 left"),
    ],
)
def test_describe_time_left_counts_from_the_start_of_this_process(
    share: float, now: float, words: str
) -> None:
    assert describe_time_left(share, since=(1000.0, 0.2), now=now) == words


@settings(deadline=None)
@given(
    step=st.integers(0, 999_999),
    loss=st.floats(0, 1e9),
    speed=st.floats(0, 999_999),
    rate=st.floats(1e-99, 1),
    bleu=st.floats(-1, 99),
    share=st.floats(0, 1),
    now=st.floats(0, 1e9),
)
def test_describe_training_leaves_room_for_a_bar_in_80_columns(
    step: int, loss: float, speed: float, rate: float, bleu: float, share: float, now: float
) -> None:
    left = describe_time_left(share, since=(0.0, 0.0), now=now)
    text = describe_training(
        step=step, loss=loss, speed=speed, rate=rate, bleu=bleu, time_left=left
    )
    assert len(text) <= 79


def test_progress_where_there_is_no_terminal_shows_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with TrainingProgress(is_wanted=True) as bar:
        bar.update(0.5, step=3, loss=1.0, speed=5.0, rate=0.1, bleu=-1.0)
        with bar.busy("validating"):
            pass
    assert capfd.readouterr() == ("", "")


TERMINAL = """
import sys
from pellucid.training.console.training_progress import TrainingProgress
now = [0.0]
with TrainingProgress(is_wanted=True, clock=lambda: now[0]) as bar:
    for step in range(1, 21):
        now[0] += 1.0
        bar.update(step / 1000, step=step, loss=2.5, speed=12345.0, rate=4e-4, bleu=-1.0)
    print("a line of the log", file=sys.stderr)
    with bar.busy("validating"):
        bar._line._line.refresh()
    bar.update(0.021, step=21, loss=2.25, speed=12345.0, rate=4e-4, bleu=61.83)
    bar._line._line.refresh()
print("a result")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_progress_on_a_terminal_of_80_columns_is_one_line(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = start(
        [sys.executable, "-c", TERMINAL],
        kind=Forked,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # how Linux says that the other end is closed
            break
        if not more:
            break
        shown += more
    os.close(ours)
    assert process.communicate()[0] == b"a result\n"
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    lines = re.split(r"[\r\n]+", plain)
    assert max(len(line) for line in lines) == 80
    words = "step 21  loss 2.250  12.3k tokens/s  rate 4.0e-04  BLEU 61.8  15:30 left"
    assert any(line.endswith(words) for line in lines)
    assert any(line.endswith("validating") for line in lines)
    assert "a line of the log" in lines


class FakeSummaryWriter:
    """A writer that keeps its calls."""

    def __init__(self, folder: str, purge_step: int) -> None:
        if Path(folder).parent.is_file():
            raise NotADirectoryError(20, "Not a directory")
        self.told: list[tuple[Any, ...]] = [("open", folder, purge_step)]

    def add_scalar(self, *values: Any) -> None:
        self.told.append(values)

    def add_text(self, *values: Any) -> None:
        self.told.append(values)

    def flush(self) -> None:
        self.told.append(("flush",))

    def close(self) -> None:
        self.told.append(("close",))


@pytest.fixture
def fake_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = FakeSummaryWriter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.setattr(metrics, "find_spec", lambda name: object())


@pytest.mark.usefixtures("fake_tensorboard")
def test_tensorboard_gets_every_number_and_sample_at_once(tmp_path: Path) -> None:
    with closing(TensorboardWriter(tmp_path, purge_step=151)) as writer:
        writer.add_metrics("train", {"step": 160, "loss": 2.5, "epoch": 3})
        sample = {"step": 160, "source": "a\nb", "reference": "# c", "translation": "<d>"}
        writer.add_sample(1, sample)
        fake = writer._writer
    assert fake.told == [  # type: ignore[attr-defined]
        ("open", str(tmp_path / "tensorboard"), 151),
        ("train/loss", 2.5, 160),
        ("train/epoch", 3, 160),
        ("flush",),
        ("samples/1", "    source: a b\n    reference: # c\n    translation: <d>", 160),
        ("flush",),
        ("close",),
    ]


@pytest.mark.usefixtures("fake_tensorboard")
def test_tensorboard_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(OutputError, match="TensorBoard folder must be writable"):
        TensorboardWriter(tmp_path / "run")


def test_tensorboard_not_installed_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'pellucid\[tensorboard\]'"):
        TensorboardWriter(tmp_path)
    assert not list(tmp_path.iterdir())


def test_tensorboard_resumed_run_hides_the_steps_made_again(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with closing(TensorboardWriter(tmp_path)) as writer:
        for step in (50, 100, 150):
            writer.add_metrics("train", {"step": step, "loss": 1.0})
    with closing(TensorboardWriter(tmp_path, purge_step=101)) as writer:
        writer.add_metrics("train", {"step": 150, "loss": 3.0})
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    shown = [(event.step, event.value) for event in events.Scalars("train/loss")]
    assert shown == [(50, 1.0), (100, 1.0), (150, 3.0)]


@pytest.mark.parametrize(
    ("step", "seconds", "max_minutes", "expected"),
    [
        (20, 10.0, None, "At this speed 7,220 steps take about 1 h 00 min, without validation."),
        (
            20,
            10.0,
            60.5,
            "At this speed 7,220 steps take about 1 h 00 min, without validation.",
        ),
        (
            20,
            10.0,
            30.0,
            "At this speed training makes about 3,600 of 7,220 steps in 30 minutes "
            "(training.max_minutes).",
        ),
        (
            700,
            1900.0,
            30.0,
            "At this speed training makes about 700 of 7,220 steps in 30 minutes "
            "(training.max_minutes).",
        ),
    ],
)
def test_the_time_that_is_told_ends_with_the_limit(
    step: int, seconds: float, max_minutes: float | None, expected: str
) -> None:
    state = TrainingState(step=step, seconds=seconds)
    training = TrainingConfig(max_steps=7220, max_minutes=max_minutes)
    assert expected_time(state, training, seconds_per_update=0.5) == expected
