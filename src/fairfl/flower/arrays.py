"""A model as it travels: Flower's named arrays, read where they lie and written once."""

import io
from collections.abc import Sequence

import numpy as np
from flwr.app import Array, ArrayRecord
from jaxtyping import Shaped
from numpy.lib import format as npy

Leaves = Sequence[Shaped[np.ndarray, "..."]]


def seen(array: Array) -> Shaped[np.ndarray, "..."]:
    """The numbers of a message's array, read-only and without a copy of them.

    >>> import numpy as np
    >>> from flwr.app import Array
    >>> from fairfl.flower.arrays import seen
    >>> seen(Array(np.arange(3))).tolist()
    [0, 1, 2]
    """
    if array.stype != "numpy.ndarray":
        raise ValueError(f"it is a {array.stype!r} and not a NumPy array")
    stream = io.BytesIO(array.data)
    version = npy.read_magic(stream)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, transposed, dtype = header(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects and no numbers")
    count = int(np.prod(shape, dtype=np.int64))
    flat = np.frombuffer(array.data, dtype, count=count, offset=stream.tell())
    return flat.reshape(shape[::-1]).T if transposed else flat.reshape(shape)


def leaves(record: ArrayRecord) -> list[Shaped[np.ndarray, "..."]]:
    """The arrays of a record in their order."""
    return [seen(array) for array in record.values()]


class Written:
    """An array that is filled where a message will carry it from.

    A model of ten million numbers is so held once, and not in a second copy while it is packed.

    >>> import numpy as np
    >>> from fairfl.flower.arrays import Written, seen
    >>> written = Written(np.zeros((2, 2), np.float32))
    >>> written.flat[:] = 1
    >>> seen(written.array()).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self, like: Shaped[np.ndarray, "..."]) -> None:
        self.dtype, self.shape = like.dtype, like.shape
        self.stream = io.BytesIO()
        described = {"descr": npy.dtype_to_descr(like.dtype), "fortran_order": False}
        npy.write_array_header_1_0(self.stream, {**described, "shape": like.shape})
        begins = self.stream.tell()
        self.stream.truncate(begins)
        if like.size:
            self.stream.seek(begins + like.nbytes - 1)
            self.stream.write(b"\0")
        buffer = self.stream.getbuffer()
        self.flat = np.frombuffer(buffer, like.dtype, count=like.size, offset=begins)

    def array(self) -> Array:
        """What was written; nothing can be written after it."""
        del self.flat
        data = self.stream.getvalue()
        return Array(str(self.dtype), tuple(self.shape), "numpy.ndarray", data)
