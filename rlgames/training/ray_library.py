"""Ray, imported with settings that it reads while it is imported."""

import os

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # messages about actors that died, which are replaced
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the new behavior, of which it would warn
}
"""Environment variables; those that are set already are left as they are."""

for _name, _value in SETTINGS.items():
    os.environ.setdefault(_name, _value)

import ray as ray  # noqa: E402
