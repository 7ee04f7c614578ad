#!/bin/bash
# y01_soak.sh -- half a minute of `make soak`: everything dies, stops, fills up and jumps under
# load, and nothing that was acknowledged is lost.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export ANVIL_BUILD=${ANVIL_BUILD:-$root/build/asan}
exec "$root/scripts/soak.sh" build/asan "${SOAK_SECONDS:-25}" "${SOAK_SEED:-1}" 2000
