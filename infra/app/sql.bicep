// The database: a server that accepts Entra identities only, and one database, serverless or provisioned.

@description('Name of the server, unique in Azure.')
param name string

@description('Region and tags of the environment.')
param common { location: string, tags: { *: string } }

@description('Choices for each resource that holds data: zones, logs in the workspace, a lock against deletion.')
param keeping { zoneRedundant: bool, workspaceId: string, diagnosticLogs: 'none' | 'essential' | 'all', locked: bool }

@description('Name of the database.')
param databaseName string

@description('Administrator of the server. The id decides: the object id of a user or a group, the application id of a service principal.')
param administrator { id: string, type: 'User' | 'Group' | 'ServicePrincipal' }

@description('Sizes, as main.bicep describes them. Business Critical commits in 1-2 ms, General Purpose in 5-7; Hyperscale logs 100 MB/s at any size.')
param sizes {
  compute: 'serverless' | 'provisioned'
  tier: 'Standard' | 'GeneralPurpose' | 'BusinessCritical' | 'Hyperscale' // Standard is S0
  vCores: int
  autoPauseMinutes: int // -1 for never, because the first call after a pause takes a minute
  maxSizeGiB: int
  backupRedundancy: 'Local' | 'Zone' | 'Geo'
}

@description('False allows access through private endpoints only.')
param publicAccess bool

@description('Resource id of the subnet of the app, which the server admits.')
param appSubnetId string

@description('Resource id of the subnet of the worker, which the server admits; empty without a worker.')
param workerSubnetId string

@description('True admits the services of all of Azure too, which still need a token: the jobs of a Spark engine have no fixed address.')
param admitsAzure bool

@description('True sends sign-ins to the database and changes of its rights to the workspace.')
param auditing bool

var prefixes = { Standard: 'S0', GeneralPurpose: 'GP', BusinessCritical: 'BC', Hyperscale: 'HS' }
var backups = keeping.zoneRedundant
  ? { Local: 'Zone', Zone: 'Zone', Geo: 'GeoZone' }
  : { Local: 'Local', Zone: 'Zone', Geo: 'Geo' }
var isServerless = sizes.compute == 'serverless'
var isS0 = sizes.tier == 'Standard'
var skuName = isS0 ? prefixes[sizes.tier] : isServerless ? '${prefixes[sizes.tier]}_S_Gen5' : '${prefixes[sizes.tier]}_Gen5'

resource server 'Microsoft.Sql/servers@2023-08-01' = {
  name: name
  location: common.location
  tags: common.tags
  properties: {
    minimalTlsVersion: '1.2'
    publicNetworkAccess: publicAccess ? 'Enabled' : 'Disabled'
    restrictOutboundNetworkAccess: 'Enabled'
    administrators: {
      administratorType: 'ActiveDirectory'
      azureADOnlyAuthentication: true
      login: 'hubledger-deployer'
      principalType: administrator.type == 'ServicePrincipal' ? 'Application' : administrator.type
      sid: administrator.id
      tenantId: tenant().tenantId
    }
  }
}

resource database 'Microsoft.Sql/servers/databases@2023-08-01' = {
  parent: server
  name: databaseName
  location: common.location
  tags: common.tags
  sku: { name: skuName, tier: sizes.tier, family: isS0 ? null : 'Gen5', capacity: isS0 ? 10 : sizes.vCores } // 10 DTU
  properties: {
    collation: 'SQL_Latin1_General_CP1_CI_AS'
    maxSizeBytes: sizes.tier == 'Hyperscale' ? null : sizes.maxSizeGiB * 1073741824
    autoPauseDelay: isServerless && sizes.tier == 'GeneralPurpose' ? sizes.autoPauseMinutes : null
    minCapacity: isServerless ? (sizes.vCores <= 4 ? json('0.5') : (sizes.vCores + 7) / 8) : null // the minimum of each size
    requestedBackupStorageRedundancy: backups[sizes.backupRedundancy]
    zoneRedundant: keeping.zoneRedundant
    highAvailabilityReplicaCount: keeping.zoneRedundant && sizes.tier == 'Hyperscale' ? 1 : null // the second zone
  }
}

resource fromApp 'Microsoft.Sql/servers/virtualNetworkRules@2023-08-01' = if (publicAccess) {
  parent: server
  name: 'app'
  properties: { virtualNetworkSubnetId: appSubnetId }
}

resource fromWorker 'Microsoft.Sql/servers/virtualNetworkRules@2023-08-01' = if (publicAccess && !empty(workerSubnetId)) {
  parent: server
  name: 'worker'
  properties: { virtualNetworkSubnetId: workerSubnetId }
  dependsOn: [fromApp] // a server takes one change of its networks at a time
}

resource fromAzure 'Microsoft.Sql/servers/firewallRules@2023-08-01' = if (publicAccess && admitsAzure) {
  parent: server
  name: 'AllowAllWindowsAzureIps'
  properties: { startIpAddress: '0.0.0.0', endIpAddress: '0.0.0.0' }
}

// Faults only. Query statistics and waits come every few minutes from each database and cost gigabytes.
resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (keeping.diagnosticLogs != 'none') {
  name: 'to-workspace'
  scope: database
  properties: {
    workspaceId: keeping.workspaceId
    logs: keeping.diagnosticLogs == 'all'
      ? [{ categoryGroup: 'allLogs', enabled: true }]
      : map(['Blocks', 'Deadlocks', 'Errors', 'Timeouts'], category => { category: category, enabled: true })
  }
}

resource audit 'Microsoft.Sql/servers/databases/auditingSettings@2023-08-01' = if (auditing) {
  parent: database
  name: 'default'
  properties: {
    state: 'Enabled'
    isAzureMonitorTargetEnabled: true
    auditActionsAndGroups: [ // not BATCH_COMPLETED_GROUP, which is a line for each statement
      'SUCCESSFUL_DATABASE_AUTHENTICATION_GROUP'
      'FAILED_DATABASE_AUTHENTICATION_GROUP'
      'DATABASE_PERMISSION_CHANGE_GROUP'
      'DATABASE_PRINCIPAL_CHANGE_GROUP'
      'DATABASE_ROLE_MEMBER_CHANGE_GROUP'
      'SCHEMA_OBJECT_PERMISSION_CHANGE_GROUP'
    ]
  }
}

resource auditLogs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (auditing) {
  name: 'audit-to-workspace'
  scope: database
  properties: { workspaceId: keeping.workspaceId, logs: [{ category: 'SQLSecurityAuditEvents', enabled: true }] }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (keeping.locked) {
  name: 'keep'
  scope: database
  properties: { level: 'CanNotDelete', notes: 'It holds all rows and the ledger.' }
}

@description('Resource id of the server.')
output resourceId string = server.id

@description('Host name of the server.')
output serverHost string = server.properties.fullyQualifiedDomainName
