"""Storage of blobs outside a database: files or a bucket. The SQL store and the crib import it."""
