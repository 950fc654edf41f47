"""A site around a PyTorch module and your own training function."""

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairfl.clients.federated import SplitName, Task
from fairfl.flower.client import Arrays, Measured, Site, counted
from fairfl.flower.orders import Orders


def torch_site(
    module: Any,
    data: Mapping[SplitName, tuple[Any, Any]],
    train: Callable[[Any, Orders], Any],
    loss: Callable[[Any, Any], Any] | None = None,
    task: Task = "multiclass",
    batch: int = 1024,
    momentum: float | int = 0.0,
    adaptive: bool = False,
) -> Site:
    """A site around a PyTorch module, tensors per split, and your own training function.

    train(module, orders) trains the module in place, in training mode; what it returns is ignored.
    loss(outputs, y) is one loss per row, cross entropy (half squares for a regression) without one.
    F_k is measured in evaluation mode and without gradients, and the mode is put back afterwards.
    Buffers travel with the state_dict: running statistics are averaged, counters stay.
    """

    def measure(arrays: Arrays, split: SplitName) -> Measured:
        _load(module, arrays)
        return _torch_measured(module, loss or _torch_loss(task), task, *data[split], batch)

    def trained(arrays: Arrays, orders: Orders) -> Arrays:
        _load(module, arrays)
        module.train()
        train(module, orders)
        return {name: t.detach().cpu().numpy() for name, t in module.state_dict().items()}

    return Site(counted(data), measure, trained, task, momentum, adaptive)


def _load(module: Any, arrays: Arrays) -> None:
    tensor = _torch().from_numpy
    module.load_state_dict({name: tensor(np.array(array)) for name, array in arrays.items()})


def _torch_loss(task: Task) -> Callable[[Any, Any], Any]:
    if task == "regression":
        return lambda outputs, y: 0.5 * (outputs.reshape(len(y)) - y) ** 2
    functional = _torch().nn.functional
    return lambda outputs, y: functional.cross_entropy(outputs, y, reduction="none")


def _torch_measured(
    module: Any, loss: Callable[[Any, Any], Any], task: Task, x: Any, y: Any, batch: int
) -> Measured:
    before, total, hits = module.training, 0.0, 0
    module.eval()
    try:
        with _torch().no_grad():
            for start in range(0, len(y), batch):
                outputs, labels = module(x[start : start + batch]), y[start : start + batch]
                total += float(loss(outputs, labels).double().sum())
                if task != "regression":
                    hits += int((outputs.argmax(dim=-1) == labels).sum())
    finally:
        module.train(before)
    accuracy = math.nan if task == "regression" else 100 * hits / len(y)
    return Measured(total / len(y), accuracy)


def _torch() -> Any:
    """PyTorch, which who has a module has imported; fairfl does not depend on it."""
    return sys.modules["torch"]
