"""Messages out, replies in: each by the message it answers, asked for more often than Flower does.

Flower's own loop looks every three seconds. An error that the SuperLink makes for a lost node comes
back under the SuperLink's name, so a reply is known by the message that it answers alone.
"""

import time
from collections.abc import Sequence

from flwr.app import Message
from flwr.serverapp import Grid

POLL = 0.1
"""Seconds between two looks for replies."""


def exchange(grid: Grid, messages: Sequence[Message], seconds: float | int) -> dict[int, Message]:
    """What came back within so many seconds, by the place of the message among those sent.

    A message that could not be sent, or got no reply in time, has no place in it. One that could
    not be fetched is asked for again until the time is over.
    """
    if not messages:
        return {}
    sent = list(grid.push_messages(messages))
    place = {id: at for at, id in enumerate(sent) if id}
    found: dict[int, Message] = {}
    ends = time.monotonic() + seconds
    while len(found) < len(place):
        missing = [id for id, at in place.items() if at not in found]
        for reply in grid.pull_messages(missing):
            found[place[reply.metadata.reply_to_message_id]] = reply
        left = ends - time.monotonic()
        if left <= 0:
            break
        if len(found) < len(place):
            time.sleep(min(POLL, left))
    return found


def told(reply: Message | None) -> str | None:
    """Why there is nothing in a reply, in words; None where there is."""
    if reply is None:
        return "it did not reply before the deadline"
    if not reply.has_error():
        return None
    lines = (reply.error.reason or "").strip().splitlines()
    return f"error {reply.error.code}: {lines[-1].strip() if lines else 'no reason was given'}"
