#!/bin/sh
# Python sources name nothing that is not there, import nothing in vain, and so on ([tool.ruff.lint] in pyproject.toml).
#   lint.sh SOURCE_DIR
set -eu
ruff=$1/.venv/bin/ruff
[ -x "$ruff" ] || {
  echo "skipped: no ruff in .venv"
  exit 77
}
cd "$1"
exec "$ruff" check --no-cache --output-format concise .
