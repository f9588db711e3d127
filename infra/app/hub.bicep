// The event hub: namespace without keys, the hub, Capture.

@description('Name of the namespace.')
param name string

@description('Region and tags of the environment.')
param common { location: string, tags: { *: string } }

@description('Choices for each resource that holds data: zones, logs in the workspace, a lock against deletion.')
param keeping { zoneRedundant: bool, workspaceId: string, diagnosticLogs: 'none' | 'essential' | 'all', locked: bool }

@description('Name of the event hub.')
param hubName string

@description('Sizes and Capture, as main.bicep describes them.')
param sizes {
  tier: 'Standard' | 'Premium'
  partitionCount: int
  retentionHours: int
  throughputUnits: int
  maximumThroughputUnits: int
  processingUnits: int
  captureEnabled: bool
}

@description('Place of Capture in the lake, for replays after the retention. Its identity needs its role there before the hub is created.')
param capture { accountId: string, container: string, identityId: string }

@description('False allows access through private endpoints only.')
param publicAccess bool

var inflates = sizes.tier == 'Standard' && sizes.maximumThroughputUnits > sizes.throughputUnits

resource namespace 'Microsoft.EventHub/namespaces@2024-01-01' = {
  name: name
  location: common.location
  tags: common.tags
  sku: { name: sizes.tier, tier: sizes.tier, capacity: sizes.tier == 'Premium' ? sizes.processingUnits : sizes.throughputUnits }
  identity: { type: 'UserAssigned', userAssignedIdentities: { '${capture.identityId}': {} } }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    isAutoInflateEnabled: inflates
    maximumThroughputUnits: inflates ? sizes.maximumThroughputUnits : 0
    publicNetworkAccess: publicAccess ? 'Enabled' : 'Disabled'
    zoneRedundant: keeping.zoneRedundant ? true : null // where a region has zones, Azure uses them anyway
  }
}

resource hub 'Microsoft.EventHub/namespaces/eventhubs@2024-01-01' = {
  parent: namespace
  name: hubName
  properties: {
    partitionCount: sizes.partitionCount
    retentionDescription: { cleanupPolicy: 'Delete', retentionTimeInHours: sizes.retentionHours }
    captureDescription: {
      enabled: sizes.captureEnabled // without the object, a Capture that once was on would stay on
      encoding: 'Avro' // AvroDeflate is deprecated
      intervalInSeconds: 300
      sizeLimitInBytes: 314572800
      skipEmptyArchives: true
      destination: {
        name: 'EventHubArchive.AzureBlockBlob'
        identity: { type: 'UserAssigned', userAssignedIdentity: capture.identityId }
        properties: {
          storageAccountResourceId: capture.accountId
          blobContainer: capture.container
          archiveNameFormat: '{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}'
        }
      }
    }
  }
}

// Failures of Capture, growth of the namespace, changes of its resources, and counts of errors: a few lines a day.
resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (keeping.diagnosticLogs != 'none') {
  name: 'to-workspace'
  scope: namespace
  properties: {
    workspaceId: keeping.workspaceId
    logAnalyticsDestinationType: 'Dedicated' // one table a category
    logs: keeping.diagnosticLogs == 'all'
      ? [{ categoryGroup: 'allLogs', enabled: true }]
      : map(['ArchiveLogs', 'AutoScaleLogs', 'DiagnosticErrorLogs', 'OperationalLogs'], category => { category: category, enabled: true })
  }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (keeping.locked) {
  name: 'keep'
  scope: namespace
  properties: { level: 'CanNotDelete', notes: 'It holds the only copy of events that are not committed yet.' }
}

@description('Resource id of the namespace.')
output resourceId string = namespace.id
