"""AFL: the worst mixture of the clients, with full gradients of everyone."""

from fairfl.algorithms.algorithm import Algorithm, Numbers, assemble
from fairfl.algorithms.named.local import ServerStep
from fairfl.algorithms.rules import afl as afl_rule
from fairfl.algorithms.server import ANSWERS
from fairfl.algorithms.work import full_gradient


def afl(
    gamma: Numbers = 0.1,
    learning_rate: Numbers = 0.1,
    ascent: str = "projected",
    answer: str = "mean",
    sampler: str = "everyone",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """AFL (Mohri et al., 2019): descent on w, ascent on lambda, one full gradient of every client.

    gamma is the step of the ascent, "projected" on the simplex or "exponentiated". The answer is
    the "mean" iterate, as in the paper, or the "last". `weights` says where lambda starts.

    >>> import fairfl
    >>> fairfl.afl(gamma=[0.01, 0.1]).answer.name
    'mean iterate'
    """
    if answer not in ANSWERS:
        raise ValueError(f"answer={answer!r} is neither of {' and '.join(ANSWERS)}")
    hyper = {"gamma": gamma, "learning_rate": learning_rate}
    return assemble(
        "afl", full_gradient(), afl_rule(ascent), hyper, sampler, weights, server, ANSWERS[answer]
    )
