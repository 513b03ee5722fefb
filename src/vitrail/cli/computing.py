"""Threads, device and ranks of a verb that computes, with its notes on stderr."""

from functools import partial

from vitrail.cli.say import say
from vitrail.verbs.computing import computing as compute

computing = partial(compute, note=say)
