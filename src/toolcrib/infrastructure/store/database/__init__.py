"""Databases of the SQL store: SQLite and PostgreSQL, sessions, group commits, tables and migrations.

Only the store imports it.
"""
