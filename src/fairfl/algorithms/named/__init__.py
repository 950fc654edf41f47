"""The named algorithms: choices of the four parts, under the names that people know."""

from fairfl.algorithms.named.paper import fedavg, fedsgd, fixed_step, q_fedavg, q_fedsgd

NAMED = {
    "fedavg": fedavg,
    "fedsgd": fedsgd,
    "fixed-step": fixed_step,
    "q-fedavg": q_fedavg,
    "q-fedsgd": q_fedsgd,
}
"""Every algorithm by the name that the command line takes."""

__all__ = ["NAMED", "fedavg", "fedsgd", "fixed_step", "q_fedavg", "q_fedsgd"]
