"""Requests and answers of REST, where they are more than a contract."""
