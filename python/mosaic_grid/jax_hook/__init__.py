"""Where this package meets a running JAX: the one part of it that imports JAX."""
