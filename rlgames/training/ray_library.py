"""Ray, imported with settings that it reads while it is imported."""

import os
import sys

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # messages about actors that died, which are replaced
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the new behavior, of which it would warn
}
"""Environment variables; those that are set already are left as they are."""

AUTH_MODE = "RAY_AUTH_MODE"
"""The variable by which a process takes part in a cluster with a token, or without one."""


_named = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
_has_token = _named or os.path.exists(os.path.expanduser("~/.ray/auth_token"))

# `ray start --head` and ray.init use a token without being told, but nobody else does. A program
# that has imported ray has chosen: what is started here must not differ from it.
if _has_token and "ray" not in sys.modules:
    SETTINGS[AUTH_MODE] = "token"

for _name, _value in SETTINGS.items():
    os.environ.setdefault(_name, _value)

import ray as ray  # noqa: E402
