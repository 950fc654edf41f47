"""The paper's models of text: two recurrent layers, and a dense one that reads their last state."""

from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fairfl.clients import FederatedData
from fairfl.models.alone import alone
from fairfl.models.functions import from_functions
from fairfl.models.layers import dense, dense_layer, glorot
from fairfl.models.model import Model
from fairfl.models.recurrent import layer, lstm

EMBEDDING = 8
"""Dimensions in which a character is embedded (appendix "Datasets and Models" of the paper)."""

Weights = dict[str, Any]
Tokens = Int[Array, "rows steps"]


def char_lstm(data: FederatedData, hidden: int = 256) -> Model:
    """The paper's model for Shakespeare: the next character after a row of characters.

    Characters are embedded in 8 learnt dimensions, read by two LSTM layers of 256, and a dense
    layer tells the classes apart by the last state.

    >>> import numpy as np, fairfl
    >>> text = np.arange(60).reshape(12, 5) % 7
    >>> data = fairfl.from_arrays({"HAMLET": (text, np.arange(12) % 7)})
    >>> fairfl.models.char_lstm(data).name
    'character LSTM 8-256-256-7'
    """
    classes = _classes(data, "char_lstm")
    _check_width(hidden)
    characters = max(classes, int(data.x.max()) + 1)
    return _char_lstm(characters, hidden, classes)


def sentiment_lstm(data: FederatedData, hidden: int = 100) -> Model:
    """The paper's model for Sent140: words in fixed vectors, two LSTM layers, a dense one.

    The vectors are the data's `embeddings` and are not trained. The paper leaves the width of the
    layers open; 100 is that of its reference code.

    >>> import dataclasses, numpy as np, fairfl
    >>> tweets = np.arange(60).reshape(12, 5) % 7
    >>> data = fairfl.from_arrays({"account": (tweets, np.arange(12) % 2)})
    >>> data = dataclasses.replace(data, embeddings=np.ones((7, 50), np.float32))
    >>> fairfl.models.sentiment_lstm(data).name
    'sentiment LSTM 50-100-100-2'
    """
    classes = _classes(data, "sentiment_lstm")
    _check_width(hidden)
    if data.embeddings is None:
        raise ValueError(
            "sentiment_lstm reads words in fixed vectors but the data has no embeddings; set its "
            "`embeddings` to one vector per word, or use char_lstm, which learns them"
        )
    words, dimensions = data.embeddings.shape
    if data.x.max() >= words:
        raise ValueError(
            f"the data has the word number {data.x.max()} but embeddings of only {words} words; "
            "give one vector per word"
        )
    model = from_functions(
        partial(_init, features=dimensions, hidden=hidden, classes=classes),
        partial(_of_fixed_words, np.asarray(data.embeddings)),
        task=data.task,
        name=f"sentiment LSTM {dimensions}-{hidden}-{hidden}-{classes}",
    )
    return alone(model)


def _classes(data: FederatedData, model: str) -> int:
    if data.classes is None:
        raise ValueError(f"{model} is a classifier but the labels are real numbers; use an mlp")
    if data.x.ndim != 2 or not np.issubdtype(data.x.dtype, np.integer) or data.x.min() < 0:
        raise ValueError(
            f"{model} reads rows of token numbers, 0 or more, but a row of x has shape "
            f"{data.x.shape[1:]} and holds {data.x.dtype.name} values from {data.x.min():g}; "
            "number the characters or words first"
        )
    return len(data.classes)


def _check_width(hidden: int) -> None:
    if hidden < 1:
        raise ValueError(f"hidden={hidden} must be a positive width such as 256")


@lru_cache
def _char_lstm(characters: int, hidden: int, classes: int) -> Model:
    model = from_functions(
        partial(_init_characters, characters=characters, hidden=hidden, classes=classes),
        _of_characters,
        task="binary" if classes == 2 else "multiclass",
        name=f"character LSTM {EMBEDDING}-{hidden}-{hidden}-{classes}",
    )
    return alone(model)


def _init(key: PRNGKeyArray, features: int, hidden: int, classes: int) -> Weights:
    first, second, last = jax.random.split(key, 3)
    layers = [layer(first, features, hidden), layer(second, hidden, hidden)]
    return {"dense": dense_layer(last, hidden, classes), "layers": layers}


def _init_characters(key: PRNGKeyArray, characters: int, hidden: int, classes: int) -> Weights:
    own, others = jax.random.split(key)
    embedding = glorot(own, (characters, EMBEDDING), characters + EMBEDDING)
    return {"embedding": embedding, **_init(others, EMBEDDING, hidden, classes)}


def _of_characters(params: Weights, x: Tokens) -> Float[Array, "rows classes"]:
    return _last_state(params, params["embedding"][x.T])


def _of_fixed_words(
    embeddings: Float[np.ndarray, "words dimensions"], params: Weights, x: Tokens
) -> Float[Array, "rows classes"]:
    return _last_state(params, jnp.asarray(embeddings)[x.T])


def _last_state(
    params: Weights, steps: Float[Array, "steps rows features"]
) -> Float[Array, "rows classes"]:
    for part in params["layers"]:
        steps = lstm(part, steps)
    return dense(params["dense"], steps[-1])
