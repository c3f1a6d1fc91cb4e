"""What steps read and give: the graph, expressions' scope, arguments and errors."""
