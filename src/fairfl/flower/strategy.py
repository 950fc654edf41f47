"""The server: any fairfl rule and sampler as a strategy of a Flower ServerApp."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from logging import INFO, WARNING
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result as History
from flwr.serverapp.strategy import Strategy

from fairfl.algorithms import Algorithm
from fairfl.algorithms.algorithm import LARGEST_SEED, whole
from fairfl.clients.federated import SPLITS
from fairfl.flower import checkpoint
from fairfl.flower.arrays import leaves
from fairfl.flower.client import ARRAYS
from fairfl.flower.evaluation import Said, fairness_of, said, served
from fairfl.flower.meeting import Meeting, founders, newcomers
from fairfl.flower.orders import check_work, orders_of
from fairfl.flower.outcome import about, configuration_of, result_of, settings_of, write
from fairfl.flower.received import Refused, Update, received, without_oversized
from fairfl.flower.replies import exchange, told
from fairfl.flower.roster import check_task, cohort_of, rows_of
from fairfl.flower.standing import Standing, States, grown
from fairfl.flower.step import Drawn, answer, answered, described, fresh, stepped
from fairfl.flower.trust import Trust, bounding
from fairfl.runs.folder import CHECKPOINTS
from fairfl.runs.keeping import Keeper
from fairfl.runs.loading import load_run
from fairfl.runs.result import Result

EVALUATIONS = 20
"""Evaluations of a run that does not say how often."""

USUAL = Trust()
NOBODY = Drawn(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


class FairStrategy(Strategy):
    """Any fairfl algorithm on the clients of a Flower federation.

    algorithm        one experiment: its rule, sampler, weights and server step, and the numbers
                     that the clients are told (learning rate, epochs, batch size)
    clients          how many must be connected before the first round; later ones join in
    cohort, seed     as in `fairfl.train`, and with the same draws
    evaluate_every   rounds between two evaluations of every client; a twentieth of all by default
    least_replies    the share of a cohort that must answer usably, or the round changes nothing
    patience         so many such rounds in a row fail the run
    trust            how far replies are believed
    out              a folder that keeps the run, with a checkpoint after every round; `resume` goes
                     on with what is there, to the same bytes, and `overwrite` replaces it
    privacy          wraps the strategy in one of Flower's for differential privacy

    >>> import fairfl
    >>> from fairfl.flower import FairStrategy
    >>> FairStrategy(fairfl.q_fedavg(q=1), clients=10, cohort=5).algorithm.rule.name
    'bounded q-FFL'
    """

    def __init__(
        self,
        algorithm: Algorithm,
        *,
        clients: int,
        cohort: int = 10,
        seed: int = 0,
        evaluate_every: int | None = None,
        least_replies: float | int = 0.5,
        patience: int = 3,
        trust: Trust = USUAL,
        out: Path | str | None = None,
        resume: bool = False,
        overwrite: bool = False,
        privacy: Callable[[Strategy], Strategy] | None = None,
        name: str = "federation",
    ) -> None:
        check_work(algorithm)
        self.asked_sampler = algorithm.sampler.name
        self.algorithm = bounding(algorithm, trust)
        self.clients, self.cohort = whole("clients", clients), whole("cohort", cohort)
        self.seed = whole("seed", seed, least=0, most=LARGEST_SEED)
        self.evaluate_every = evaluate_every and whole("evaluate_every", evaluate_every)
        if not 0 < least_replies <= 1:
            raise ValueError(f"least_replies={least_replies} must be above 0 and at most 1")
        self.least_replies, self.patience = least_replies, whole("patience", patience)
        self.trust, self.name = trust, name
        self.keeper = None if out is None else Keeper(Path(out), resume, overwrite)
        if self.keeper is None and (resume or overwrite):
            raise ValueError("resume and overwrite are for a run that is kept; add out=FOLDER")
        self.wrapped = privacy(self) if privacy else self
        self.meeting = Meeting()
        self.standing: Standing | None = None
        self.result: Result | None = None
        self.rounds: int | None = None
        self.seconds = 60.0
        self._drawn = NOBODY
        self._sent: list[tuple[int, Message]] = []
        self._said: dict[int, Refused] = {}

    def summary(self) -> None:
        """Log what is trained and how."""
        one = self.algorithm.experiments[0]
        values = ", ".join(f"{name}={value:g}" for name, value in one.items())
        log(INFO, "\t├──> %s (%s): %s", self.algorithm.name, self.algorithm.rule.name, values)
        log(INFO, "\t├──> cohorts of %d, sampler %s, weights %s, seed %d", self.cohort,
            self.algorithm.sampler.name, self.algorithm.weights, self.seed)  # fmt: skip
        log(INFO, "\t└──> %s", self.trust)

    # ---- a round ----

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """The model and the round's orders, to the cohort that the seed draws."""
        standing = self._begun(grid, arrays)
        standing.model = arrays
        nodes, roster = self._nodes(grid), standing.roster
        ids, u = cohort_of(self.algorithm, roster, self.cohort, self.seed, server_round - 1)
        self._drawn = Drawn(ids, rows_of(roster, "train")[ids], u)
        orders = {**config, **orders_of(self.algorithm, server_round, self.seed)}
        clients = sorted({int(id) for id in ids})
        self._said = {k: Refused("it is not connected", True) for k in clients if k not in nodes}
        self._sent = [
            (k, self._message(arrays, {**orders, "client": k}, nodes[k], MessageType.TRAIN))
            for k in clients
            if k in nodes
        ]
        return [message for _, message in self._sent]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """w' = server(w, sum_k a_k D_k) from the usable replies, in the order of the roster.

        None for a round with too few of them, which changes nothing; RuntimeError when that
        happened too often in a row.
        """
        standing = self._begun()
        found = self._received(replies)
        usable = {k: one for k, one in found.items() if isinstance(one, Update)}
        refused = {k: one for k, one in found.items() if isinstance(one, Refused)}
        row = self._book(usable, refused)
        standing.done = server_round
        standing.trace.append(row)
        if len(usable) < max(1, self.least_replies * len(found)):
            standing.vain += 1
            self._check_patience(refused)
            return None, metrics(row)
        standing.vain = 0
        step = stepped(self.algorithm, standing.states, standing.model, self._drawn, usable)
        standing.states = step.states
        row |= {**described(self._drawn, usable, step.a), **step.info}
        return step.model, metrics(row)

    def _received(self, replies: Iterable[Message]) -> dict[int, Update | Refused]:
        """What came of every client of the cohort."""
        standing = self._begun()
        names, w = list(standing.model), leaves(standing.model)
        answers = {reply.metadata.reply_to_message_id: reply for reply in replies}
        found: dict[int, Update | Refused] = dict(self._said)
        for k, message in self._sent:
            if k not in found:
                found[k] = received(answers.get(message.metadata.message_id), names, w)
        return without_oversized(dict(sorted(found.items())), self.trust)

    def _book(
        self, usable: Mapping[int, Update], refused: Mapping[int, Refused]
    ) -> dict[str, float]:
        """Count what was put aside, by client and reason."""
        standing = self._begun()
        for k, one in refused.items():
            name = standing.roster[k].name
            log(WARNING, "Client %s does not count: %s", name, one.reason)
            standing.refuse(name, one.reason)
            standing.quarantined[name] += not one.absent
        names = [standing.roster[k].name for k, one in usable.items() if one.adaptive]
        standing.adaptive += [name for name in names if name not in standing.adaptive]
        absent = sum(one.absent for one in refused.values())
        counts = {"alive": 1, "quarantined": len(refused) - absent, "absent": absent}
        return {name: float(count) for name, count in counts.items()}

    def _check_patience(self, refused: Mapping[int, Refused]) -> None:
        standing = self._begun()
        log(WARNING, "Too few replies (%d are missing): the round changes nothing", len(refused))
        if standing.vain < self.patience:
            return
        reasons = [f"{standing.roster[k].name}: {one.reason}" for k, one in refused.items()]
        raise RuntimeError(
            f"{standing.vain} rounds in a row had fewer usable replies than least_replies="
            f"{self.least_replies:g} asks for ({'; '.join(reasons)}); see to these clients and "
            "submit the run again with resume"
        )

    # ---- how every client is served ----

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """The answer so far to every client that is connected, where an evaluation is due."""
        standing = self._begun(grid, arrays)
        self._take(server_round, arrays)
        if not self._due(server_round):
            self._sent = []
            return []
        asked = {**config, "server-round": server_round}
        shown = answer(self.algorithm, standing.states.answer, arrays)
        self._said = {}
        self._sent = [
            (k, self._message(shown, asked, node, MessageType.EVALUATE))
            for k, node in sorted(self._nodes(grid).items())
        ]
        return [message for _, message in self._sent]

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Fairness over the clients that answered, for Flower's history."""
        standing = self._begun()
        if not self._due(server_round):
            return None
        answers = {reply.metadata.reply_to_message_id: reply for reply in replies}
        found: dict[int, Said] = {}
        for k, message in self._sent:
            one = said(answers.get(message.metadata.message_id), standing.roster[k])
            if isinstance(one, str):
                log(WARNING, "Client %s is not evaluated: %s", standing.roster[k].name, one)
                standing.refuse(standing.roster[k].name, one)
            else:
                found[k] = one
        standing.evaluations[server_round] = served(found, len(standing.roster))
        return self._evaluated(server_round)

    def _evaluated(self, server_round: int) -> MetricRecord:
        standing, row = self._begun(), {}
        for split in SPLITS:
            found = fairness_of(standing.roster, split, standing.evaluations[server_round][split])
            named = found._asdict() if found else {}
            row |= {f"{split}-{name}": value for name, value in named.items()}
        return metrics(row)

    def _due(self, server_round: int) -> bool:
        return server_round % self._every() == 0 or server_round == self.rounds

    def _every(self) -> int:
        return self.evaluate_every or max(1, (self.rounds or 1) // EVALUATIONS)

    def _take(self, server_round: int, arrays: ArrayRecord) -> None:
        """The round's model, with the noise that a wrapper has added to it."""
        standing = self._begun()
        standing.model = arrays
        if standing.vain == 0:
            states = standing.states
            kept = answered(self.algorithm, states.answer, arrays, server_round)
            standing.states = states._replace(answer=kept)

    # ---- the run ----

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float | int = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> History:
        """Train until `num_rounds` rounds are done, a round waiting `timeout` seconds at most.

        The arrays of the history are the answer; `result` is the run as `fairfl.train` gives it.
        """
        self.rounds, self.seconds = whole("num_rounds", num_rounds), timeout
        self.summary()
        configs = (train_config or ConfigRecord(), evaluate_config or ConfigRecord())
        with self.keeper or nullcontext():
            return self._run(grid, initial_arrays, configs, evaluate_fn)

    def _run(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        configs: tuple[ConfigRecord, ConfigRecord],
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None,
    ) -> History:
        standing = self._begun(grid, initial_arrays)
        if self.keeper is not None and self.keeper.finished:
            return self._finished(load_run(self.keeper.place))
        central = {} if evaluate_fn is None else {0: evaluate_fn(0, initial_arrays)}
        while standing.done < (self.rounds or 0):
            self._round(grid, *configs)
            if evaluate_fn is not None:
                central[standing.done] = evaluate_fn(standing.done, standing.model)
            if self.keeper is not None:
                checkpoint.save(self.keeper.place / CHECKPOINTS, standing)
        result = self._found()
        history = self._finished(result)
        history.evaluate_metrics_serverapp = {k: v for k, v in central.items() if v is not None}
        if self.keeper is not None:
            write(self.keeper, result)
        return history

    def _found(self) -> Result:
        standing = self._begun()
        shown = answer(self.algorithm, standing.states.answer, standing.model)
        settings = self._settings(standing.model)
        return result_of(self.name, self.algorithm, standing, shown, settings)

    def _finished(self, result: Result) -> History:
        """Flower's history of the rounds that were done, with the answer."""
        standing, self.result = self._begun(), result
        params = result.members[0].params
        history = History(arrays=ArrayRecord({name: Array(leaf) for name, leaf in params.items()}))
        for done, row in enumerate(standing.trace, start=1):
            history.train_metrics_clientapp[done] = metrics(row)
        for done in standing.evaluations:
            history.evaluate_metrics_clientapp[done] = self._evaluated(done)
        return history

    def _settings(self, model: ArrayRecord) -> dict[str, Any]:
        every = self._every()
        return settings_of(self.algorithm, model, self.cohort, self.seed, every)

    def _round(self, grid: Grid, train: ConfigRecord, evaluate: ConfigRecord) -> None:
        """One round through the wrapper, if there is one, which sees usable replies alone."""
        standing, began = self._begun(), time.monotonic()
        number, through = standing.done + 1, self.wrapped
        asked = through.configure_train(number, standing.model, train, grid)
        replies = self._exchange(grid, asked)
        # A wrapper leaves out a round without replies, which must be counted all the same.
        arrays, row = (through if replies else self).aggregate_train(number, replies)
        log(INFO, "[ROUND %s/%s] %s", number, self.rounds, row)
        if standing.done < number:
            raise RuntimeError(f"{through!r} left out round {number}; its log says why")
        after = standing.model if arrays is None else arrays
        asked = through.configure_evaluate(number, after, evaluate, grid)
        found = through.aggregate_evaluate(number, self._exchange(grid, asked))
        if found is not None:
            log(INFO, "[ROUND %s/%s] %s", number, self.rounds, found)
        standing.seconds += time.monotonic() - began

    def _exchange(self, grid: Grid, messages: Iterable[Message]) -> list[Message]:
        """The replies with content, in the order of the clients; what failed is noted."""
        sent = list(messages)
        found = exchange(grid, sent, self.seconds)
        for place, (k, _) in enumerate(self._sent):
            reason = told(found.get(place))
            if reason:
                self._said[k] = Refused(reason, absent=True)
        return [reply for _, reply in sorted(found.items()) if not reply.has_error()]

    def _message(
        self, arrays: ArrayRecord, config: Mapping[str, Any], node: int, kind: str
    ) -> Message:
        """One to a node, which it may answer as long as the round lasts."""
        content = RecordDict({ARRAYS: arrays, "config": ConfigRecord(dict(config))})
        return Message(content, node, kind, ttl=self.seconds)

    def _nodes(self, grid: Grid) -> dict[int, int]:
        """The nodes of connected clients by their places, once newcomers have a place."""
        standing = self._begun()
        online = self.meeting.online(grid, self.seconds)
        new = newcomers(standing.roster, online)
        if new:
            log(INFO, "%s joined", ", ".join(member.name for member in new))
            standing.roster += new
            states = self._fresh(standing.model, len(standing.roster))
            rule = grown(standing.states.rule, states.rule)
            standing.states = standing.states._replace(rule=rule)
        return {
            k: online[member.name][0]
            for k, member in enumerate(standing.roster)
            if member.name in online
        }

    def _begun(self, grid: Grid | None = None, model: ArrayRecord | None = None) -> Standing:
        """Where the run stands; at the beginning, once its clients are connected."""
        if self.standing is None:
            if grid is None or model is None:
                raise RuntimeError("no round was configured; call start, or configure_train first")
            self.standing = self._first(grid, model)
        return self.standing

    def _first(self, grid: Grid, model: ArrayRecord) -> Standing:
        """From the checkpoint, or from the clients that are there."""
        present = founders(self.meeting, grid, self.clients, self.seconds)
        kept = self._kept()
        roster = kept.roster if kept else present
        check_task(roster)
        standing = kept or Standing(model, self._fresh(model, len(roster)), roster, len(roster))
        if self.keeper is not None:
            first = standing.roster[: standing.founders]
            chosen, rounds = self._settings(model), self.rounds or 0
            asked = configuration_of(self.name, self.algorithm, first, rounds, chosen)
            self.keeper.begin(asked, about(self.name, first))
        return standing

    def _kept(self) -> Standing | None:
        if self.keeper is None or not self.keeper.resume:
            return None
        return checkpoint.newest(self.keeper.place / CHECKPOINTS, self._fresh)

    def _fresh(self, model: ArrayRecord, clients: int) -> States:
        return fresh(self.algorithm, self.cohort, model, clients)


def metrics(row: Mapping[str, float]) -> MetricRecord:
    """What is finite of a round, for Flower's history.

    >>> from fairfl.flower.strategy import metrics
    >>> dict(metrics({"effective_step": 1.0, "loss": float("nan")}))
    {'effective-step': 1.0}
    """
    pairs = {name.replace("_", "-"): float(value) for name, value in row.items()}
    return MetricRecord({name: value for name, value in pairs.items() if np.isfinite(value)})
