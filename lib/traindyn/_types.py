"""Types that every room takes or returns, under one name."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
#: What seeds a stream of random numbers: a generator is used as it is.
RNG: TypeAlias = int | np.random.SeedSequence | np.random.Generator
