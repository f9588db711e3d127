using '../../../infra/main.bicep'

param environmentName = 'dev'
param location = 'westeurope'
param principalId = '00000000-0000-0000-0000-00000000d000'
param resourceNames = { lake: '', resourceGroup: '' }
param maximumInstances = 1
