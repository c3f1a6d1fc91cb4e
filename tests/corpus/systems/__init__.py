"""Four systems in memory, called in four ways: groups of filters, flat parameters, nested conditions, an expression."""

from functools import cache

from tests.corpus.corpus import SystemName
from tests.corpus.systems.base import System
from tests.corpus.systems.crm import Crm
from tests.corpus.systems.meetings import Meetings
from tests.corpus.systems.orders import Orders
from tests.corpus.systems.tickets import Tickets

SYSTEMS: dict[SystemName, type[System]] = {"crm": Crm, "tickets": Tickets, "calendar": Meetings, "orders": Orders}


@cache
def system_of(name: SystemName) -> System:
    """A system that is there once, for what it knows, or for who resets it."""
    return SYSTEMS[name]()


__all__ = ["SYSTEMS", "Crm", "Meetings", "Orders", "System", "Tickets", "system_of"]
