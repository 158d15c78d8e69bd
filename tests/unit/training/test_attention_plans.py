"""Attention on a GPU needs no plan for each new shape."""

from __future__ import annotations

import pytest
import torch

from pellucid.training.fast.pytorch import leave_shapes_unplanned


@pytest.mark.parametrize(("name", "is_planned"), [("cuda:0", False), ("cpu", True)])
def test_only_a_gpu_changes_which_kernels_attention_may_use(name: str, is_planned: bool) -> None:
    torch.backends.cuda.enable_cudnn_sdp(True)
    try:
        leave_shapes_unplanned(torch.device(name))
        assert torch.backends.cuda.cudnn_sdp_enabled() is is_planned
        assert torch.backends.cuda.flash_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(True)
