"""Arrays in one safetensors file, with a few words about them."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fairfl.runs.json import SCHEMA


def packed(arrays: Mapping[str, np.ndarray], **about: Any) -> bytes:
    """A safetensors file; the same bytes for the same arrays and words.

    >>> from fairfl.runs.tensors import packed, unpacked
    >>> arrays, about = unpacked(packed({"w": np.ones(2)}, rounds=3))
    >>> arrays["w"].tolist(), about["rounds"]
    ([1.0, 1.0], 3)
    """
    # safetensors writes the memory as it lies, so a transposed view would come back scrambled.
    ordered = {name: np.asarray(arrays[name], order="C") for name in arrays}
    # One key alone, because safetensors writes several in an order of chance.
    return save(ordered, metadata={"fairfl": json.dumps({"schema": SCHEMA, **about})})


def unpacked(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Back from `packed`; content that is not whole is a ValueError that says why."""
    try:
        arrays = load(content)
        length = int.from_bytes(content[:8], "little")
        about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["fairfl"])
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"it is damaged: {error}") from error
    if about["schema"] != SCHEMA:
        raise ValueError(f"it has schema {about['schema']} but this fairfl reads schema {SCHEMA}")
    return arrays, about
