"""Where the bytes of blobs lie: in files or in a bucket."""
