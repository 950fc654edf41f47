"""Choosing: q by the paper's protocol, a q for every device, the learning rate, the frontier."""

from fairfl.choice.device import DeviceQ, device_q
from fairfl.choice.frontier import frontier
from fairfl.choice.protocol import Choice, choose_q
from fairfl.choice.rate import choose_rate

__all__ = ["Choice", "DeviceQ", "choose_q", "choose_rate", "device_q", "frontier"]
