// One storage account that only Entra identities can use: no shared keys, no SAS signed by them, no anonymous blobs.

@description('Name of the account: lower-case letters and digits, unique in Azure.')
@minLength(3)
@maxLength(24)
param name string

@description('Azure region.')
@minLength(2)
@maxLength(40)
param location string

@description('Tags of the environment.')
param tags { *: string }

@description('True stores each blob in three zones of the region. Azure does not change this on an existing account by a template.')
param zoneRedundant bool

@description('True makes a data lake (hierarchical namespace). The host cannot store its state in such an account.')
param isLake bool = false

@description('Blob containers to create.')
@minLength(1)
@maxLength(10)
param containers string[]

@description('Public: requests from any network, which still need a token. TrustedServices: Azure services that sign in by identity, as Capture does, and private endpoints. Private: private endpoints only.')
@allowed([
  'Public'
  'TrustedServices'
  'Private'
])
param access string = 'Public'

@description('Logs of the service that the workspace stores: none, essential (rare and cheap), or all.')
@allowed([
  'none'
  'essential'
  'all'
])
param diagnosticLogs string

@description('Resource id of the workspace that stores these logs.')
@minLength(10)
@maxLength(400)
param workspaceId string

@description('True refuses every deletion of the account until the lock is deleted.')
param locked bool

resource account 'Microsoft.Storage/storageAccounts@2024-01-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: { name: zoneRedundant ? 'Standard_ZRS' : 'Standard_LRS' }
  properties: {
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    defaultToOAuthAuthentication: true
    isHnsEnabled: isLake
    minimumTlsVersion: 'TLS1_2'
    publicNetworkAccess: access == 'Private' ? 'Disabled' : 'Enabled'
    supportsHttpsTrafficOnly: true
    networkAcls: {
      bypass: access == 'TrustedServices' ? 'AzureServices' : 'None'
      defaultAction: access == 'Public' ? 'Allow' : 'Deny'
    }
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2024-01-01' = {
  parent: account
  name: 'default'
  properties: {
    deleteRetentionPolicy: { enabled: true, days: 7 }
  }
}

resource container 'Microsoft.Storage/storageAccounts/blobServices/containers@2024-01-01' = [
  for each in containers: {
    parent: blobs
    name: each
    properties: { publicAccess: 'None' }
  }
]

// Deletions only: the host renews leases and writes checkpoints all the time, a gigabyte of lines a day.
resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (diagnosticLogs != 'none') {
  name: 'to-workspace'
  scope: blobs
  properties: {
    workspaceId: workspaceId
    logs: diagnosticLogs == 'all'
      ? [{ categoryGroup: 'allLogs', enabled: true }]
      : map(['StorageDelete'], category => { category: category, enabled: true })
  }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (locked) {
  name: 'keep'
  scope: account
  properties: { level: 'CanNotDelete', notes: 'It holds captured events, or the state of the host.' }
}

@description('Name of the account.')
output name string = account.name

@description('Resource id of the account.')
output resourceId string = account.id

@description('Address of blobs.')
output blobEndpoint string = account.properties.primaryEndpoints.blob

@description('Address of queues.')
output queueEndpoint string = account.properties.primaryEndpoints.queue

@description('Address of tables.')
output tableEndpoint string = account.properties.primaryEndpoints.table

@description('Address of the lake (dfs).')
output lakeEndpoint string = account.properties.primaryEndpoints.dfs
