#!/bin/sh
# After `azd provision`: migrate the database, let the app in, upload the jobs, set the Spark role.
set -eu
cd "$(dirname "$0")/../.."
exec infra/hooks/run.sh provisioned
