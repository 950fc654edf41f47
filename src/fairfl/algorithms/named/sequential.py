"""AAggFF: the server's weights decided round after round, with local SGD."""

from fairfl.algorithms.algorithm import Algorithm, Numbers
from fairfl.algorithms.named.local import ServerStep, trained_locally
from fairfl.algorithms.rules import aaggff as aaggff_rule


def aaggff(
    eta: Numbers = 1.0,
    setting: str = "device",
    response: str = "weibull",
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
) -> Algorithm:
    """AAggFF (Hahn et al., 2024): clients count by an online learner's decision on their losses.

    `setting` is "device", for cohorts of many clients, or "silo", for few that take part in every
    round. `response` bounds a loss: "weibull", "exponential", "frechet", "gumbel", "logistic" or
    "normal". eta scales the paper's rate: 0 is FedAvg, 1 the paper.

    >>> import fairfl
    >>> fairfl.aaggff(setting="silo", sampler="everyone").rule.name
    'AAggFF (silo)'
    """
    if setting == "silo" and sampler != "everyone":
        raise ValueError(
            f"setting='silo' hears every client in every round, but sampler={sampler!r} draws some "
            "of them; use sampler='everyone', or setting='device'"
        )
    hyper = {"eta": eta, "learning_rate": learning_rate}
    rule = aaggff_rule(setting, response)
    return trained_locally("aaggff", rule, hyper, epochs, batch_size, sampler, weights, server)
