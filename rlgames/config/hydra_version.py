"""Where Hydra 1.3 and 1.4 differ: arguments that one of them needs and the other does not know."""

from __future__ import annotations

from typing import Any

import hydra

IS_1_3 = hydra.__version__.startswith("1.3.")

VERSION_BASE: dict[str, Any] = {"version_base": "1.3"} if IS_1_3 else {}
"""For hydra.main and initialize: the rules of Hydra 1.3, which later versions follow by default."""

REPLACE: dict[str, Any] = {} if IS_1_3 else {"replace": True}
"""For ConfigStore.store: a name that is stored again replaces the first."""
