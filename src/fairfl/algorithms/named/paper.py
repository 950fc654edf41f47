"""The paper's algorithms and their baselines.

All take `sampler` ("by-size", "by-size-with-replacement", "uniform", "everyone"), `weights` ("size"
for the objective p_k = n_k / n, "equal" for p_k = 1 / m) and `server` (an optax transformation in
place of the plain step). Numeric hyper-parameters take lists, whose product is the sweep.
"""

import optax

from fairfl.algorithms.algorithm import Algorithm, Numbers, assemble, structural
from fairfl.algorithms.rules import fixed_step as fixed_step_rule
from fairfl.algorithms.rules import mean, q_ffl
from fairfl.algorithms.server import Server
from fairfl.algorithms.work import full_gradient, local_sgd

ServerStep = Server | optax.GradientTransformation | None


def fedavg(
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """FedAvg (McMahan et al., 2017): E epochs of local SGD, weighted mean of the results.

    >>> import fairfl
    >>> fairfl.fedavg(learning_rate=[0.1, 0.3]).experiments
    [{'learning_rate': 0.1}, {'learning_rate': 0.3}]
    """
    work = local_sgd(structural("epochs", epochs), structural("batch_size", batch_size))
    hyper = {"learning_rate": learning_rate}
    return assemble("fedavg", work, mean(), hyper, sampler, weights, server)


def q_fedavg(
    q: Numbers = 1.0,
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    L: Numbers | None = None,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """q-FedAvg, the paper's Algorithm 2: E epochs of local SGD, weighed by the q-FFL rule.

    L is the Lipschitz estimate that sets the step; it defaults to 1 / learning_rate.

    >>> import fairfl
    >>> [e["q"] for e in fairfl.q_fedavg(q=[0, 1, 5]).experiments]
    [0.0, 1.0, 5.0]
    """
    work = local_sgd(structural("epochs", epochs), structural("batch_size", batch_size))
    hyper = {"q": q, "learning_rate": learning_rate, "L": L}
    return assemble("q-fedavg", work, q_ffl(), hyper, sampler, weights, server)


def fedsgd(
    learning_rate: Numbers = 0.1,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """FedSGD: the weighted mean of full gradients, one step of size learning_rate a round.

    >>> import fairfl
    >>> fairfl.fedsgd().work.name
    'full gradient'
    """
    hyper = {"learning_rate": learning_rate}
    return assemble("fedsgd", full_gradient(), mean(), hyper, sampler, weights, server)


def q_fedsgd(
    q: Numbers = 1.0,
    learning_rate: Numbers = 0.1,
    L: Numbers | None = None,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """q-FedSGD, the paper's Algorithm 1: full gradients, weighed by the q-FFL rule.

    >>> import fairfl
    >>> fairfl.q_fedsgd(q=2, L=5).experiments
    [{'q': 2.0, 'learning_rate': 0.1, 'L': 5.0}]
    """
    hyper = {"q": q, "learning_rate": learning_rate, "L": L}
    return assemble("q-fedsgd", full_gradient(), q_ffl(), hyper, sampler, weights, server)


def fixed_step(
    q: Numbers = 1.0,
    learning_rate: Numbers = 0.1,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """FedSGD on the q-objective with one fixed step, the paper's hand-tuned baseline.

    >>> import fairfl
    >>> fairfl.fixed_step(q=2).rule.name
    'fixed step'
    """
    hyper = {"q": q, "learning_rate": learning_rate}
    return assemble(
        "fixed-step", full_gradient(), fixed_step_rule(), hyper, sampler, weights, server
    )
