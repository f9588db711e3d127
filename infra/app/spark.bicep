// The Spark engine of the aggregation: none, a Synapse pool, or a Databricks workspace.

@description('Spark engine. This template sets up Synapse completely; a Databricks workspace still needs the app as a service principal and access to the lake, which are set up inside it.')
@allowed([
  'none'
  'synapse'
  'databricks'
])
param engine string

@description('Name of the Synapse workspace.')
@minLength(1)
@maxLength(50)
param synapseName string

@description('Name of the Databricks workspace.')
@minLength(3)
@maxLength(64)
param databricksName string

@description('Azure region.')
@minLength(2)
@maxLength(40)
param location string

@description('Tags of the environment.')
param tags { *: string }

@description('Address of the lake (dfs).')
@minLength(10)
@maxLength(200)
param lakeEndpoint string

@description('Resource id of the lake.')
@minLength(10)
@maxLength(400)
param lakeId string

@description('Container of the lake that holds jobs and results.')
@minLength(3)
@maxLength(63)
param lakeContainer string

@description('Object id of the deployer, the first Synapse administrator: only an administrator may give the app its role in the workspace.')
@minLength(36)
@maxLength(36)
param deployerPrincipalId string

@description('Size of a node of the pool; Small has 4 cores and 32 GB.')
@allowed([
  'Small'
  'Medium'
  'Large'
])
param nodeSize string

@description('Limit of nodes of the pool, at least 3.')
@minValue(3)
@maxValue(200)
param maximumNodes int

var poolName = 'spark35'

resource synapse 'Microsoft.Synapse/workspaces@2021-06-01' = if (engine == 'synapse') {
  name: synapseName
  location: location
  tags: tags
  identity: { type: 'SystemAssigned' }
  properties: {
    azureADOnlyAuthentication: true // so there is no sqlAdministratorLogin: nobody could sign in with it
    cspWorkspaceAdminProperties: { initialWorkspaceAdminObjectId: deployerPrincipalId }
    defaultDataLakeStorage: { accountUrl: lakeEndpoint, filesystem: lakeContainer, resourceId: lakeId }
    publicNetworkAccess: 'Enabled'
  }
}

// A workspace without a firewall rule refuses every request. This one admits other Azure services, which still need a token;
// the hook that gives the app its role in the workspace makes one for its own time.
resource fromAzure 'Microsoft.Synapse/workspaces/firewallRules@2021-06-01' = if (engine == 'synapse') {
  parent: synapse
  name: 'AllowAllWindowsAzureIps'
  properties: { startIpAddress: '0.0.0.0', endIpAddress: '0.0.0.0' }
}

resource pool 'Microsoft.Synapse/workspaces/bigDataPools@2021-06-01' = if (engine == 'synapse') {
  parent: synapse
  name: poolName
  location: location
  tags: tags
  properties: {
    sparkVersion: '3.5'
    nodeSize: nodeSize
    nodeSizeFamily: 'MemoryOptimized'
    autoScale: { enabled: true, minNodeCount: 3, maxNodeCount: maximumNodes }
    autoPause: { enabled: true, delayInMinutes: 5 }
  }
}

module databricks 'br/public:avm/res/databricks/workspace:0.11.4' = if (engine == 'databricks') {
  name: 'databricks'
  params: {
    name: databricksName
    location: location
    tags: tags
    skuName: 'premium'
    disablePublicIp: true
    enableTelemetry: false
  }
}

@description('Name of the Synapse workspace; empty when there is none.')
output synapseName string = engine == 'synapse' ? synapse.name : ''

@description('Object id of the workspace itself, which reads and writes the lake; empty when there is none.')
output synapsePrincipalId string = engine == 'synapse' ? synapse!.identity.principalId : ''

@description('Name of the Spark pool; empty when there is none.')
output poolName string = engine == 'synapse' ? poolName : ''

@description('Address that takes jobs: Livy of the pool, or the Databricks workspace; empty without an engine.')
output submitEndpoint string = engine == 'synapse'
  ? 'https://${synapse.name}.dev.azuresynapse.net/livyApi/versions/2019-11-01-preview/sparkPools/${poolName}'
  : engine == 'databricks' ? 'https://${databricks!.outputs.workspaceUrl}' : ''
