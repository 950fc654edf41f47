"""The plan: who trains in which round, on which rows, in which order. Host only, random access.

A round is a flat stream of mini-batch steps: the cohort's batches laid back to back in P lanes, the
longest client to the emptiest lane, with no padding to the largest client. A *segment* is a run of
steps during which every lane stays with one client in one phase; within it the device runs a plain
loop of SGD steps.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Int32

from fairfl.algorithms import Algorithm
from fairfl.algorithms.samplers import Population, Sampler, Weights, effective, population, weights
from fairfl.algorithms.work import Work
from fairfl.clients import FederatedData, Rows, Split
from fairfl.clients.federated import halved
from fairfl.clients.randomness import Stream, generator, permutations

TILE = 64
"""Rows a step of full-gradient work reads; any size gives the same gradient."""

STEPS = 8192
"""Lane-steps a chunk holds at least, so that short rounds share one transfer and one launch."""

ROUNDS = 64
"""Rounds a chunk holds at most."""

SUPPORT = 3
"""The role of support rows."""

NO_ROWS = Rows(np.empty(0, np.int64), np.zeros(1, np.int64))


class Chunk(NamedTuple):
    """Consecutive rounds as the device reads them; every array has the same shape in every chunk.

    Step s of lane p trains on rows[s, p, :filled[s, p]]. Segment g of round r runs steps start to
    start + length; lane p then belongs to cohort place slot (the cohort's size when idle), which
    begins there if `first`, ends there if `last`, and has its F_k measured if `measured`. Of its
    `sizes` rows a client reads `read` in an epoch. Where it adapts, mini-batch j of place k is
    support[r, k, j, :supported[r, k, j]].
    """

    rounds: Int32[np.ndarray, ""]
    first_round: Int32[np.ndarray, ""]
    rows: Int32[np.ndarray, "steps lanes batch"]
    filled: Int32[np.ndarray, "steps lanes"]
    start: Int32[np.ndarray, "rounds segments"]
    length: Int32[np.ndarray, "rounds segments"]
    slot: Int32[np.ndarray, "rounds segments lanes"]
    first: Bool[np.ndarray, "rounds segments lanes"]
    last: Bool[np.ndarray, "rounds segments lanes"]
    measured: Bool[np.ndarray, "rounds segments lanes"]
    ids: Int32[np.ndarray, "rounds cohort"]
    sizes: Float[np.ndarray, "rounds cohort"]
    read: Float[np.ndarray, "rounds cohort"]
    weights: Float[np.ndarray, "rounds cohort"]
    support: Int32[np.ndarray, "rounds cohort inner batch"]
    supported: Int32[np.ndarray, "rounds cohort inner"]


class Segments(NamedTuple):
    """The segments of one round."""

    start: Int[np.ndarray, " segments"]
    length: Int[np.ndarray, " segments"]
    slot: Int[np.ndarray, "segments lanes"]
    first: Bool[np.ndarray, "segments lanes"]
    last: Bool[np.ndarray, "segments lanes"]
    measured: Bool[np.ndarray, "segments lanes"]


@dataclass(frozen=True)
class Planner:
    """Everything the plan of a seed follows from."""

    rows: Rows
    support: Rows
    people: Population
    sampler: Sampler
    weighting: Weights
    cohort: int
    work: Work
    batch: int
    lanes: int
    seed: int

    @property
    def epochs(self) -> int:
        return self.work.epochs

    @cached_property
    def read(self) -> Int[np.ndarray, " clients"]:
        """Rows that each client reads in an epoch."""
        most = self.work.batches
        return (
            self.people.sizes if most is None else np.minimum(self.people.sizes, most * self.batch)
        )

    @property
    def segments(self) -> int:
        """Segments of a round at most: a client ends one, and so does its first epoch."""
        return self.cohort * (1 if self.epochs == 1 else 2)

    @property
    def steps(self) -> int:
        """Steps that a chunk can hold: at least those of the longest possible round."""
        per_client = self.epochs * -(-self.read // self.batch)
        longest = int(per_client.max())
        if self.sampler.name == "by-size-with-replacement":
            total = longest * self.cohort
        else:
            total = int(np.partition(per_client, -self.cohort)[-self.cohort :].sum())
        return max(STEPS // self.lanes, min(total, total // self.lanes + longest))

    def draw(self, round: int) -> tuple[np.ndarray, np.ndarray]:
        """The cohort of a round: client ids and their weights u_k."""
        ids = self.sampler.draw(
            generator(self.seed, Stream.COHORT, round), self.people, self.cohort
        )
        return ids, weights(self.weighting, self.sampler.by_size, self.people, ids)

    def chunk(self, start: int, stop: int) -> Chunk:
        """As many of the rounds [start, stop) as fit into one chunk, at least one."""
        chunk = self._empty(start)
        used, round, read = 0, start, self.read
        while round < min(stop, start + ROUNDS):
            ids, u = self.draw(round)
            batches = -(-read[ids] // self.batch)
            begin, lane = lay_out(self.epochs * batches, self.lanes)
            ends = begin + self.epochs * batches
            if used + int(ends.max()) > len(chunk.rows):
                break
            place = round - start
            self._write_steps(chunk, round, used, ids, begin, lane)
            parts = segments_of(begin, begin + batches, ends, lane, self.lanes)
            _write_segments(chunk, place, used, parts)
            chunk.ids[place], chunk.weights[place] = ids, u
            chunk.sizes[place], chunk.read[place] = self.people.sizes[ids], read[ids]
            self._write_support(chunk, place, round, ids)
            used += int(ends.max())
            round += 1
        return chunk._replace(rounds=np.array(round - start, np.int32))

    def _empty(self, start: int) -> Chunk:
        steps, lanes, shape = self.steps, self.lanes, (ROUNDS, self.segments)
        adaptation, places = self.work.adaptation, (ROUNDS, self.cohort)
        inner, wide = (adaptation.steps, adaptation.batch_size) if adaptation else (0, 0)
        return Chunk(
            rounds=np.array(0, np.int32),
            first_round=np.array(start, np.int32),
            rows=np.zeros((steps, lanes, self.batch), np.int32),
            filled=np.zeros((steps, lanes), np.int32),
            start=np.zeros(shape, np.int32),
            length=np.zeros(shape, np.int32),
            slot=np.full((*shape, lanes), self.cohort, np.int32),
            first=np.zeros((*shape, lanes), bool),
            last=np.zeros((*shape, lanes), bool),
            measured=np.zeros((*shape, lanes), bool),
            ids=np.zeros(places, np.int32),
            sizes=np.ones(places),
            read=np.ones(places),
            weights=np.zeros(places),
            support=np.zeros((*places, inner, wide), np.int32),
            supported=np.zeros((*places, inner), np.int32),
        )

    def _write_support(self, chunk: Chunk, place: int, round: int, ids: np.ndarray) -> None:
        adaptation = self.work.adaptation
        if adaptation is None:
            return
        for slot, id in enumerate(ids.tolist()):
            chunk.support[place, slot], chunk.supported[place, slot] = support_batches(
                self.support.of(id), adaptation.steps, adaptation.batch_size, self.seed, round, id
            )

    def _write_steps(
        self,
        chunk: Chunk,
        round: int,
        used: int,
        ids: np.ndarray,
        begin: np.ndarray,
        lane: np.ndarray,
    ) -> None:
        for id, first, p in zip(ids.tolist(), begin.tolist(), lane.tolist(), strict=True):
            own = self.rows.of(id)
            shuffled = self.work.batch_size is not None
            orders = shuffles_of(own, self.seed, round, id, self.epochs) if shuffled else [own]
            at, read = used + first, self.read[id]
            for order in (rows[:read] for rows in orders):
                full, rest = divmod(len(order), self.batch)
                chunk.rows[at : at + full, p] = order[: full * self.batch].reshape(full, self.batch)
                chunk.filled[at : at + full, p] = self.batch
                at += full
                if rest:
                    # Padding repeats a row of the client: it weighs nothing and exists.
                    chunk.rows[at, p] = order[-1]
                    chunk.rows[at, p, :rest] = order[full * self.batch :]
                    chunk.filled[at, p] = rest
                    at += 1


def planner(
    rows: Rows,
    algorithm: Algorithm,
    cohort: int,
    seed: int,
    lanes: int = 1,
    support: Rows | None = None,
) -> Planner:
    """The plan of one seed over the training rows of its split, and its support rows."""
    people = population(rows.sizes)
    chosen = effective(algorithm.sampler, people, cohort)
    full = chosen.name == "everyone"
    return Planner(
        rows=rows,
        support=NO_ROWS if support is None else support,
        people=people,
        sampler=chosen,
        weighting=algorithm.weights,
        cohort=len(people.trainable) if full else cohort,
        work=algorithm.work,
        batch=algorithm.work.batch_size or TILE,
        lanes=lanes,
        seed=seed,
    )


def cohort_of(
    data: FederatedData, algorithm: Algorithm, cohort: int, seed: int, round: int
) -> tuple[np.ndarray, np.ndarray]:
    """Who takes part in a round, as client numbers, and with which weights u_k."""
    return planner(split_of(data, algorithm, seed).train, algorithm, cohort, seed).draw(round)


def split_of(data: FederatedData, algorithm: Algorithm, seed: int) -> Split:
    """The split of a seed as the algorithm uses it.

    One that adapts needs support rows: where the data have none, every second training row is one.
    """
    split = data.split(seed)
    return halved(split) if stands_in(data, algorithm) else split


def stands_in(data: FederatedData, algorithm: Algorithm) -> bool:
    """Whether training rows stand in for the support rows that the data do not have."""
    has_support = data.roles is not None and bool((data.roles == SUPPORT).any())
    return algorithm.work.adaptation is not None and not has_support


def shuffles_of(
    rows: Int[np.ndarray, " rows"], seed: int, round: int, client: int, epochs: int
) -> list[Int[np.ndarray, " rows"]]:
    """The order in which a client visits its rows, one permutation per local epoch."""
    return list(rows[permutations(len(rows), epochs, seed, Stream.SHUFFLE, round, client)])


def support_batches(
    rows: Int[np.ndarray, " rows"], steps: int, batch: int, seed: int, round: int, client: int
) -> tuple[Int[np.ndarray, "steps batch"], Int[np.ndarray, " steps"]]:
    """A client's first so many mini-batches of support rows, shuffle after shuffle, and how many
    rows of each are real; none of them where the client has no support rows.

    >>> import numpy as np
    >>> from fairfl.simulation.plan import support_batches
    >>> found, filled = support_batches(np.arange(5), 4, batch=3, seed=0, round=0, client=7)
    >>> sorted({*found[0].tolist(), *found[1].tolist()}), filled.tolist()
    ([0, 1, 2, 3, 4], [3, 2, 3, 2])
    """
    if not len(rows):
        return np.zeros((steps, batch), np.int64), np.zeros(steps, np.int64)
    per_shuffle = -(-len(rows) // batch)
    shuffles = -(-steps // per_shuffle)
    orders = rows[permutations(len(rows), shuffles, seed, Stream.SUPPORT, round, client)]
    padding = per_shuffle * batch - len(rows)
    padded = np.pad(orders, ((0, 0), (0, padding)), mode="edge").reshape(-1, batch)
    filled = np.minimum(batch, len(rows) - batch * np.arange(per_shuffle))
    return padded[:steps], np.tile(filled, shuffles)[:steps]


def lay_out(steps: Int[np.ndarray, " k"], lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """When each client begins and in which lane: the longest client to the emptiest lane.

    >>> import numpy as np
    >>> from fairfl.simulation.plan import lay_out
    >>> [part.tolist() for part in lay_out(np.array([1, 5, 2, 3]), lanes=2)]
    [[5, 0, 3, 0], [0, 0, 1, 1]]
    """
    if lanes == 1:
        return np.concatenate([[0], np.cumsum(steps[:-1])]), np.zeros(len(steps), np.int64)
    begin, lane = np.zeros_like(steps), np.zeros(len(steps), np.int64)
    filled = np.zeros(lanes, steps.dtype)
    for client in np.argsort(-steps, kind="stable"):
        lane[client] = np.argmin(filled)
        begin[client] = filled[lane[client]]
        filled[lane[client]] += steps[client]
    return begin, lane


def segments_of(
    begin: np.ndarray, measured_until: np.ndarray, end: np.ndarray, lane: np.ndarray, lanes: int
) -> Segments:
    """Cut a round wherever a client, or its first epoch, ends."""
    stops = np.unique(np.concatenate([measured_until, end]))
    starts = np.concatenate([[0], stops[:-1]])
    active = (begin <= starts[:, None]) & (starts[:, None] < end)
    segment, client = np.nonzero(active)
    shape = (len(stops), lanes)
    slot = np.full(shape, len(begin))
    first, last, measured = (np.zeros(shape, bool) for _ in range(3))
    at = (segment, lane[client])
    slot[at] = client
    first[at] = begin[client] == starts[segment]
    last[at] = end[client] == stops[segment]
    measured[at] = stops[segment] <= measured_until[client]
    return Segments(starts, stops - starts, slot, first, last, measured)


def _write_segments(chunk: Chunk, place: int, used: int, parts: Segments) -> None:
    n = len(parts.start)
    chunk.start[place, :n] = used + parts.start
    chunk.length[place, :n] = parts.length
    chunk.slot[place, :n] = parts.slot
    chunk.first[place, :n] = parts.first
    chunk.last[place, :n] = parts.last
    chunk.measured[place, :n] = parts.measured
