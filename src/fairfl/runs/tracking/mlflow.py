"""MLflow: one run per experiment, at the tracking server that MLFLOW_TRACKING_URI names."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException

from fairfl.runs.tracking.tracker import Log

TAG = "fairfl"
"""The tag by which a resumed run finds the MLflow run that it began."""


def check() -> None:
    """Reach the tracking server once, so that a wrong address is told before training."""
    try:
        MlflowClient().search_experiments(max_results=1)
    except MlflowException as error:
        raise ValueError(
            f"MLflow's tracking server cannot be used ({str(error).split('. ')[0]}); set "
            "MLFLOW_TRACKING_URI to the one to write to"
        ) from error


def open_log(place: Path, key: str, name: str, about: Mapping[str, Any], last: int) -> Log:
    """The experiment's run, which is gone on with where an earlier process began it."""
    del place, last
    client, tag = MlflowClient(), f"{key} {name}"
    experiment = _experiment(client, str(about["data"]))
    there = client.search_runs([experiment], f"tags.{TAG} = '{tag}'")
    if there:
        run = there[0].info.run_id
        done = [metric.step for metric in client.get_metric_history(run, "loss")]
    else:
        tags = {"mlflow.runName": name, TAG: tag}
        run, done = client.create_run(experiment, tags=tags).info.run_id, []
        client.log_batch(run, params=[Param(key, str(value)) for key, value in about.items()])

    def write(round: int, metrics: Mapping[str, float]) -> None:
        now = int(1000 * time.time())
        client.log_batch(run, [Metric(name, value, now, round) for name, value in metrics.items()])

    return Log(write, lambda: client.set_terminated(run), max(done, default=0))


def _experiment(client: MlflowClient, title: str) -> str:
    found = client.get_experiment_by_name(title)
    return found.experiment_id if found else client.create_experiment(title)
