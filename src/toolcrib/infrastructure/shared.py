"""What the processes of a crib share in Redis: cached results, rate limits, and what counts towards spending caps.

Nothing here is the truth about anything that has happened: that is in the store. Importing this loads no client.
"""

from toolcrib.infrastructure.counters import RedisCounters
from toolcrib.infrastructure.rates import RedisRates
from toolcrib.infrastructure.redis import RedisServer
from toolcrib.infrastructure.results import RedisResults

__all__ = ["RedisCounters", "RedisRates", "RedisResults", "RedisServer"]
