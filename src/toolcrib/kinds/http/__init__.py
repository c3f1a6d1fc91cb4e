"""Tools of kind `http`: HTTP operations, written by hand or imported from OpenAPI."""
