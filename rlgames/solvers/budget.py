"""What every solver says when its budget does not reach the answer."""


class OutOfBudget(Exception):
    """The optimum is out of reach of the time or the memory given; the message says which."""
