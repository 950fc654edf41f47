"""Task: what is predicted, one of two classes, one of several, or a number."""

from typing import Literal, get_args

Task = Literal["binary", "multiclass", "regression"]


def check_task(task: str | None) -> Task | None:
    """The task, refused where there is none of that name; None is to be seen from the labels.

    >>> from fairfl.clients.task import check_task
    >>> check_task("binary")
    'binary'
    """
    if task is not None and task not in get_args(Task):
        raise ValueError(f"task={task!r} is none of {', '.join(get_args(Task))}; choose one")
    return task  # type: ignore[return-value]
