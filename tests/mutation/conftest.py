"""Puts the modules of this folder where they, and its tests, find each other."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
