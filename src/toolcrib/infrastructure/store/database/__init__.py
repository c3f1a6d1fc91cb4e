"""Databases: SQLite and PostgreSQL, their sessions, group commits, tables and migrations."""
