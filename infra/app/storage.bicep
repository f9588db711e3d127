// One storage account that only Entra identities can use: no shared keys, no SAS signed by them, no anonymous blobs.

@description('Name of the account: lower-case letters and digits, unique in Azure.')
param name string

@description('Region and tags of the environment.')
param common { location: string, tags: { *: string } }

@description('Choices for each resource that holds data: zones, logs in the workspace, a lock against deletion.')
param keeping { zoneRedundant: bool, workspaceId: string, diagnosticLogs: 'none' | 'essential' | 'all', locked: bool }

@description('True makes a data lake (hierarchical namespace). The host cannot store its state in such an account.')
param isLake bool = false

@description('Blob containers to create.')
param containers string[]

@description('Public: requests from any network, which still need a token. TrustedServices: Azure services that sign in by identity, as Capture does, and private endpoints. Private: private endpoints only.')
param access 'Public' | 'TrustedServices' | 'Private'

resource account 'Microsoft.Storage/storageAccounts@2024-01-01' = {
  name: name
  location: common.location
  tags: common.tags
  kind: 'StorageV2'
  sku: { name: keeping.zoneRedundant ? 'Standard_ZRS' : 'Standard_LRS' }
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
resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (keeping.diagnosticLogs != 'none') {
  name: 'to-workspace'
  scope: blobs
  properties: {
    workspaceId: keeping.workspaceId
    logs: keeping.diagnosticLogs == 'all'
      ? [{ categoryGroup: 'allLogs', enabled: true }]
      : map(['StorageDelete'], category => { category: category, enabled: true })
  }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (keeping.locked) {
  name: 'keep'
  scope: account
  properties: { level: 'CanNotDelete', notes: 'It holds captured events, or the state of the host.' }
}

@description('Name of the account.')
output name string = account.name

@description('Resource id of the account.')
output resourceId string = account.id

@description('Addresses of the account: of blobs, of the lake (dfs), of queues and of tables.')
output endpoints { blob: string, dfs: string, queue: string, table: string } = {
  blob: account.properties.primaryEndpoints.blob
  dfs: account.properties.primaryEndpoints.dfs
  queue: account.properties.primaryEndpoints.queue
  table: account.properties.primaryEndpoints.table
}
