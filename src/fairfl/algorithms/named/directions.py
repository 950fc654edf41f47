"""Rules of the updates' directions: FedMGDA+, with local SGD."""

from fairfl.algorithms.algorithm import Algorithm, Numbers
from fairfl.algorithms.named.local import ServerStep, trained_locally
from fairfl.algorithms.rules import fedmgda as fedmgda_rule


def fedmgda(
    eps: Numbers = 0.1,
    eta: Numbers = 1.0,
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """FedMGDA+ (Hu et al., 2022): the shortest mixture of normalised updates within eps of p.

    Updates count by their direction, so the step is eta's: it is at most eta long. eps = 0 is
    FedAvg on normalised updates.

    >>> import fairfl
    >>> fairfl.fedmgda(eps=[0, 0.1]).experiments[1]
    {'eps': 0.1, 'eta': 1.0, 'learning_rate': 0.1}
    """
    hyper = {"eps": eps, "eta": eta, "learning_rate": learning_rate}
    return trained_locally(
        "fedmgda", fedmgda_rule(), hyper, epochs, batch_size, sampler, weights, server
    )
