"""Runs: training and its results."""

from fairfl.runs.loading import load_run
from fairfl.runs.result import Result
from fairfl.runs.training import train

__all__ = ["Result", "load_run", "train"]
