#!/bin/sh
# Before `azd provision`: set the deployer's address and the administrator of the database, or refuse them.
set -eu
cd "$(dirname "$0")/../.."
exec infra/hooks/run.sh preprovision
