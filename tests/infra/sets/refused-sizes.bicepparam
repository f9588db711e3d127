using '../../../infra/main.bicep'

param environmentName = 'dev'
param location = 'westeurope'
param principalId = '00000000-0000-0000-0000-00000000d000'
param sqlAutoPauseMinutes = 14
param sqlMaxSizeGiB = 2048
param maximumInstances = 1
param signInClientId = 'mine'
