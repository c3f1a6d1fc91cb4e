"""The store in memory, and a store that shadows another one."""
