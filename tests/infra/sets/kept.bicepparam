using '../../../infra/main.bicep'

param environmentName = 'dev'
param location = 'westeurope'
param principalId = '00000000-0000-0000-0000-00000000d000'
param hubTier = 'Premium'
param sqlCompute = 'provisioned'
param sqlTier = 'BusinessCritical'
param zoneRedundant = true
param deleteLocks = true
param sqlAuditing = true
param diagnosticLogs = 'all'
param developerRoles = 'sendAndReceive'
