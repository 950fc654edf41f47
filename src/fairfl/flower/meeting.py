"""Who is connected: nodes come and go, clients keep their names and places."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from logging import INFO, WARNING
from typing import Any

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid

from fairfl.flower.replies import exchange, told
from fairfl.flower.roster import Member, in_order, introduced, registered

LOOK = 0.5
"""Seconds between two looks at who is connected."""

Visit = tuple[int, str]
"""A node since it came online: its id and when that was."""


@dataclass
class Meeting:
    """Every visit that was asked for its name, and what came of it."""

    known: dict[Visit, Member] = field(default_factory=dict)
    strangers: set[Visit] = field(default_factory=set)

    def online(self, grid: Grid, seconds: float | int) -> dict[str, tuple[int, Member]]:
        """The nodes that are connected, by their clients' names; those seen for the first time
        are asked to introduce themselves.

        Of two nodes with one name the later to come stands for the client: without keys a node that
        starts again has a new number, and its old one counts as online for another minute.
        """
        nodes = {(node.node_id, node.last_activated_at): node for node in grid.get_nodes()}
        asked = self.known.keys() | self.strangers
        new = {visit: node for visit, node in nodes.items() if visit not in asked}
        if new:
            self._introduce(grid, new, seconds)
        here = sorted((when, id) for id, when in nodes if (id, when) in self.known)
        found = [(id, self.known[id, when]) for when, id in here]
        return {member.name: (id, member) for id, member in found}

    def _introduce(self, grid: Grid, new: Mapping[Visit, Any], seconds: float | int) -> None:
        messages = [_question(id, seconds) for id, _ in new]
        replies = exchange(grid, messages, seconds)
        for place, (visit, node) in enumerate(new.items()):
            reply = replies.get(place)
            found = told(reply)
            if reply is not None and found is None:
                found = introduced(reply, registered(node.name, node.public_key))
            if isinstance(found, Member):
                self.known[visit] = found
            else:
                self.strangers.add(visit)
                log(WARNING, "Node %s does not take part: %s", visit[0], found)


def _question(node: int, seconds: float | int) -> Message:
    record = RecordDict({"config": ConfigRecord({"asks": "introduction"})})
    return Message(record, node, MessageType.QUERY, ttl=seconds)


def founders(meeting: Meeting, grid: Grid, clients: int, seconds: float | int) -> list[Member]:
    """The first so many or more clients in the order of their names, once they are connected."""
    ends, found = time.monotonic() + seconds, meeting.online(grid, seconds)
    while len(found) < clients:
        if time.monotonic() > ends:
            raise RuntimeError(
                f"only {len(found)} of {clients} clients were connected after {seconds:g} seconds "
                f"({', '.join(sorted(found)) or 'none'}); start the others, or ask for fewer with "
                "clients="
            )
        log(INFO, "%d of %d clients are connected", len(found), clients)
        time.sleep(LOOK)
        found = meeting.online(grid, seconds)
    return in_order(member for _, member in found.values())


def newcomers(roster: Sequence[Member], found: Mapping[str, tuple[int, Member]]) -> list[Member]:
    """Who is connected and has no place in the roster yet."""
    names = {member.name for member in roster}
    return in_order(member for name, (_, member) in found.items() if name not in names)
