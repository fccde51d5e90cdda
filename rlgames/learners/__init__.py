"""Update a policy from finished moves."""
