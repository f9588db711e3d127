#!/bin/sh
# Run a step of `python -m infra.hooks` in its own virtual environment. PYTHON names a different interpreter.
set -eu
step="$1"
venv=.local-run/hooks-venv # azd takes every folder in .azure for an environment of its own

# An environment without pip is one that was made half.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    # The script tries each name: a name on the PATH may be a shim that starts no Python, and the Python of Debian has no
    # ensurepip without the package python3-venv.
    python=""
    for each in "${PYTHON:-}" python3.14 python3.13 python3.12 python3.11 python3; do
        if "$each" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' >/dev/null 2>&1; then
            python="$each"
            break
        fi
    done
    if [ -z "$python" ]; then
        echo "hooks: Python 3.11 to 3.14 with venv and ensurepip is needed (Debian and Ubuntu: python3-venv); name one with PYTHON=..." >&2
        exit 1
    fi
    "$python" -m venv --clear "$venv"
fi
if ! ldconfig -p 2>/dev/null | grep libodbc >/dev/null && ! ls /usr/local/lib/libodbc* /opt/homebrew/lib/libodbc* >/dev/null 2>&1; then
    echo "hooks: no ODBC manager was found; if the next step fails, install unixodbc and Microsoft's ODBC Driver 18" >&2
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r infra/hooks/requirements.txt
exec "$venv/bin/python" -m infra.hooks "$step"
