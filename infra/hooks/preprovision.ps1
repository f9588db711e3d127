# Before `azd provision`: set the deployer's address and the administrator of the database, or refuse them.
& (Join-Path $PSScriptRoot 'run.ps1') -Step preprovision
exit $LASTEXITCODE
