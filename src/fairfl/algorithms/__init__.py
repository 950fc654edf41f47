"""Algorithms: one loop with four replaceable parts."""

from fairfl.algorithms.algorithm import Algorithm, with_hyper, with_server
from fairfl.algorithms.named import (
    NAMED,
    afl,
    fedavg,
    fedmgda,
    fedprox,
    fedsgd,
    fixed_step,
    gifair,
    q_fedavg,
    q_fedsgd,
    semi_vred,
    superquantile,
    term,
    with_rule,
)

__all__ = [
    "NAMED",
    "Algorithm",
    "afl",
    "fedavg",
    "fedmgda",
    "fedprox",
    "fedsgd",
    "fixed_step",
    "gifair",
    "q_fedavg",
    "q_fedsgd",
    "semi_vred",
    "superquantile",
    "term",
    "with_hyper",
    "with_rule",
    "with_server",
]
