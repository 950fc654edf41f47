"""PropFair: FedAvg whose clients train on a loss that grows steeper where they are served badly."""

from fairfl.algorithms.algorithm import Algorithm, Numbers, assemble, structural
from fairfl.algorithms.named.local import ServerStep
from fairfl.algorithms.rules import mean
from fairfl.algorithms.work import proportional_sgd


def propfair(
    M: Numbers = 5.0,
    eps: Numbers = 0.2,
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """PropFair (Zhang et al., 2023): local SGD on -log(1 - l / M), and on l / M where M - l < eps.

    l is a mini-batch's loss, and M more than a client should ever have. A step has the length
    learning_rate / (M - l) of FedAvg's, so that the rate is to be tuned with M; as both grow it is
    FedAvg with learning_rate / M. Checked against the authors' code.

    >>> import fairfl
    >>> fairfl.propfair(M=[2, 5]).work.name
    'proportional SGD'
    """
    work = proportional_sgd(structural("epochs", epochs), structural("batch_size", batch_size))
    hyper = {"M": M, "eps": eps, "learning_rate": learning_rate}
    return assemble("propfair", work, mean(), hyper, sampler, weights, server)
