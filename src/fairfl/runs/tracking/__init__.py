"""Tracking: a run's evaluated rounds, sent to TensorBoard, MLflow or Weights & Biases as it trains.

    log = open_log(place, key, name, settings)   one log per experiment, named by what it varies
    log.write(round, {"test/average": ..})       once for every evaluated round
    log.close()

is all that a tool has to offer; each is a file here, imported where it is asked for.
"""

from fairfl.runs.tracking.tracker import TOOLS, Log, Tracker, check_tools, tracker

__all__ = ["TOOLS", "Log", "Tracker", "check_tools", "tracker"]
