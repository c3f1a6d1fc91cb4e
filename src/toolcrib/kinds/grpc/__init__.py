"""Tools of kind `grpc`: methods of gRPC services."""
