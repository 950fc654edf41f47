"""TensorBoard: one folder of event files per experiment, under tensorboard/ of the run."""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[attr-defined]  # made by protobuf
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[attr-defined]
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from fairfl.runs.tracking.tracker import Log


def check() -> None:
    """Nothing beside the disk has to be reached."""


def open_log(place: Path, key: str, name: str, about: Mapping[str, Any], last: int) -> Log:
    """The log of an experiment, begun anew: a resumed run still knows all its rounds."""
    del key, about, last
    folder = place / "tensorboard" / name
    shutil.rmtree(folder, ignore_errors=True)
    writer = EventFileWriter(str(folder))

    def write(round: int, metrics: Mapping[str, float]) -> None:
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in metrics.items()]
        writer.add_event(Event(wall_time=time.time(), step=round, summary=Summary(value=values)))
        writer.flush()

    return Log(write, writer.close, last=0)
