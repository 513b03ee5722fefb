"""`python -m vitrail` is `vitrail`."""

import sys

from vitrail.cli.main import main

sys.exit(main())
