"""Rules of the losses: TERM, the superquantile, GIFAIR and Semi-VRed, each with local SGD.

All take the arguments of `fedavg` beside a parameter of their own, which takes a list too.
"""

from fairfl.algorithms.algorithm import Algorithm, Numbers
from fairfl.algorithms.named.local import ServerStep, trained_locally
from fairfl.algorithms.rules import gifair as gifair_rule
from fairfl.algorithms.rules import semi_vred as semi_vred_rule
from fairfl.algorithms.rules import superquantile as superquantile_rule
from fairfl.algorithms.rules import term as term_rule


def term(
    t: Numbers = 1.0,
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """TERM (Li et al., 2021): clients tilted by exp(t F_k). t = 0 is FedAvg, t -> inf the worst.

    >>> import fairfl
    >>> [e["t"] for e in fairfl.term(t=[0, 1, 5]).experiments]
    [0.0, 1.0, 5.0]
    """
    hyper = {"t": t, "learning_rate": learning_rate}
    return trained_locally("term", term_rule(), hyper, epochs, batch_size, sampler, weights, server)


def superquantile(
    theta: Numbers = 0.5,
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """Superquantile FL (Delta-FL; Laguel et al., 2021): the worst theta of a cohort trains.

    theta = 1 is FedAvg, theta -> 0 the worst client alone.

    >>> import fairfl
    >>> fairfl.superquantile(theta=0.2).experiments
    [{'theta': 0.2, 'learning_rate': 0.1}]
    """
    hyper = {"theta": theta, "learning_rate": learning_rate}
    return trained_locally(
        "superquantile",
        superquantile_rule(),
        hyper,
        epochs,
        batch_size,
        sampler,
        weights,
        server,
    )


def gifair(
    c: Numbers = 0.9,
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """GIFAIR-FL (Yue et al., 2021): clients count by the rank of their loss.

    c = 0 is FedAvg; c = 1 is the largest penalty, where the best client counts nothing.

    >>> import fairfl
    >>> fairfl.gifair(c=[0, 0.5]).rule.name
    'GIFAIR'
    """
    hyper = {"c": c, "learning_rate": learning_rate}
    return trained_locally(
        "gifair", gifair_rule(), hyper, epochs, batch_size, sampler, weights, server
    )


def semi_vred(
    beta: Numbers = 0.1,
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """Semi-VRed (Malekmohammadi and Yu, 2024): a penalty beta on losses above the average.

    >>> import fairfl
    >>> fairfl.semi_vred(beta=0).experiments
    [{'beta': 0.0, 'learning_rate': 0.1}]
    """
    hyper = {"beta": beta, "learning_rate": learning_rate}
    return trained_locally(
        "semi-vred", semi_vred_rule(), hyper, epochs, batch_size, sampler, weights, server
    )
