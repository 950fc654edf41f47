"""How the model serves every client, as the clients say: accuracy and loss per split."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from flwr.app import Message, MetricRecord

from fairfl.clients.federated import SPLITS, SplitName
from fairfl.flower.client import METRICS
from fairfl.flower.replies import told
from fairfl.flower.roster import Member, rows_of
from fairfl.flower.standing import Served
from fairfl.metrics import Fairness, fairness, fairness_of_losses
from fairfl.runs.result import Evaluation

Said = Mapping[str, tuple[float, float]]
"""By split: accuracy in percent and loss; NaN for what a client has no rows for."""


def said(reply: Message | None, member: Member) -> Said | str:
    """What a client found, or in words why that cannot be used."""
    fault = told(reply)
    if fault or reply is None:
        return fault or ""
    found = reply.content.get(METRICS)
    if not isinstance(found, MetricRecord):
        return "it names no accuracies and losses"
    numbers = {}
    for split, rows in zip(SPLITS, member.rows, strict=True):
        if rows:
            accuracy, loss = (found.get(f"{what}-{split}") for what in ("accuracy", "loss"))
            wrong = _wrong(accuracy, loss, member)
            if wrong:
                return f"{wrong} on its {split} rows"
            numbers[split] = (float(accuracy), float(loss))  # type: ignore[arg-type]
    return numbers


def _wrong(accuracy: object, loss: object, member: Member) -> str | None:
    if not isinstance(loss, int | float) or not math.isfinite(loss):
        return f"it has the loss {loss}"
    if member.task == "regression":
        return f"it has the loss {loss:g}" if loss < 0 else None
    if not isinstance(accuracy, int | float) or not 0 <= accuracy <= 100:
        return f"it has an accuracy of {accuracy} percent"
    return None


def served(found: Mapping[int, Said], clients: int) -> dict[str, Served]:
    """Of every client on every split; NaN where a client did not say."""
    columns = {split: np.full((2, clients), np.nan) for split in SPLITS}
    for client, numbers in found.items():
        for split, pair in numbers.items():
            columns[split][:, client] = pair
    return {split: Served(*column) for split, column in columns.items()}


def evaluation(roster: Sequence[Member], split: SplitName, found: Served) -> Evaluation:
    """As a result keeps it; who joined later has no numbers before."""
    later = (0, len(roster) - len(found.loss))
    accuracy, loss = (np.pad(one, later, constant_values=np.nan) for one in found)
    return Evaluation(accuracy, loss, rows_of(roster, split))


def fairness_of(roster: Sequence[Member], split: SplitName, found: Served) -> Fairness | None:
    """Over the clients that have rows and said how they are served; None where nobody has rows."""
    one = evaluation(roster, split, found)
    if not one.size.any():
        return None
    regression = roster[0].task == "regression"
    measure, values = (fairness_of_losses, one.loss) if regression else (fairness, one.accuracy)
    here = np.flatnonzero((one.size > 0) & np.isfinite(values))
    if not len(here):
        return Fairness._make([np.nan] * len(Fairness._fields))
    return measure(values[here], one.size[here], [roster[k].name for k in here.tolist()])
