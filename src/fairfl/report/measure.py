"""How a report speaks of what it measures: accuracies in percent, or the losses of a regression."""

from typing import NamedTuple

import numpy as np

from fairfl.runs import Result


class Measure(NamedTuple):
    """The word, what follows a number, its digits, and which way is better.

    >>> from fairfl.report.measure import ACCURACY, LOSS
    >>> ACCURACY.said(80.13), LOSS.said(0.12345), ACCURACY.said(float("nan"))
    ('80.1 %', '0.123', 'not a number')
    """

    noun: str
    unit: str
    figures: str
    squared: str
    rises: bool

    def said(self, value: float) -> str:
        """A value with its unit."""
        return f"{value:{self.figures}}{self.unit}" if np.isfinite(value) else "not a number"

    @property
    def title(self) -> str:
        """As an axis names it."""
        return f"{self.noun} (%)" if self.rises else self.noun


ACCURACY = Measure("accuracy", " %", ".1f", ".0f", rises=True)
LOSS = Measure("loss", "", ".3g", ".3g", rises=False)


def measure(result: Result) -> Measure:
    """What the clients of a result are measured by.

    >>> import fairfl
    >>> from fairfl.report.measure import measure
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> measure(fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=5)).noun
    'accuracy'
    """
    return LOSS if result.data.task == "regression" else ACCURACY
