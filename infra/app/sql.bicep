// The database: a server that accepts Entra identities only, and one database, serverless or provisioned.

@description('Name of the server, unique in Azure.')
@minLength(3)
@maxLength(63)
param name string

@description('Azure region.')
@minLength(2)
@maxLength(40)
param location string

@description('Tags of the environment.')
param tags { *: string }

@description('Name of the database.')
@minLength(1)
@maxLength(128)
param databaseName string

@description('Name of the administrator of the server: only a label, because the id decides.')
@minLength(1)
@maxLength(256)
param administratorName string

@description('Id of the administrator: the object id of a user or a group, the application id of a service principal.')
@minLength(36)
@maxLength(36)
param administratorId string

@description('Kind of the administrator.')
@allowed([
  'User'
  'Group'
  'ServicePrincipal'
])
param administratorType string

@description('Serverless bills the seconds of use and can pause; provisioned has one price a month. Both have the same log rate.')
@allowed([
  'serverless'
  'provisioned'
])
param compute string

@description('Service tier. Standard is S0, for trials; Business Critical commits in 1-2 ms, General Purpose in 5-7; Hyperscale logs 100 MB/s at any size.')
@allowed([
  'Standard'
  'GeneralPurpose'
  'BusinessCritical'
  'Hyperscale'
])
param tier string

@description('Virtual cores; with serverless, the limit of them. One core exists in serverless only, 128 in provisioned only.')
@allowed([
  1
  2
  4
  6
  8
  10
  12
  14
  16
  18
  20
  24
  32
  40
  80
  128
])
param vCores int

@description('Minutes without a session after which a serverless database pauses; -1 for never, because the first call after a pause takes a minute.')
@minValue(-1)
@maxValue(10080)
param autoPauseMinutes int

@description('Largest size of the data in GiB.')
@minValue(1)
@maxValue(4096)
param maxSizeGiB int

@description('Place of the backups: one data centre, the zones of the region, or also a second region.')
@allowed([
  'Local'
  'Zone'
  'Geo'
])
param backupRedundancy string

@description('True spreads the database and its backups over the zones of the region.')
param zoneRedundant bool

@description('False allows access through private endpoints only.')
param publicAccess bool

@description('Resource id of the subnet of the app, which the server admits.')
@minLength(10)
@maxLength(400)
param appSubnetId string

@description('Resource id of the subnet of the worker, which the server admits; empty without a worker.')
@maxLength(400)
param workerSubnetId string

@description('True admits the services of all of Azure too, which still need a token: the jobs of a Spark engine have no fixed address.')
param admitsAzure bool

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

@description('True refuses every deletion of the database until the lock is deleted.')
param locked bool

@description('True sends sign-ins to the database and changes of its rights to the workspace.')
param auditing bool

var prefixes = { Standard: 'S0', GeneralPurpose: 'GP', BusinessCritical: 'BC', Hyperscale: 'HS' }
var backups = zoneRedundant
  ? { Local: 'Zone', Zone: 'Zone', Geo: 'GeoZone' }
  : { Local: 'Local', Zone: 'Zone', Geo: 'Geo' }
var isServerless = compute == 'serverless'
var isS0 = tier == 'Standard'
var skuName = isS0 ? prefixes[tier] : isServerless ? '${prefixes[tier]}_S_Gen5' : '${prefixes[tier]}_Gen5'

resource server 'Microsoft.Sql/servers@2023-08-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    minimalTlsVersion: '1.2'
    publicNetworkAccess: publicAccess ? 'Enabled' : 'Disabled'
    restrictOutboundNetworkAccess: 'Enabled'
    administrators: {
      administratorType: 'ActiveDirectory'
      azureADOnlyAuthentication: true
      login: administratorName
      principalType: administratorType == 'ServicePrincipal' ? 'Application' : administratorType
      sid: administratorId
      tenantId: tenant().tenantId
    }
  }
}

resource database 'Microsoft.Sql/servers/databases@2023-08-01' = {
  parent: server
  name: databaseName
  location: location
  tags: tags
  sku: { name: skuName, tier: tier, family: isS0 ? null : 'Gen5', capacity: isS0 ? 10 : vCores } // 10 DTU
  properties: {
    collation: 'SQL_Latin1_General_CP1_CI_AS'
    maxSizeBytes: tier == 'Hyperscale' ? null : maxSizeGiB * 1073741824
    autoPauseDelay: isServerless && tier == 'GeneralPurpose' ? autoPauseMinutes : null
    minCapacity: isServerless ? (vCores <= 4 ? json('0.5') : (vCores + 7) / 8) : null // the minimum of each size
    requestedBackupStorageRedundancy: backups[backupRedundancy]
    zoneRedundant: zoneRedundant
    highAvailabilityReplicaCount: zoneRedundant && tier == 'Hyperscale' ? 1 : null // the second zone
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
resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (diagnosticLogs != 'none') {
  name: 'to-workspace'
  scope: database
  properties: {
    workspaceId: workspaceId
    logs: diagnosticLogs == 'all'
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
  properties: { workspaceId: workspaceId, logs: [{ category: 'SQLSecurityAuditEvents', enabled: true }] }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (locked) {
  name: 'keep'
  scope: database
  properties: { level: 'CanNotDelete', notes: 'It holds all rows and the ledger.' }
}

@description('Resource id of the server.')
output resourceId string = server.id

@description('Host name of the server.')
output serverHost string = server.properties.fullyQualifiedDomainName

@description('Name of the database.')
output databaseName string = database.name
