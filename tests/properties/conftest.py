"""Let the test files of this folder import the harness beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
