"""Weights & Biases: one run per experiment, in one group; WANDB_MODE=offline needs no account."""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import wandb

from fairfl.runs.tracking.tracker import Log


def check() -> None:
    """An account is asked for by wandb itself, where its mode needs one."""


def open_log(place: Path, key: str, name: str, about: Mapping[str, Any], last: int) -> Log:
    """The experiment's run, under the same id where an earlier process began it."""
    run = wandb.init(
        project="fairfl",
        group=f"{about['data']} {key}",
        id=f"{key}-{zlib.crc32(name.encode()):08x}",
        name=name,
        config=dict(about),
        dir=str(place),
        resume="allow",
        reinit="create_new",
        settings=wandb.Settings(silent=True),
    )

    def write(round: int, metrics: Mapping[str, float]) -> None:
        run.log(dict(metrics), step=round)

    return Log(write, run.finish, last)
