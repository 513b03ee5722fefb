"""Files that a verb will write: refused before the work that leads to them."""

from vitrail.verbs.output import output_path as output_path
