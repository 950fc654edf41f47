"""Rules: how much each client counts. One file per rule; see rule.py for the contract."""

from fairfl.algorithms.rules.fixed_step import fixed_step
from fairfl.algorithms.rules.mean import mean
from fairfl.algorithms.rules.q_ffl import q_ffl
from fairfl.algorithms.rules.rule import (
    Cohort,
    Needs,
    Parameter,
    Rule,
    present,
    required,
    stateless,
)

__all__ = [
    "Cohort",
    "Needs",
    "Parameter",
    "Rule",
    "fixed_step",
    "mean",
    "present",
    "q_ffl",
    "required",
    "stateless",
]
