"""The store in memory, and a shadow of another store for rehearsals."""
