"""FedProx: FedAvg whose local models are held near the global one."""

from fairfl.algorithms.algorithm import Algorithm, Numbers, assemble, structural
from fairfl.algorithms.named.local import ServerStep
from fairfl.algorithms.rules import mean
from fairfl.algorithms.work import proximal_sgd


def fedprox(
    mu: Numbers = 0.1,
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """FedProx (Li et al., 2020): local SGD on F_k + mu / 2 |w_k - w|^2. mu = 0 is FedAvg.

    Checked against the authors' code, whose stragglers who stop early are not part of it here.

    >>> import fairfl
    >>> fairfl.fedprox(mu=[0, 0.1, 1]).work.name
    'proximal SGD'
    """
    work = proximal_sgd(structural("epochs", epochs), structural("batch_size", batch_size))
    hyper = {"mu": mu, "learning_rate": learning_rate}
    return assemble("fedprox", work, mean(), hyper, sampler, weights, server)
