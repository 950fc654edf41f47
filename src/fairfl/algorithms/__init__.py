"""Algorithms: one loop with four replaceable parts."""

from fairfl.algorithms.algorithm import Algorithm, with_hyper, with_server
from fairfl.algorithms.named import NAMED, fedavg, fedsgd, fixed_step, q_fedavg, q_fedsgd

__all__ = [
    "NAMED",
    "Algorithm",
    "fedavg",
    "fedsgd",
    "fixed_step",
    "q_fedavg",
    "q_fedsgd",
    "with_hyper",
    "with_server",
]
