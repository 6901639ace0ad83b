"""`python -m craftd`: how a daemon is started that no console script is on the path for."""

import sys

from craftd.cli.main import main

sys.exit(main())
