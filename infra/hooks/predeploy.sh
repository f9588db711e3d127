#!/bin/sh
# Before `azd deploy`: refuse a package that would not start, or a schema on which the code does not run.
set -eu
cd "$(dirname "$0")/../.."
exec infra/hooks/run.sh deployable
