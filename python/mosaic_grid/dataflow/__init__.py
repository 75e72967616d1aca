"""From IR to symbolic integers: what is known of the scalars of a program."""
