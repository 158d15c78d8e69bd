"""The place of a process among those that torchrun or srun started together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pellucid.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
SLURM = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")


@dataclass(frozen=True)
class RankPlace:
    """The place of one process among all that share a training.

    Attributes:
        rank: its number, from 0.
        num_ranks: the number of processes.
        local_rank: its number on its machine, from 0.
        num_local: the number of processes on its machine.
        address: the machine of rank 0.
        port: where they meet there; 0 lets the system choose.
        is_kept: whether the launcher keeps the meeting point; otherwise rank 0 does.
        attempt: how often the launcher started them again.
        wait: seconds in which all must have come.
    """

    rank: int
    num_ranks: int
    local_rank: int
    num_local: int
    address: str = LOOPBACK
    port: int = 0
    is_kept: bool = False
    attempt: int = 0
    wait: float = 300.0

    @property
    def is_one_machine(self) -> bool:
        """Whether all processes are on one machine."""
        return self.num_local == self.num_ranks


def find_place(environment: Mapping[str, str], wait: float | None = None) -> RankPlace | None:
    """Read the place that a launcher gave this process; None if it runs by itself.

    torchrun and its like (Kubernetes' PyTorchJob) set ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and
    ``MASTER_PORT``. srun sets Slurm's variables of a step; those of a whole job do not count,
    because a batch script has them too.

    Args:
        environment: the variables of this process.
        wait: seconds in which all must have come; None for the default.

    Raises:
        ConfigurationError: a number is missing or impossible.
    """
    is_slurm = "RANK" not in environment or "WORLD_SIZE" not in environment
    own, size, local = SLURM if is_slurm else TORCHRUN

    def number(name: str, default: int | None = None) -> int:
        found = environment.get(name, default)
        # `int` would also read signs, underscores and digits of other scripts.
        if not re.fullmatch(r"\d{1,9}", str(found), re.ASCII):
            raise ConfigurationError(
                f"{name} must be a whole number, but is {environment.get(name)!r}. Start every "
                "rank with torchrun or srun, which set it."
            )
        return int(str(found))

    num_ranks = number(size, 1)
    rank = number(own, 0)
    if wait is not None and (num_ranks == 1 or not 0 < wait <= 10**6):
        raise ConfigurationError(
            f"--wait must be above 0 and needs torchrun or srun with several ranks, but is {wait:g}"
            f" with {num_ranks}. Change it, or leave it out."
        )
    if num_ranks == 1:
        return None
    if rank >= num_ranks:
        raise ConfigurationError(f"{own} must be below {size}, but is {rank}. Change it.")
    port = None
    num_local = number("LOCAL_WORLD_SIZE", 1)
    address = environment.get("MASTER_ADDR", LOOPBACK)
    if is_slurm:
        # From what all ranks know: jobs and steps that share a machine get other ports.
        port = 20_000 + (64 * number("SLURM_JOB_ID", 0) + number("SLURM_STEP_ID", 0)) % 10_000
        num_local = num_ranks if number("SLURM_STEP_NUM_NODES", 1) == 1 else 1
        # "node[03-05,09],other" begins with node03.
        nodes = re.sub(r"\[(\w+)[^]]*]", r"\1", environment.get("SLURM_STEP_NODELIST", LOOPBACK))
        address = LOOPBACK if num_local == num_ranks else nodes.partition(",")[0]
    return RankPlace(
        rank,
        num_ranks,
        number(local, 0),
        num_local,
        address,
        # torchrun has no default port here, so that a missing one is an error.
        number("MASTER_PORT", port),
        is_kept=environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        attempt=number("TORCHELASTIC_RESTART_COUNT", 0),
        wait=wait or RankPlace.wait,
    )
