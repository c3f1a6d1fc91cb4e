"""The store in a SQL database, one module per subject."""
