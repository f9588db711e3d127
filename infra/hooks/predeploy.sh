#!/bin/sh
# Before `azd deploy`: refuse what would not start.
set -eu
cd "$(dirname "$0")/../.."
exec infra/hooks/run.sh deployable
