"""Rules of the updates' directions: FedMGDA+ and FedFV, with local SGD."""

from fairfl.algorithms.algorithm import Algorithm, Numbers, numbers
from fairfl.algorithms.named.local import ServerStep, trained_locally
from fairfl.algorithms.rules import fedfv as fedfv_rule
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


def fedfv(
    alpha: Numbers = 0.1,
    tau: Numbers = 1,
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """FedFV (Wang et al., 2021): updates in conflict are projected apart before they are averaged.

    The worst share alpha of a cohort keep theirs; clients who were last seen up to tau rounds ago
    are spared too, for which the updates of the largest tau rounds are kept. alpha = 1 with tau = 0
    is FedAvg.

    >>> import fairfl
    >>> family = fairfl.fedfv(alpha=[0, 0.1], tau=[0, 3])
    >>> len(family.experiments), family.rule.needs.history
    (4, 3)
    """
    rounds = numbers("tau", tau)
    if any(t % 1 for t in rounds):
        raise ValueError(f"tau={tau} counts rounds, so it must be a whole number")
    hyper = {"alpha": alpha, "tau": tau, "learning_rate": learning_rate}
    return trained_locally(
        "fedfv", fedfv_rule(int(max(rounds))), hyper, epochs, batch_size, sampler, weights, server
    )
