"""Tools of kind `graphql`: root fields of a GraphQL API's queries and mutations."""
