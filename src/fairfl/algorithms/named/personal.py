"""Ditto: one model for all, and beside it a model of each client's own."""

from fairfl.algorithms.algorithm import Algorithm, Numbers, assemble, structural
from fairfl.algorithms.ditto import local_and_personal_sgd
from fairfl.algorithms.named.local import ServerStep
from fairfl.algorithms.rules import mean


def ditto(
    lam: Numbers = 0.1,
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """Ditto (Li et al., 2021): FedAvg's w, and v_k by SGD on F_k(v_k) + lam / 2 |v_k - w|^2.

    lam -> 0 leaves every client to itself, a large one ties it to w. The models v_k are measured
    beside w: see `Result.personal`.

    >>> import fairfl
    >>> fairfl.ditto(lam=[0, 0.1, 1]).work.serves
    True
    """
    work = local_and_personal_sgd(
        structural("epochs", epochs), structural("batch_size", batch_size)
    )
    hyper = {"lam": lam, "learning_rate": learning_rate}
    return assemble("ditto", work, mean(), hyper, sampler, weights, server)
