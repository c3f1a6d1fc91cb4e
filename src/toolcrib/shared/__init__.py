"""What the processes of a crib share in Redis: cached results, rate limits, and what counts towards spending caps.

Nothing here is the truth about anything that has happened: that is in the store. Importing this loads no client.
"""

from toolcrib.shared.counters import RedisCounters
from toolcrib.shared.rates import RedisRates
from toolcrib.shared.redis import RedisServer
from toolcrib.shared.results import RedisResults

__all__ = ["RedisCounters", "RedisRates", "RedisResults", "RedisServer"]
