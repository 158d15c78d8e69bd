"""Checkpoints: whatever the disk does, the last good one stays, loads, and is what was saved."""

from __future__ import annotations

import os
import resource
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from failing_disk import FailingDisk
from torch import Tensor

from pellucid.bundle import Bundle, bundle_json, load_bundle, read_json_object
from pellucid.errors import BundleError, OutputError
from pellucid.files import hash_bytes
from pellucid.training.run.checkpoint import (
    LoadedCheckpoint,
    TrainingState,
    delete_later_checkpoints,
    load_newest_checkpoint,
    save_checkpoint,
)

FILES = {
    "averaging.safetensors",
    "config.json",
    "manifest.json",
    "model.safetensors",
    "optimizer.safetensors",
    "recipe.toml",
    "state.json",
    "vocabulary.txt",
}


@pytest.fixture(scope="module")
def bundle(bundle_folder: Path) -> Bundle:
    return load_bundle(bundle_folder)


def tensors_of(step: int) -> dict[str, dict[str, Tensor]]:
    """Some tensors that differ from step to step."""
    numbers = torch.Generator().manual_seed(step)
    return {
        "optimizer": {
            "exp_avg.a": torch.randn(7, 11, generator=numbers),
            "step.a": torch.tensor(float(step)),
        },
        "averaging": {"running.a": torch.randn(13, generator=numbers)},
    }


def weights_of(bundle: Bundle, step: int) -> dict[str, Tensor]:
    return {name: weight + step for name, weight in bundle.model.state_dict().items()}


def save(
    folder: Path, bundle: Bundle, step: int, *, keep: int = 2, every: int = 1, **state: Any
) -> None:
    save_checkpoint(
        folder,
        TrainingState(step=step, seconds=step / 3, **state),
        model_weights=weights_of(bundle, step),
        tensors=tensors_of(step),
        config=bundle.config,
        tokenizer=bundle.tokenizer,
        recipe_toml="[training]\n",
        provenance={"data": {"pairs": 1}},
        keep=keep,
        every=every,
    )


def load(folder: Path) -> LoadedCheckpoint:
    checkpoint, _ = load_newest_checkpoint(folder)
    assert checkpoint is not None
    return checkpoint


def assert_is(checkpoint: LoadedCheckpoint, bundle: Bundle, step: int) -> None:
    """Check that a checkpoint is, bit for bit, what was saved at a step."""
    assert checkpoint.state.step == step
    assert checkpoint.state.seconds == step / 3
    expected = tensors_of(step)
    assert checkpoint.tensors.keys() == expected.keys()
    groups = [(checkpoint.weights, weights_of(bundle, step))]
    groups += [(checkpoint.tensors[name], expected[name]) for name in expected]
    for found, wanted in groups:
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_checkpoint_loads_as_it_was_saved_and_is_a_bundle(tmp_path: Path, bundle: Bundle) -> None:
    state: dict[str, Any] = {"best_bleu": 0.1 + 0.2, "best_step": 3, "validated_step": 5}
    state |= {"validations_without_better": 2, "skipped_updates": 7, "skipped_in_a_row": 1}
    state |= {"roll_backs": 1, "rate_factor": 0.5, "precision": "bfloat16"}
    save(tmp_path / "new" / "checkpoints", bundle, 5, max_tokens_per_batch=4099, **state)
    checkpoint = load(tmp_path / "new" / "checkpoints")
    assert_is(checkpoint, bundle, 5)
    assert asdict(checkpoint.state) == asdict(
        TrainingState(step=5, seconds=5 / 3, target_tokens=0, max_tokens_per_batch=4099, **state)
    )
    assert checkpoint.folder.name == "step-00000005"
    assert {path.name for path in checkpoint.folder.iterdir()} == FILES
    found = load_bundle(checkpoint.folder).model.state_dict()
    assert all(torch.equal(found[k], v) for k, v in weights_of(bundle, 5).items())


def test_no_checkpoint_gives_none(tmp_path: Path) -> None:
    assert load_newest_checkpoint(tmp_path) == (None, [])
    assert load_newest_checkpoint(tmp_path / "not there") == (None, [])


def test_newest_are_kept_by_number_not_by_name(tmp_path: Path, bundle: Bundle) -> None:
    for step in (3, 99_999_999, 100_000_000, 100_000_001):
        save(tmp_path, bundle, step, keep=3)
    assert names(tmp_path) == ["step-100000000", "step-100000001", "step-99999999"]
    assert_is(load(tmp_path), bundle, 100_000_001)


def test_newest_that_is_made_however_a_run_is_interrupted_stays(
    tmp_path: Path, bundle: Bundle
) -> None:
    kept = {}
    for step in (7, 9, 14, 15, 16, 17, 21):
        save(tmp_path, bundle, step, every=7)
        kept[step] = [int(name.removeprefix("step-")) for name in names(tmp_path)]
    assert kept[9] == [7, 9]
    assert kept[15] == [14, 15]
    assert kept[16] == [14, 15, 16]
    assert kept[17] == [14, 16, 17]
    assert kept[21] == [17, 21]
    save(tmp_path, bundle, 22, every=7)
    (tmp_path / "step-00000021" / "model.safetensors").write_bytes(b"damaged")
    save(tmp_path, bundle, 23, every=7)
    assert names(tmp_path) == [f"step-{step:08d}" for step in (21, 22, 23)]


def test_nothing_goes_back_to_a_step_whose_update_was_skipped(
    tmp_path: Path, bundle: Bundle
) -> None:
    for step, skipped in ((7, 0), (14, 1), (15, 2), (16, 0)):
        save(tmp_path, bundle, step, every=7, skipped_in_a_row=skipped)
    assert names(tmp_path) == [f"step-{step:08d}" for step in (7, 15, 16)]
    assert load(tmp_path).state.step == 16
    checkpoint, _ = load_newest_checkpoint(tmp_path, to_go_back_every=7)
    assert checkpoint is not None
    assert checkpoint.state.step == 7


def test_newest_of_a_multiple_is_found_and_later_ones_can_go(
    tmp_path: Path, bundle: Bundle
) -> None:
    for step in (7, 14, 16, 17):
        save(tmp_path, bundle, step, keep=5)
    checkpoint, skipped = load_newest_checkpoint(tmp_path, to_go_back_every=7)
    assert checkpoint is not None
    assert (checkpoint.state.step, skipped) == (14, [])
    assert load_newest_checkpoint(tmp_path, to_go_back_every=100) == (None, [])
    delete_later_checkpoints(tmp_path, 14)
    assert names(tmp_path) == ["step-00000007", "step-00000014"]


def test_same_step_saved_again_replaces_it(tmp_path: Path, bundle: Bundle) -> None:
    save(tmp_path, bundle, 3)
    save(tmp_path, bundle, 3, rate_factor=0.5)
    assert names(tmp_path) == ["step-00000003"]
    assert load(tmp_path).state.rate_factor == 0.5


def test_manifest_is_the_last_file_that_is_written(
    tmp_path: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        disk = FailingDisk(patch)
        save(tmp_path, bundle, 3)
    written = [what.split()[1] for what in disk.seen if what.startswith("write ")]
    assert sorted(written) == sorted(f"{name}.part" for name in FILES)
    assert written[-1] == "manifest.json.part"


def test_everything_is_flushed_before_it_is_renamed(
    tmp_path: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        disk = FailingDisk(patch)
        save(tmp_path, bundle, 3)
    kinds = [what.split()[0] for what in disk.seen]
    assert kinds == [
        "mkdir",
        *["write", "fsync", "replace"] * len(FILES),
        "fsync",
        "rename",
        "fsync",
    ]


def test_every_write_flush_and_rename_failing_once_keeps_the_last_good_checkpoint(
    tmp_path: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = tmp_path / "good"
    for step in (1, 2):
        save(good, bundle, step)
    with monkeypatch.context() as patch:
        disk = FailingDisk(patch)
        shutil.copytree(good, tmp_path / "dry")
        disk.seen.clear()
        save(tmp_path / "dry", bundle, 3)
    num_asked = len(disk.seen)
    assert num_asked > 3 * len(FILES)
    assert disk.seen[-2:] == ["rename step-00000001 .step-00000001.gone", "fsync"]
    for failing in range(num_asked):
        folder = tmp_path / f"failing-{failing}"
        shutil.copytree(good, folder)
        before = contents(folder / "step-00000002")
        with monkeypatch.context() as patch:
            FailingDisk(patch, failing=failing)
            try:
                save(folder, bundle, 3)
            except OutputError as error:
                assert "No space left on device" in str(error)  # noqa: PT017
                assert "Free some space" in str(error)  # noqa: PT017
            else:  # Only an older one could not be deleted.
                assert failing >= num_asked - 2
        assert contents(folder / "step-00000002") == before
        checkpoint = load(folder)
        assert_is(checkpoint, bundle, checkpoint.state.step)
        assert checkpoint.state.step == (2 if failing < num_asked - 3 else 3), disk.seen[failing]
        save(folder, bundle, 4)
        assert_is(load(folder), bundle, 4)
        assert names(folder)[-1] == "step-00000004"
        assert len(names(folder)) == 2
        shutil.rmtree(folder)


@pytest.mark.parametrize("forever", [False, True])
def test_replacing_the_only_checkpoint_with_a_failing_disk_leaves_one(
    forever: bool, tmp_path: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "good", bundle, 3)
    with monkeypatch.context() as patch:
        disk = FailingDisk(patch)
        shutil.copytree(tmp_path / "good", tmp_path / "dry")
        disk.seen.clear()
        save(tmp_path / "dry", bundle, 3, roll_backs=1)
    for failing in range(len(disk.seen)):
        folder = tmp_path / f"failing-{failing}"
        shutil.copytree(tmp_path / "good", folder)
        with monkeypatch.context() as patch:
            FailingDisk(patch, failing=failing, forever=forever)
            with pytest.raises(OutputError, match="No space left on device"):
                save(folder, bundle, 3, roll_backs=1)
        checkpoint = load(folder)
        assert_is(checkpoint, bundle, 3)
        assert checkpoint.state.roll_backs == (failing == len(disk.seen) - 1)
        assert names(folder) == ["step-00000003"]
        shutil.rmtree(folder)


def test_file_that_the_system_cuts_short_raises_output_error(
    tmp_path: Path, bundle: Bundle
) -> None:
    save(tmp_path, bundle, 1)
    size = (tmp_path / "step-00000001" / "model.safetensors").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1, hard))
    try:
        with pytest.raises(OutputError, match="File too large"):
            save(tmp_path, bundle, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names(tmp_path) == ["step-00000001"]
    assert_is(load(tmp_path), bundle, 1)
    save(tmp_path, bundle, 2)
    assert_is(load(tmp_path), bundle, 2)


def test_disk_that_gives_back_something_else_raises_output_error_and_deletes_nothing(
    tmp_path: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (1, 2):
        save(tmp_path, bundle, step)
    flush = os.fsync

    def flush_and_forget(descriptor: int) -> None:
        flush(descriptor)
        for path in tmp_path.glob(".step-*/optimizer.safetensors"):
            path.write_bytes(bytes(path.stat().st_size))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", flush_and_forget)
        with pytest.raises(OutputError, match=r"read back as it was written.*optimizer"):
            save(tmp_path, bundle, 3)
    assert names(tmp_path) == ["step-00000001", "step-00000002"]
    assert_is(load(tmp_path), bundle, 2)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """Change one bit: in the manifest one of a hash."""
    data = bytearray(path.read_bytes())
    place = data.index(b'"sha256"') + 12 if path.name == "manifest.json" else len(data) // 2
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.sample(8)
@pytest.mark.parametrize("damage", [truncate, flip, Path.unlink])
@pytest.mark.parametrize("name", sorted(FILES))
def test_damaged_checkpoint_is_skipped_for_the_older_one(
    name: str, damage: Any, tmp_path: Path, bundle: Bundle
) -> None:
    for step in (1, 2):
        save(tmp_path, bundle, step)
    damage(tmp_path / "step-00000002" / name)
    checkpoint, skipped = load_newest_checkpoint(tmp_path)
    assert checkpoint is not None
    assert_is(checkpoint, bundle, 1)
    (sentence,) = skipped
    assert sentence.startswith("Skipped a damaged checkpoint. ")
    assert name in sentence or name == "manifest.json"
    assert "step-00000002" in sentence
    assert sentence.endswith("delete it: training continues from step-00000001.")


def test_damaged_checkpoints_do_not_count_among_those_kept(tmp_path: Path, bundle: Bundle) -> None:
    for step in (1, 2, 3):
        save(tmp_path, bundle, step, keep=3)
    flip(tmp_path / "step-00000003" / "optimizer.safetensors")
    save(tmp_path, bundle, 4)
    assert names(tmp_path) == [f"step-0000000{step}" for step in (2, 3, 4)]
    save(tmp_path, bundle, 5)
    assert names(tmp_path) == [f"step-0000000{step}" for step in (4, 5)]


def test_damaged_newer_checkpoint_does_not_push_out_a_whole_one(
    tmp_path: Path, bundle: Bundle
) -> None:
    for step in (1, 2, 9):
        save(tmp_path, bundle, step, keep=3)
    flip(tmp_path / "step-00000009" / "model.safetensors")
    save(tmp_path, bundle, 3)
    assert names(tmp_path) == [f"step-0000000{step}" for step in (2, 3, 9)]
    assert_is(load(tmp_path), bundle, 3)


def test_only_damaged_checkpoints_raise_a_sentence_and_stay(tmp_path: Path, bundle: Bundle) -> None:
    for step in (1, 2):
        save(tmp_path, bundle, step)
        truncate(tmp_path / f"step-0000000{step}" / "model.safetensors")
    with pytest.raises(
        BundleError, match=r"all 2 in .* are damaged\. The newest: model\.safetensors"
    ):
        load_newest_checkpoint(tmp_path)
    assert names(tmp_path) == ["step-00000001", "step-00000002"]


def test_where_only_the_place_to_go_back_to_is_damaged_nobody_is_sent_to_the_start(
    tmp_path: Path, bundle: Bundle
) -> None:
    for step in (7, 8):
        save(tmp_path, bundle, step, every=7)
    truncate(tmp_path / "step-00000007" / "model.safetensors")
    with pytest.raises(
        BundleError, match=rf'another folder with output and start="{tmp_path.parent}" to train'
    ) as found:
        load_newest_checkpoint(tmp_path, to_go_back_every=7)
    assert "go back to after updates that were not finite, but all 1" in str(found.value)
    assert load(tmp_path).state.step == 8


def test_leftovers_of_crashes_are_put_in_order_when_loading(tmp_path: Path, bundle: Bundle) -> None:
    for step in (1, 2):
        save(tmp_path, bundle, step)
    (tmp_path / "step-00000002").rename(tmp_path / ".step-00000002.older")
    shutil.copytree(tmp_path / "step-00000001", tmp_path / ".step-00000003.part")
    (tmp_path / ".step-00000000.gone").mkdir()
    (tmp_path / ".mine").mkdir()
    assert_is(load(tmp_path), bundle, 2)
    assert names(tmp_path) == [".mine", "step-00000001", "step-00000002"]


def test_loading_where_nothing_may_be_changed_works(
    tmp_path: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (1, 2):
        save(tmp_path, bundle, step)
    (tmp_path / "step-00000002").rename(tmp_path / ".step-00000002.older")
    with monkeypatch.context() as patch:
        FailingDisk(patch, failing=0, forever=True)
        assert_is(load(tmp_path), bundle, 1)


def test_read_only_folder_raises_output_error_and_keeps_what_is_there(
    tmp_path: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, bundle, 1)
    with monkeypatch.context() as patch:
        FailingDisk(patch, failing=0, forever=True)
        with pytest.raises(OutputError, match=str(tmp_path)):
            save(tmp_path, bundle, 2)
    assert names(tmp_path) == ["step-00000001"]
    assert_is(load(tmp_path), bundle, 1)


def rewrite_state(checkpoint: Path, values: dict[str, Any]) -> None:
    """Change the state as another version would have written it."""
    data = bundle_json(values).encode()
    (checkpoint / "state.json").write_bytes(data)
    manifest = read_json_object(checkpoint / "manifest.json")
    manifest["checkpoint"]["state.json"] = {"sha256": hash_bytes(data), "size": len(data)}
    (checkpoint / "manifest.json").write_text(bundle_json(manifest))


def test_state_with_fields_of_a_newer_version_is_refused(tmp_path: Path, bundle: Bundle) -> None:
    save(tmp_path, bundle, 1)
    newer = asdict(TrainingState(step=1)) | {"momentum": 0.5}
    rewrite_state(tmp_path / "step-00000001", newer)
    with pytest.raises(BundleError, match=r"momentum is not .*Use a newer version"):
        load_newest_checkpoint(tmp_path)
