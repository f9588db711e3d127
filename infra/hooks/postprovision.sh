#!/bin/sh
# After `azd provision`: migrate the database, admit its users, upload the jobs, assign the Spark role, write local settings.
set -eu
cd "$(dirname "$0")/../.."
exec infra/hooks/run.sh provisioned
