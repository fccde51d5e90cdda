"""Trains the strongest presets of every game and writes their part of docs/results.md.

Steps as in reproduce.py: done once, as many side by side as there are cores. Usage:

    python scripts/strength.py [--out outputs/strength] [--only 2048 salvo ...] [--table]
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

from results import MISSING, Found, mean, over, references, rows
from steps import ONE, SEEDS, Step, main, measure, train

FIVE = range(5)
CASES = {
    1: "4×4, ship 4, 1 shot",
    2: "5×5, ships 4 and 2, 1 shot",
    3: "4×4, ship 2, 2 shots",
    4: "4×4, ship 4, 2 shots",
    5: "4×4, ships 4 and 2, 2 shots",
}
