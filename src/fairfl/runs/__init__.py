"""Runs: training and its results."""

from fairfl.runs.loading import load_run
from fairfl.runs.prediction import Prediction, predict
from fairfl.runs.result import Result
from fairfl.runs.training import train

__all__ = ["Prediction", "Result", "load_run", "predict", "train"]
