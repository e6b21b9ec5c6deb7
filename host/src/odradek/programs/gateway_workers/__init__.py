"""Several processes of one gateway on the same ports, and the parent that runs them."""
