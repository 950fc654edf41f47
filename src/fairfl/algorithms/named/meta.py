"""MAML and q-MAML: a model from which every client adapts well, and evenly so.

A round reads support rows and query rows of each client. Where the data have no support rows, every
second training row of a client is one. Clients are evaluated with their own model, after
`personal_steps` on their support rows; `loss` in the history is that of the cohort's query rows.
"""

from fairfl.algorithms.algorithm import Algorithm, Numbers, assemble, structural
from fairfl.algorithms.maml import adapted_gradient
from fairfl.algorithms.named.local import ServerStep
from fairfl.algorithms.rules import mean, q_ffl
from fairfl.algorithms.work import Work


def maml(
    learning_rate: Numbers = 0.1,
    inner_learning_rate: Numbers = 0.1,
    inner_steps: int = 1,
    personal_steps: int = 5,
    batch_size: int = 10,
    order: int = 1,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """MAML (Finn et al., 2017), as the paper's Algorithm 4 with q = 0.

    order is 1 for the gradient as printed, at the adapted model, and 2 for the exact one, through
    the inner steps. A step reads batch_size rows, of support or of query.

    >>> import fairfl
    >>> fairfl.maml(inner_learning_rate=[0.01, 0.1]).experiments[0]
    {'learning_rate': 0.1, 'inner_learning_rate': 0.01}
    """
    hyper = {"learning_rate": learning_rate, "inner_learning_rate": inner_learning_rate}
    work = _work(inner_steps, personal_steps, batch_size, order)
    return assemble("maml", work, mean(), hyper, sampler, weights, server)


def q_maml(
    q: Numbers = 0.1,
    learning_rate: Numbers = 0.1,
    inner_learning_rate: Numbers = 0.1,
    inner_steps: int = 1,
    personal_steps: int = 5,
    batch_size: int = 10,
    order: int = 1,
    L: Numbers | None = None,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """q-MAML, the paper's Algorithm 4: MAML whose clients are weighed by the q-FFL rule.

    F_k is the loss of the adapted model on the query rows. q = 0 is MAML.

    >>> import fairfl
    >>> fairfl.q_maml(q=[0, 0.1]).work.name
    'adapted gradient'
    """
    hyper = {"q": q, "learning_rate": learning_rate, "inner_learning_rate": inner_learning_rate}
    work = _work(inner_steps, personal_steps, batch_size, order)
    return assemble("q-maml", work, q_ffl(), {**hyper, "L": L}, sampler, weights, server)


def _work(inner_steps: int, personal_steps: int, batch_size: int, order: int) -> Work:
    if order not in (1, 2):
        raise ValueError(
            f"order={order!r} is neither 1, the gradient as Algorithm 4 prints it, nor 2, the "
            "exact one; choose one"
        )
    return adapted_gradient(
        structural("inner_steps", inner_steps),
        structural("personal_steps", personal_steps, least=0),
        structural("batch_size", batch_size),
        exact=order == 2,
    )
