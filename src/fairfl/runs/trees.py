"""Trees of arrays in a file: every array under the path that leads to it."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.tree_util import SequenceKey, keystr, tree_flatten_with_path
from jaxtyping import Shaped

Arrays = Mapping[str, Shaped[np.ndarray, "..."]]


def named(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree by their paths.

    >>> from fairfl.runs.trees import named
    >>> named({"layers": [np.zeros(2), np.ones(1)]})
    {'layers/0': array([0., 0.]), 'layers/1': array([1.])}
    """
    return {_name(path): np.asarray(leaf) for path, leaf in tree_flatten_with_path(tree)[0]}


def like(template: Any, arrays: Arrays) -> Any:
    """The tree again, in the form of one that has the same paths, shapes and types.

    >>> from fairfl.runs.trees import like, named
    >>> like({"w": np.zeros(2)}, named({"w": np.ones(2)}))
    {'w': array([1., 1.])}
    """
    leaves, form = tree_flatten_with_path(template)
    others = set(arrays) - {_name(path) for path, _ in leaves}
    if others:
        raise ValueError(f"the file holds {min(others)}, which has no place in it")
    found = [arrays.get(_name(path)) for path, _ in leaves]
    for (path, leaf), array in zip(leaves, found, strict=True):
        if array is None or (array.shape, array.dtype) != (leaf.shape, leaf.dtype):
            held = "nothing" if array is None else f"{array.dtype}{list(array.shape)}"
            raise ValueError(
                f"{_name(path)} should be {leaf.dtype}{list(leaf.shape)} but the file holds {held}"
            )
    return jax.tree.unflatten(form, found)


def formed(template: Any, arrays: Arrays) -> Any:
    """The arrays in the form of a tree that has the same paths, whatever its own leaves are.

    >>> from fairfl.runs.trees import formed
    >>> formed({"w": None, "layers": [0.0]}, {"layers/0": np.ones(1)})
    {'layers': [array([1.])], 'w': None}
    """
    leaves, form = tree_flatten_with_path(template)
    return jax.tree.unflatten(form, [arrays[_name(path)] for path, _ in leaves])


def skeleton(tree: Any) -> Any:
    """Nested lists and dicts with the arrays' names in their places, as JSON can keep them.

    >>> from fairfl.runs.trees import skeleton
    >>> skeleton({"layers": [np.zeros(2), np.ones(1)]})
    {'layers': ['layers/0', 'layers/1']}
    """
    paths = [path for path, _ in tree_flatten_with_path(tree)[0]]
    return _nested(paths, 0)


def _nested(paths: list[Any], depth: int) -> Any:
    if len(paths[0]) == depth:
        return _name(paths[0])
    below: dict[str, list[Any]] = {}
    for path in paths:
        below.setdefault(_name(path[depth : depth + 1]), []).append(path)
    found = {key: _nested(those, depth + 1) for key, those in below.items()}
    return list(found.values()) if isinstance(paths[0][depth], SequenceKey) else found


def _name(path: Any) -> str:
    return keystr(path, simple=True, separator="/")
