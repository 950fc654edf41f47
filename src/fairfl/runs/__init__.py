"""Runs: training and its results."""

from fairfl.runs.result import Result
from fairfl.runs.training import train

__all__ = ["Result", "train"]
