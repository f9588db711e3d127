#!/bin/sh
# Run a step of `python -m infra.hooks` in its own virtual environment. PYTHON names a different interpreter.
set -eu
step="$1"
venv=.azure/hooks-venv

# A name on the PATH may be a shim that starts no Python, so the script tries each name.
python=""
for each in "${PYTHON:-}" python3.12 python3.11 python3; do
    if "$each" -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' >/dev/null 2>&1; then
        python="$each"
        break
    fi
done
if [ -z "$python" ]; then
    echo "hooks: Python 3.11 or 3.12 with venv is needed; name one with PYTHON=..." >&2
    exit 1
fi
if ! ldconfig -p 2>/dev/null | grep libodbc >/dev/null && ! ls /usr/local/lib/libodbc* /opt/homebrew/lib/libodbc* >/dev/null 2>&1; then
    echo "hooks: no ODBC manager was found; if the next step fails, install unixodbc and Microsoft's ODBC Driver 18" >&2
fi
if [ ! -x "$venv/bin/python" ]; then
    "$python" -m venv "$venv"
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r infra/hooks/requirements.txt
exec "$venv/bin/python" -m infra.hooks "$step"
