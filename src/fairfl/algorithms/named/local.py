"""Local SGD with a rule: what most of the named algorithms are, and how a rule of your own runs."""

from collections.abc import Mapping

import optax

from fairfl.algorithms.algorithm import Algorithm, Numbers, assemble, structural
from fairfl.algorithms.rules import Rule
from fairfl.algorithms.server import Server
from fairfl.algorithms.work import local_sgd

ServerStep = Server | optax.GradientTransformation | None


def trained_locally(
    name: str,
    rule: Rule,
    hyper: Mapping[str, Numbers],
    epochs: int,
    batch_size: int,
    sampler: str,
    weights: str,
    server: ServerStep,
) -> Algorithm:
    """E epochs of local SGD, and a rule that says how much each client counts."""
    work = local_sgd(structural("epochs", epochs), structural("batch_size", batch_size))
    return assemble(name, work, rule, hyper, sampler, weights, server)


def with_rule(
    rule: Rule,
    learning_rate: Numbers = 0.1,
    epochs: int = 1,
    batch_size: int = 10,
    sampler: str = "by-size",
    weights: str = "size",
    server: ServerStep = None,
    **parameters: Numbers,
) -> Algorithm:
    """FedAvg with a rule of your own in place of the mean; its parameters are given by name.

    >>> import fairfl
    >>> fairfl.with_rule(fairfl.rules.term(), t=[0, 1]).experiments[1]
    {'t': 1.0, 'learning_rate': 0.1}
    """
    asked = [parameter.name for parameter in rule.parameters]
    if set(asked) != set(parameters):
        raise ValueError(
            f"the rule {rule.name!r} has the parameters {', '.join(asked) or 'none'}, but "
            f"{', '.join(parameters) or 'none'} were given; give each of them by name"
        )
    hyper = {**parameters, "learning_rate": learning_rate}
    return trained_locally(rule.name, rule, hyper, epochs, batch_size, sampler, weights, server)
