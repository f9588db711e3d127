// Hubledger in its own resource group: storage, event hub, database, function app, telemetry, and optionally Spark and a
// virtual network. This file only wires the modules; each file of app/ is one concern. No resource here has a key:
// that of an IoT Hub's built-in endpoint, which takes no identity, is a reference to Key Vault.
targetScope = 'subscription'

@description('Name of the environment: part of the name of the group and, as a hash, of the names of its resources.')
@minLength(1)
@maxLength(64)
param environmentName string

// The regions of Azure's own azd templates for Flex Consumption. docs/deploy.md says how to renew the list.
@description('Azure region of all resources: one that has Flex Consumption.')
@metadata({ azd: { type: 'location' } })
@allowed([
  'australiaeast'
  'australiasoutheast'
  'brazilsouth'
  'canadacentral'
  'centralindia'
  'centralus'
  'eastasia'
  'eastus'
  'eastus2'
  'francecentral'
  'germanywestcentral'
  'italynorth'
  'japaneast'
  'koreacentral'
  'northcentralus'
  'northeurope'
  'norwayeast'
  'southafricanorth'
  'southcentralus'
  'southeastasia'
  'southindia'
  'spaincentral'
  'swedencentral'
  'uaenorth'
  'uksouth'
  'ukwest'
  'westcentralus'
  'westeurope'
  'westus'
  'westus2'
  'westus3'
])
param location string

@description('Defaults of the sizes: standard, or dev for an environment in which nobody waits and nobody is woken (docs/deploy.md).')
param profile 'standard' | 'dev' = 'standard'

@description('Object id of the deployer, a person or a pipeline.')
@maxLength(100)
param principalId string = deployer().objectId

@description('Kind of the deployer.')
param principalType 'User' | 'Group' | 'ServicePrincipal' = 'User'

@description('Object id of the group or user, or application id of the service principal, that administers the database; empty for the deployer, unless it is a service principal.')
@maxLength(100)
param sqlAdministratorId string = ''

@description('Kind of sqlAdministratorId.')
param sqlAdministratorType 'User' | 'Group' | 'ServicePrincipal' = 'Group'

@description('Resource id of an existing Event Hubs namespace; empty for one of our own. With it, consumer groups and roles on the hub are all that is made there.')
@maxLength(400)
param eventHubNamespaceId string = ''

@description('Resource id of an existing IoT Hub, whose built-in endpoint is read in place of an event hub; empty for none. Consumer groups are all that is made there.')
@maxLength(400)
param iotHubId string = ''

@description('Resource id of the secret of Key Vault with the connection string of that endpoint, which takes no identity. The app may read this secret.')
@maxLength(400)
param eventHubConnectionId string = ''

@description('Name of the hub in that namespace, or Event Hubs-compatible name of that IoT Hub; without one it is empty, or the name of our own hub.')
@maxLength(256)
param eventHubName string = ''

@description('Existing consumer group of that hub for the trigger, which no other reader may use; empty to have one made.')
@maxLength(50)
param triggerGroup string = ''

@description('Existing consumer group of that hub for the reader of gaps and replays; empty to have one made.')
@maxLength(50)
param readerGroup string = ''

@description('Resource id of an existing Azure SQL server; empty for one of our own. Nothing on it is made or changed by this file.')
@maxLength(400)
param sqlServerId string = ''

@description('Name of the database on that server; the schema hubledger is made in it.')
@maxLength(128)
param sqlDatabase string = ''

@description('Tier of the event hub; docs/capacity.md says when Standard is too small.')
param hubTier 'Standard' | 'Premium' = 'Standard'

@description('Number of partitions of the hub: it limits the instances of the trigger and cannot change later in Standard.')
@minValue(1)
@maxValue(1024)
param partitionCount int = 16

@description('Hours for which the hub retains events; 168 at most in Standard.')
@minValue(1)
@maxValue(2160)
param retentionHours int = 168

@description('Initial throughput units of Standard, each for 1,000 events/s or 1 MB/s in.')
@minValue(1)
@maxValue(40)
param throughputUnits int = 1

@description('Throughput units up to which a Standard namespace grows by itself. Warning: it never shrinks by itself, and each unit is billed, with Capture a second time.')
@minValue(1)
@maxValue(40)
param maximumThroughputUnits int = 2

@description('Processing units of Premium, each for 5 to 10 MB/s in.')
param processingUnits 1 | 2 | 4 | 6 | 8 | 10 | 12 | 16 = 1

@description('True stores every event in the lake.')
param captureEnabled bool = profile == 'standard'

@description('Serverless for a changing load, provisioned for a steady one and for Standard.')
param sqlCompute 'serverless' | 'provisioned' = profile == 'dev' ? 'provisioned' : 'serverless'

@description('Service tier of the database. Standard is its smallest size, S0: it has no cores to choose.')
param sqlTier 'Standard' | 'GeneralPurpose' | 'BusinessCritical' | 'Hyperscale' = profile == 'dev' ? 'Standard' : 'GeneralPurpose'

@description('Virtual cores of the database; docs/capacity.md computes them. One core exists in serverless only, 128 in provisioned only.')
param sqlVCores 1 | 2 | 4 | 6 | 8 | 10 | 12 | 14 | 16 | 18 | 20 | 24 | 32 | 40 | 80 | 128 = 2

@description('Largest size of the database in GiB.')
@minValue(1)
@maxValue(4096)
param sqlMaxSizeGiB int = profile == 'dev' ? 250 : 256

@description('Minutes without a session after which a serverless database pauses, 15 or more; -1 for never.')
@minValue(-1)
@maxValue(10080)
param sqlAutoPauseMinutes int = -1

@description('True sends sign-ins to the database and changes of its rights to the workspace.')
param sqlAuditing bool = false

@description('Place of the backups of the database.')
param sqlBackupRedundancy 'Local' | 'Zone' | 'Geo' = 'Local'

@description('True spreads hub, database, storage and app over the zones of the region. Choose before the first provisioning.')
param zoneRedundant bool = false

@description('True refuses the deletion of hub, database and storage until their locks are deleted.')
param deleteLocks bool = false

@description('Logs of hub, database and storage that the workspace stores. Essential ones are rare; all of them can reach the daily limit of the workspace.')
param diagnosticLogs 'none' | 'essential' | 'all' = 'essential'

@description('Roles of the deployer on the hub. The smoke test after a deployment sends one event; a receiver sees the data of residents.')
param developerRoles 'none' | 'send' | 'sendAndReceive' = 'send'

@description('Names of your own in place of those by convention, by the keys of conventionalNames below.')
param resourceNames { *: string } = {}

@description('Python version of the app.')
param pythonVersion '3.11' | '3.12' | '3.13' | '3.14' = '3.13'

@description('Room of the app: the package of its transform, e.g. apps.orders.')
@minLength(1)
@maxLength(200)
param transform string = 'examples.home_security'

@description('Settings of the app for this environment; they override infra/settings.json and the wired settings. For a secret, name a reference to Key Vault.')
@secure() // the history of deployments shows no secure parameter
param appSettings { *: string } = {}

@description('Memory of an instance in MB.')
param instanceMemoryMB 512 | 2048 | 4096 = 2048

@description('Limit of instances of the app; the trigger has at most one per partition.')
@minValue(1)
@maxValue(1000)
param maximumInstances int = 40

@description('Instances of the trigger that are always ready.')
@minValue(0)
@maxValue(32)
param ingestAlwaysReady int = profile == 'dev' ? 0 : 1

@description('Instances for HTTP that are always ready.')
@minValue(0)
@maxValue(32)
param httpAlwaysReady int = 0

@description('Instances for Durable Functions that are always ready: they start retries and replays.')
@minValue(0)
@maxValue(32)
param durableAlwaysReady int = profile == 'dev' ? 0 : 1

@description('Recreate restarts all instances at once on an update. RollingUpdate lets running work end first, and for some minutes both versions run.')
param updateStrategy 'Recreate' | 'RollingUpdate' = 'Recreate'

@description('Image of the worker that ingests in place of the trigger (docs/scale-out.md); empty for the trigger.')
@maxLength(300)
param workerImage string = ''

@description('Resource id of the Azure registry that holds the image; empty for a public image.')
@maxLength(400)
param workerRegistryId string = ''

@description('Replicas of the worker that always run.')
@minValue(1)
@maxValue(100)
param workerReplicas int = 1

@description('Limit of replicas of the worker; there are never more than partitions.')
@minValue(1)
@maxValue(1000)
param workerMaximumReplicas int = 4

@description('Engine of the aggregation.')
param sparkEngine 'none' | 'synapse' | 'databricks' = 'none'

@description('With true, the lake also has the rows that aggregates read. Each of their tables has one more Spark job.')
param lakeRows bool = false

@description('Size of a node of the Synapse pool.')
param sparkNodeSize 'Small' | 'Medium' | 'Large' = 'Small'

@description('Limit of nodes of the Synapse pool.')
@minValue(3)
@maxValue(200)
param sparkMaximumNodes int = 3

@description('True closes storage, hub and database to all networks but that of the app, by private endpoints. The app itself keeps its public address.')
param vnetEnabled bool = false

@description('Address space of the virtual network: a range of /8 to /24, of which the subnets take the first 192 addresses.')
@maxLength(100)
param vnetAddressPrefix string = '10.0.0.0/24'

@description('Client id of the app registration that people sign in to; empty for no sign-in (docs/deploy.md).')
@maxLength(100)
param signInClientId string = ''

@description('Addresses that get a mail when an alert fires, separated by commas; empty for none.')
@maxLength(1000)
param alertEmails string = ''

@description('Addresses of webhooks that get each alert in the common alert schema, separated by commas; empty for none. Who may read the action group sees them.')
@maxLength(4000)
param alertWebhooks string = ''

@description('True once the app was deployed: before that, its silence is no alert. The hook after the deployment sets it.')
param appDeployed bool = false

@description('True makes the alerts of docs/alerts.md.')
param alertsEnabled bool = profile == 'standard'

@description('Age in seconds of the oldest event that is not accounted for; an alert fires above it.')
@minValue(1)
@maxValue(604800)
param alertLagSeconds int = 300

@description('Age in seconds of the oldest commit that waits for the aggregation above which an alert fires.')
@minValue(60)
@maxValue(604800)
param alertAggregationLagSeconds int = 3600

@description('Number of open letters above which an alert fires.')
@minValue(0)
@maxValue(100000000)
param alertOpenLetters int = 1000

@description('Share of the retention, in percent, that an open letter may use up before an alert fires.')
@minValue(1)
@maxValue(100)
param alertRetentionPercent int = 50

@description('Hours before the hub forgets an event that nothing else has stored, from which on an alert fires.')
@minValue(1)
@maxValue(168)
param alertLossHours int = 12

@description('Days for which logs are stored.')
@minValue(30)
@maxValue(730)
param logRetentionDays int = 30

@description('Gigabytes of logs a day after which the workspace takes in no more; an alert fires at 80 %. -1 for no limit. python -m tools.capacity computes the volume.')
@minValue(-1)
@maxValue(1000)
param logDailyGigabytes int = profile == 'dev' ? 1 : 5

var token = toLower(uniqueString(subscription().id, environmentName, location))
var common = { location: checked.location, tags: { 'azd-env-name': environmentName } }
var keeping = {
  zoneRedundant: zoneRedundant
  workspaceId: monitoring.outputs.workspaceId
  diagnosticLogs: diagnosticLogs
  locked: deleteLocks
}
var deployerSid = principalType == 'ServicePrincipal' ? '' : principalId // that of a service principal is its application id
var readsIotHub = !empty(iotHubId)
var ownHub = empty(eventHubNamespaceId) && !readsIotHub
var ownServer = empty(sqlServerId)
var ownHubName = 'telemetry'
var ownGroup = '/subscriptions/${subscription().subscriptionId}/resourceGroups/${resourceName.resourceGroup}'
var hubPlace = split(ownHub ? ownGroup : readsIotHub ? checked.iotHubId : checked.hubNamespaceId, '/') // of our group where there is none: an id must split
var connectionPlace = split(readsIotHub ? checked.hubConnectionId : '${ownGroup}/providers/Microsoft.KeyVault/vaults/none/secrets/none', '/')
var registryPlace = split(checked.registryId, '/')
var groupsOfOthers = concat(ownHub ? [] : [hubPlace[4]], readsIotHub ? [connectionPlace[4]] : [], empty(workerRegistryId) ? [] : [registryPlace[4]])
var alertPrefix = 'ar-${token}-'
var captureContainer = 'capture'
var deploymentContainer = 'deployments'
var sparkContainer = 'spark'
var sparkFolder = 'abfss://${sparkContainer}@${lake.outputs.name}.dfs.${environment().suffixes.storage}'
var blobZone = 'privatelink.blob.${environment().suffixes.storage}'
var queueZone = 'privatelink.queue.${environment().suffixes.storage}'
var tableZone = 'privatelink.table.${environment().suffixes.storage}'
var lakeZone = 'privatelink.dfs.${environment().suffixes.storage}'
var hubZone = 'privatelink.servicebus.windows.net'
var sqlZone = 'privatelink${environment().suffixes.sqlServerHostname}'

// azd puts texts into parameters, so lists arrive as one text.
var emails = filter(map(split(alertEmails, ','), email => trim(email)), email => !empty(email))
var wrongEmails = filter(
  emails,
  email => length(split(email, '@')) != 2 || startsWith(email, '@') || endsWith(email, '@') || contains(email, ' ')
)
var webhooks = filter(map(split(alertWebhooks, ','), address => trim(address)), address => !empty(address))
var wrongWebhooks = filter(
  webhooks,
  address => !startsWith(address, 'https://') || length(address) <= 8 || contains(address, ' ')
)

// The limits of Azure's page "Naming rules and restrictions". No expression here fails by itself: a wrong value gets a sentence.
var small = 'abcdefghijklmnopqrstuvwxyz0123456789'
var letters = '${small}${toUpper('abcdefghijklmnopqrstuvwxyz')}'
var shapes = { // `signs` are all that there may be, and empty for any
  account: { signs: small, never: '', notFirst: '', notLast: '', said: 'small letters or digits' }
  host: { signs: '${small}-', never: '', notFirst: '-', notLast: '-', said: 'small letters, digits or inner hyphens' }
  smallApp: { signs: '${small}-', never: '', notFirst: '-0123456789', notLast: '-', said: 'small letters, digits or inner hyphens, and begin with a letter' }
  app: { signs: '${letters}-', never: '', notFirst: '-', notLast: '-', said: 'letters, digits or inner hyphens' }
  namespace: { signs: '${letters}-', never: '', notFirst: '-0123456789', notLast: '-', said: 'letters, digits or inner hyphens, and begin with a letter' }
  identity: { signs: '${letters}-_', never: '', notFirst: '-_', notLast: '', said: 'letters, digits, - or _, and begin with a letter or a digit' }
  workspace: { signs: '${letters}-_', never: '', notFirst: '', notLast: '', said: 'letters, digits, - or _' }
  network: { signs: '${letters}-_.', never: '', notFirst: '-_.', notLast: '-.', said: 'letters, digits, -, _ or ., begin with a letter or a digit, and not end with - or .' }
  hub: { signs: '${letters}-_.', never: '', notFirst: '-_.', notLast: '', said: 'letters, digits, -, _ or ., and begin with a letter or a digit' }
  consumerGroup: { signs: '${letters}-_.$', never: '', notFirst: '-_.', notLast: '', said: 'letters, digits, -, _ or ., and begin with a letter or a digit' }
  group: { signs: '', never: ' !"#$%&*+,/:;<=>?@[]^`{|}~\\\'', notFirst: '', notLast: '.', said: 'letters, digits, -, _, ., ( or ), and not end with .' }
  package: { signs: '${letters}_.', never: '', notFirst: '0123456789.', notLast: '.', said: 'letters, digits, _ or inner ., and begin with no digit' }
  free: { signs: '', never: '%&?/:<>+#\\', notFirst: '', notLast: '. ', said: 'signs without %&?/:<>+# and backslash, and not end with . or a blank' }
  database: { signs: '', never: '<>*%&:?/;{}\\', notFirst: '', notLast: '. ', said: 'signs without <>*%&:?/;{} and backslash, and not end with . or a blank' }
}
var nameLimits = {
  actionGroup: { least: 1, most: 260, shape: shapes.free }
  appIdentity: { least: 3, most: 128, shape: shapes.identity }
  applicationInsights: { least: 1, most: 260, shape: shapes.free }
  captureIdentity: { least: 3, most: 128, shape: shapes.identity }
  containerApp: { least: 2, most: 32, shape: shapes.smallApp }
  containerAppsEnvironment: { least: 2, most: 60, shape: shapes.app }
  databricksWorkspace: { least: 3, most: 64, shape: shapes.workspace }
  eventHubNamespace: { least: 6, most: 50, shape: shapes.namespace }
  functionApp: { least: 2, most: 60, shape: shapes.app }
  functionPlan: { least: 1, most: 60, shape: shapes.app }
  hostStorage: { least: 3, most: 24, shape: shapes.account }
  lake: { least: 3, most: 24, shape: shapes.account }
  logAnalyticsWorkspace: { least: 4, most: 63, shape: shapes.app }
  resourceGroup: { least: 1, most: 90, shape: shapes.group }
  sqlServer: { least: 1, most: 63, shape: shapes.host }
  synapseWorkspace: { least: 1, most: 50, shape: shapes.host }
  virtualNetwork: { least: 2, most: 64, shape: shapes.network }
}
var texts = concat(
  map(
    filter(items(chosenNames), each => contains(objectKeys(nameLimits), each.key)),
    each => {
      name: each.key == 'resourceGroup' && !contains(resourceNames, each.key) ? 'AZURE_ENV_NAME' : 'resourceNames.${each.key}'
      text: each.value
      limits: nameLimits[each.key]
    }
  ),
  empty(eventHubName) ? [] : [{ name: 'EVENTHUB_NAME', text: eventHubName, limits: { least: 1, most: 256, shape: shapes.hub } }],
  empty(triggerGroup) ? [] : [{ name: 'TRIGGER_GROUP', text: triggerGroup, limits: { least: 1, most: 50, shape: shapes.consumerGroup } }],
  empty(readerGroup) ? [] : [{ name: 'READER_GROUP', text: readerGroup, limits: { least: 1, most: 50, shape: shapes.consumerGroup } }],
  empty(eventHubConnectionId) ? [] : [{ name: 'EVENTHUB_CONNECTION_ID', text: last(split(eventHubConnectionId, '/')), limits: { least: 1, most: 127, shape: shapes.app } }],
  [{ name: 'TRANSFORM', text: transform, limits: { least: 1, most: 200, shape: shapes.package } }],
  empty(sqlDatabase) ? [] : [{ name: 'SQL_DATABASE', text: sqlDatabase, limits: { least: 1, most: 128, shape: shapes.database } }]
)
var judgedTexts = map(
  texts,
  each => {
    said: '${each.name}: "${each.text}" must have ${each.limits.least} to ${each.limits.most} ${each.limits.shape.said}'
    faults: {
      length: length(each.text) < each.limits.least || length(each.text) > each.limits.most
      first: contains(each.limits.shape.notFirst, take(each.text, 1))
      last: contains(each.limits.shape.notLast, substring(each.text, max(length(each.text) - 1, 0), min(length(each.text), 1)))
      never: !empty(filter(range(0, length(each.text)), at => contains(each.limits.shape.never, substring(each.text, at, 1))))
      signs: !empty(each.limits.shape.signs) && !empty(filter(range(0, length(each.text)), at => !contains(each.limits.shape.signs, substring(each.text, at, 1))))
    }
  }
)

// The empty parts at the end let a check look at part 8 of any id.
var ids = map(
  filter(
    [
      { name: 'EVENTHUB_NAMESPACE_ID', id: eventHubNamespaceId, kind: 'microsoft.eventhub/namespaces', said: 'a namespace: az eventhubs namespace show --resource-group GROUP --name NAME --query id; an IoT Hub is for IOT_HUB_ID' }
      { name: 'IOT_HUB_ID', id: iotHubId, kind: 'microsoft.devices/iothubs', said: 'an IoT Hub: az iot hub show --name NAME --query id' }
      { name: 'EVENTHUB_CONNECTION_ID', id: eventHubConnectionId, kind: 'microsoft.keyvault/vaults', said: 'a secret: az keyvault show --name VAULT --query id, and /secrets/NAME after it' }
      { name: 'SQL_SERVER_ID', id: sqlServerId, kind: 'microsoft.sql/servers', said: 'a server: az sql server show --resource-group GROUP --name NAME --query id' }
      { name: 'WORKER_REGISTRY_ID', id: workerRegistryId, kind: 'microsoft.containerregistry/registries', said: 'a registry: az acr show --name NAME --query id' }
    ],
    each => !empty(each.id)
  ),
  each => { name: each.name, id: each.id, kind: each.kind, said: each.said, inner: each.name == 'EVENTHUB_CONNECTION_ID' ? 'secrets' : '', parts: concat(split(each.id, '/'), ['', '', '', '', '', '', '', '', '', '']) }
)
var wrongGuids = filter(
  concat([principalId, sqlAdministratorId, signInClientId], map(ids, each => each.parts[2])),
  text => join(map(split(text, '-'), part => string(length(part))), '-') != '8-4-4-4-12' || !empty(filter(
    range(0, length(text)),
    at => !contains('0123456789abcdef-', toLower(substring(text, at, 1)))
  ))
)
var judgedIds = map(
  ids,
  each => {
    said: '${each.name}: "${each.id}" is not the resource id of ${each.said}'
    faults: {
      length: length(split(each.id, '/')) != (empty(each.inner) ? 9 : 11)
      inner: toLower(each.parts[9]) != each.inner
      empty: !empty(each.parts[0]) || empty(each.parts[4]) || empty(each.parts[8])
      subscription: contains(wrongGuids, each.parts[2])
      kind: toLower('${each.parts[1]}/${each.parts[3]}/${each.parts[5]}/${each.parts[6]}/${each.parts[7]}') != 'subscriptions/resourcegroups/providers/${each.kind}'
    }
  }
)
var guids = filter(
  [
    { name: 'principalId', text: principalId }
    { name: 'SQL_ADMINISTRATOR_ID', text: sqlAdministratorId }
    { name: 'SIGN_IN_CLIENT_ID', text: signInClientId }
  ],
  each => !empty(each.text) && contains(wrongGuids, each.text)
)

// The range of the network: four numbers and a size, whose other bits are 0.
var octets = map(range(0, 256), number => string(number))
var prefixParts = split(replace(vnetAddressPrefix, '/', '.'), '.')
var prefixAddress = first(split(vnetAddressPrefix, '/'))
var prefixIsCidr = length(split(vnetAddressPrefix, '/')) == 2 && length(split(prefixAddress, '.')) == 4 && length(prefixParts) == 5
var prefixHasForm = prefixIsCidr && empty(filter(prefixParts, part => !contains(octets, part)))
var prefixHasSize = contains(map(range(8, 17), number => string(number)), last(prefixParts))
var prefixRange = parseCidr(prefixHasForm && prefixHasSize ? vnetAddressPrefix : '10.0.0.0/24')
var prefixFits = prefixHasForm && prefixHasSize && prefixRange.network == prefixAddress
var keptOctets = concat(['0', '127'], map(range(224, 32), number => string(number)))
var prefixIsKept = contains(keptOctets, first(prefixParts)) || startsWith(prefixAddress, '169.254.') || startsWith(prefixAddress, '168.63.129.')

// The host of a registry is its name, or its name and a hash after a hyphen.
var registrySuffix = environment().suffixes.acrLoginServer
var imageHost = toLower(first(split(workerImage, '/')))
var imageRegistry = split(replace(imageHost, registrySuffix, ''), '-')
var imageHasRegistry = contains(workerImage, '/') && endsWith(imageHost, registrySuffix) && length(imageRegistry) <= 2 && !contains(last(imageRegistry), '.')
var imageIsOfRegistry = imageHasRegistry && first(imageRegistry) == toLower(last(split(workerRegistryId, '/')))

var sqlPauses = sqlCompute == 'serverless' && sqlTier == 'GeneralPurpose'
var sizesOfStandard = [1, 2, 5, 10, 20, 30, 40, 50, 100, 150, 200, 250] // in GiB, as the two below
var sizeOfCores = sqlVCores == 1 ? 512 : sqlVCores <= 4 ? 1024 : sqlVCores <= 6 ? 1536 : sqlVCores <= 10 ? 2048 : sqlVCores <= 20 ? 3072 : 4096
var alwaysReady = (empty(workerImage) ? ingestAlwaysReady : 0) + httpAlwaysReady + durableAlwaysReady

// Choices that Azure would refuse after minutes, or would not do as they say: the one check of every limit.
var refusals = concat(
  map(filter(concat(judgedTexts, judgedIds), each => contains(map(items(each.faults), one => one.value), true)), each => each.said),
  map(guids, each => '${each.name}: "${each.text}" is not an id of the form 00000000-0000-0000-0000-000000000000'),
  map(wrongEmails, email => 'ALERT_EMAILS: "${email}" is not a mail address; separate addresses with commas'),
  empty(wrongWebhooks) ? [] : ['ALERT_WEBHOOKS: an address does not begin with https:// or has a blank; separate addresses with commas'],
  empty(unknownNames) ? [] : ['resourceNames: no resource is called ${join(unknownNames, ', ')}'],
  chosenNames.hostStorage == chosenNames.lake ? ['resourceNames: hostStorage and lake are two accounts, and both are called "${chosenNames.lake}"'] : [],
  ownHub && toLower(chosenNames.appIdentity) == toLower(chosenNames.captureIdentity) ? ['resourceNames: appIdentity and captureIdentity are two identities, and both are called "${chosenNames.appIdentity}"'] : [],
  contains(chosenNames.containerApp, '--') ? ['resourceNames.containerApp: "${chosenNames.containerApp}" must not have two hyphens side by side'] : [],
  contains(chosenNames.synapseWorkspace, '-ondemand') ? ['resourceNames.synapseWorkspace: "${chosenNames.synapseWorkspace}" must not have -ondemand, which ends the names of pools of Synapse'] : [],
  empty(principalId) ? ['principalId: the deployer has no object id; azd sets AZURE_PRINCIPAL_ID'] : [],
  ownServer && empty(sqlAdministratorId) && empty(deployerSid) && !empty(principalId) ? ['SQL_ADMINISTRATOR_ID: give the application id of the service principal that deploys and ServicePrincipal for SQL_ADMINISTRATOR_TYPE, or a group'] : [],
  prefixFits && prefixIsKept ? ['vnetAddressPrefix: Azure gives "${vnetAddressPrefix}" to no network; choose a private range, such as 10.0.0.0/24'] : [],
  prefixFits ? [] : ['vnetAddressPrefix: "${vnetAddressPrefix}" is not a range of /8 to /24, such as 10.0.0.0/24'],
  ownHub && hubTier == 'Standard' && partitionCount > 32 ? ['PARTITION_COUNT: a hub of Standard has 32 partitions at most; choose fewer, or Premium for hubTier'] : [],
  ownHub && partitionCount > 100 ? ['PARTITION_COUNT: a hub has 100 partitions at most'] : [],
  ownHub && hubTier == 'Standard' && retentionHours > 168 ? ['RETENTION_HOURS: a hub of Standard retains events for 168 hours at most'] : [],
  sqlCompute == 'provisioned' && sqlTier != 'Standard' && sqlVCores == 1 ? ['sqlVCores: a provisioned database has 2 cores or more'] : [],
  sqlCompute == 'serverless' && sqlVCores == 128 ? ['sqlVCores: a serverless database has 80 cores at most'] : [],
  sqlTier == 'Hyperscale' && contains([1, 128], sqlVCores) ? ['sqlVCores: a Hyperscale database has 2 to 80 cores'] : [],
  sqlCompute == 'serverless' && contains(['BusinessCritical', 'Standard'], sqlTier) ? ['sqlTier: ${sqlTier} needs provisioned for sqlCompute'] : [],
  sqlTier == 'Standard' && !contains(sizesOfStandard, sqlMaxSizeGiB) ? ['sqlMaxSizeGiB: a database of Standard has one of the sizes ${join(map(sizesOfStandard, size => string(size)), ', ')}'] : [],
  !contains(['Standard', 'Hyperscale'], sqlTier) && sqlMaxSizeGiB > sizeOfCores ? ['sqlMaxSizeGiB: ${sqlVCores} cores have ${sizeOfCores} GiB at most'] : [],
  sqlAutoPauseMinutes >= 0 && sqlAutoPauseMinutes < 15 ? ['sqlAutoPauseMinutes: a database pauses after 15 minutes or more; -1 for never'] : [],
  sqlAutoPauseMinutes >= 15 && !sqlPauses ? ['sqlAutoPauseMinutes: only a serverless database of GeneralPurpose pauses; -1 for never'] : [],
  zoneRedundant && sqlTier == 'Standard' ? ['zoneRedundant: a database of Standard is in one zone'] : [],
  alwaysReady > maximumInstances ? ['maximumInstances: ${alwaysReady} instances are always ready, and ${maximumInstances} is their limit'] : [],
  logDailyGigabytes == 0 ? ['logDailyGigabytes: with 0 the workspace takes in no log; give 1 or more, or -1 for no limit'] : [],
  !alertsEnabled && !empty('${alertEmails}${alertWebhooks}') ? ['ALERT_EMAILS, ALERT_WEBHOOKS: this profile makes no alerts; give alertsEnabled the value true'] : [],
  vnetEnabled && sparkEngine != 'none' ? ['VNET_ENABLED: a Spark engine has no way into the virtual network; choose SPARK_ENGINE_CHOICE=none'] : [],
  !ownHub && empty(eventHubName) ? ['EVENTHUB_NAME: name the hub of ${readsIotHub ? 'IOT_HUB_ID, by its Event Hubs-compatible name' : 'EVENTHUB_NAMESPACE_ID'}'] : [],
  readsIotHub && !empty(eventHubNamespaceId) ? ['IOT_HUB_ID: EVENTHUB_NAMESPACE_ID names a hub too; choose one'] : [],
  readsIotHub && empty(eventHubConnectionId) ? ['EVENTHUB_CONNECTION_ID: name the secret with the connection string of IOT_HUB_ID'] : [],
  !readsIotHub && !empty(eventHubConnectionId) ? ['IOT_HUB_ID: name the IoT Hub of EVENTHUB_CONNECTION_ID'] : [],
  readsIotHub && developerRoles == 'sendAndReceive' ? ['developerRoles: no role lets a developer receive from IOT_HUB_ID; choose send or none'] : [],
  ownHub && !empty(eventHubName) && eventHubName != ownHubName ? ['EVENTHUB_NAMESPACE_ID: name the namespace of EVENTHUB_NAME'] : [],
  ownHub && !empty('${triggerGroup}${readerGroup}') ? ['TRIGGER_GROUP: only a hub of EVENTHUB_NAMESPACE_ID or IOT_HUB_ID has consumer groups of yours, READER_GROUP too'] : [],
  toLower(hubNames.triggerGroup) == toLower(hubNames.readerGroup) ? ['TRIGGER_GROUP, READER_GROUP: both would be "${hubNames.triggerGroup}", and the trigger admits no other reader to its group'] : [],
  !ownServer && empty(sqlDatabase) ? ['SQL_DATABASE: name the database on the server of SQL_SERVER_ID'] : [],
  ownServer && !empty(sqlDatabase) ? ['SQL_SERVER_ID: name the server of SQL_DATABASE'] : [],
  empty(workerRegistryId) || imageIsOfRegistry ? [] : ['WORKER_IMAGE: "${workerImage}" does not begin with the login server of WORKER_REGISTRY_ID']
)
// All that is made reads its names and its region here, and a part of an id only here: so nothing comes before the refusals.
var checked = empty(refusals)
  ? { location: location, names: chosenNames, hubNamespaceId: eventHubNamespaceId, iotHubId: iotHubId, hubConnectionId: eventHubConnectionId, registryId: workerRegistryId, addressPrefix: vnetAddressPrefix }
  : fail(join(refusals, '; '))

var conventionalNames = {
  actionGroup: 'ag-${token}'
  appIdentity: 'id-app-${token}'
  applicationInsights: 'appi-${token}'
  captureIdentity: 'id-capture-${token}'
  containerApp: 'ca-${token}'
  containerAppsEnvironment: 'cae-${token}'
  databricksWorkspace: 'dbw-${token}'
  eventHubNamespace: 'evhns-${token}'
  functionApp: 'func-${token}'
  functionPlan: 'plan-${token}'
  hostStorage: 'sthost${token}'
  lake: 'stlake${token}'
  logAnalyticsWorkspace: 'log-${token}'
  resourceGroup: 'rg-${environmentName}'
  sqlServer: 'sql-${token}'
  synapseWorkspace: 'synw-${token}'
  virtualNetwork: 'vnet-${token}'
}
var unknownNames = filter(objectKeys(resourceNames), key => !contains(objectKeys(conventionalNames), key))
var chosenNames = union(conventionalNames, resourceNames)
var resourceName = checked.names

// Of the hub and the database, whoever made them.
var hubNamespace = ownHub ? resourceName.eventHubNamespace : last(hubPlace)
var hubHost = '${hubNamespace}.servicebus.windows.net'
var hubNames = {
  hub: ownHub ? ownHubName : eventHubName
  triggerGroup: empty(triggerGroup) ? 'hubledger' : triggerGroup
  readerGroup: empty(readerGroup) ? 'hubledger-reader' : readerGroup
}
var serverHost = ownServer ? sql!.outputs.serverHost : '${last(split(sqlServerId, '/'))}${environment().suffixes.sqlServerHostname}'
var databaseName = ownServer ? 'hubledger' : sqlDatabase
// It holds no credentials: the app and the migrations sign in by token.
var storeConnection = 'Driver={ODBC Driver 18 for SQL Server};Server=tcp:${serverHost},1433;Database=${databaseName};Encrypt=yes'

// The host would sign in to the hub by EVENTHUB__..., so an IoT Hub has none of them.
var hubSettings = readsIotHub
  ? { EVENTHUB: '@Microsoft.KeyVault(SecretUri=https://${connectionPlace[8]}${environment().suffixes.keyvaultDns}/secrets/${last(connectionPlace)})' }
  : { EVENTHUB__fullyQualifiedNamespace: hubHost }
var wiredSettings = union(hubSettings, {
  DATABRICKS_URL: sparkEngine == 'databricks' ? spark.outputs.submitEndpoint : ''
  EVENTHUB_CONSUMER_GROUP: hubNames.triggerGroup
  EVENTHUB_NAME: hubNames.hub
  HUB_READER_CONSUMER_GROUP: hubNames.readerGroup
  HUB_RETENTION_HOURS: string(retentionHours)
  LAKE: sparkEngine == 'none' ? '' : '${sparkFolder}/lake'
  LAKE_ROWS: lakeRows ? 'true' : 'false'
  LIVY_DIALECT: sparkEngine == 'synapse' ? 'synapse' : ''
  LIVY_URL: sparkEngine == 'synapse' ? spark.outputs.submitEndpoint : ''
  SPARK_ENGINE: sparkEngine == 'synapse' ? 'livy' : sparkEngine
  SPARK_JOBS: sparkEngine == 'none' ? '' : '${sparkFolder}/jobs'
  STORE_CONNECTION: storeConnection
  TRANSFORM: transform
})
var settings = union(loadJsonContent('settings.json'), wiredSettings, appSettings)

resource group 'Microsoft.Resources/resourceGroups@2024-03-01' = {
  name: resourceName.resourceGroup
  location: checked.location
  tags: common.tags
}

module appIdentity 'app/identity.bicep' = {
  name: 'app-identity-${token}'
  scope: group
  params: { name: resourceName.appIdentity, common: common }
}

module captureIdentity 'app/identity.bicep' = if (ownHub) {
  name: 'capture-identity-${token}'
  scope: group
  params: { name: resourceName.captureIdentity, common: common }
}

module monitoring 'app/monitoring.bicep' = {
  name: 'monitoring-${token}'
  scope: group
  params: {
    workspaceName: resourceName.logAnalyticsWorkspace
    componentName: resourceName.applicationInsights
    common: common
    retentionDays: logRetentionDays
    dailyGigabytes: logDailyGigabytes
  }
}

module hostStorage 'app/storage.bicep' = {
  name: 'host-storage-${token}'
  scope: group
  params: {
    name: resourceName.hostStorage
    common: common
    keeping: keeping
    containers: [deploymentContainer]
    access: vnetEnabled ? 'Private' : 'Public'
  }
}

module lake 'app/storage.bicep' = {
  name: 'lake-${token}'
  scope: group
  params: {
    name: resourceName.lake
    common: common
    keeping: keeping
    isLake: true
    containers: [captureContainer, sparkContainer]
    access: vnetEnabled ? 'TrustedServices' : 'Public'
  }
}

module captureRoles 'app/roles.bicep' = if (ownHub) {
  name: 'capture-roles-${token}'
  scope: group
  params: {
    storageGrants: [
      {
        target: lake.outputs.name
        role: 'Storage Blob Data Contributor'
        to: { principalId: captureIdentity!.outputs.ids.principal, principalType: 'ServicePrincipal' }
        reason: 'Capture writes the events of the hub into the lake; Azure refuses to create the hub without this role.'
      }
    ]
  }
}

module hub 'app/hub.bicep' = if (ownHub) {
  name: 'hub-${token}'
  scope: group
  params: {
    name: resourceName.eventHubNamespace
    common: common
    keeping: keeping
    hubName: ownHubName
    sizes: {
      tier: hubTier
      partitionCount: partitionCount
      retentionHours: retentionHours
      throughputUnits: throughputUnits
      maximumThroughputUnits: maximumThroughputUnits
      processingUnits: processingUnits
      captureEnabled: captureEnabled
    }
    capture: { accountId: lake.outputs.resourceId, container: captureContainer, identityId: captureIdentity!.outputs.ids.resource }
    publicAccess: !vnetEnabled
  }
  dependsOn: [captureRoles]
}

// Deployments in the groups of the hub and of the secret, beside those of other environments.
module consumerGroups 'app/consumer-groups.bicep' = if (!readsIotHub) {
  name: 'hubledger-hub-${token}'
  scope: resourceGroup(hubPlace[2], hubPlace[4])
  params: {
    namespaceName: hubNamespace
    names: hubNames
    makes: { triggerGroup: empty(triggerGroup), readerGroup: empty(readerGroup) }
  }
  dependsOn: [group, hub] // the location of the group reads the refusals
}

module hubRoles 'app/roles.bicep' = if (!readsIotHub) {
  name: 'hubledger-roles-${token}'
  scope: resourceGroup(hubPlace[2], hubPlace[4])
  params: { hubGrants: hubGrants }
}

module iotHubGroups 'app/iot-hub.bicep' = if (readsIotHub) {
  name: 'hubledger-iot-hub-${token}'
  scope: resourceGroup(hubPlace[2], hubPlace[4])
  params: {
    name: last(hubPlace)
    names: hubNames
    makes: { triggerGroup: empty(triggerGroup), readerGroup: empty(readerGroup) }
  }
  dependsOn: [group]
}

module vaultRoles 'app/roles.bicep' = if (readsIotHub) {
  name: 'hubledger-vault-${token}'
  scope: resourceGroup(connectionPlace[2], connectionPlace[4])
  params: { vaultGrants: vaultGrants }
}

module sql 'app/sql.bicep' = if (ownServer) {
  name: 'sql-${token}'
  scope: group
  params: {
    name: resourceName.sqlServer
    common: common
    keeping: keeping
    databaseName: databaseName
    administrator: {
      id: empty(sqlAdministratorId) ? deployerSid : sqlAdministratorId
      type: empty(sqlAdministratorId) ? principalType : sqlAdministratorType
    }
    sizes: {
      compute: sqlCompute
      tier: sqlTier
      vCores: sqlVCores
      autoPauseMinutes: sqlAutoPauseMinutes
      maxSizeGiB: sqlMaxSizeGiB
      backupRedundancy: sqlBackupRedundancy
    }
    publicAccess: !vnetEnabled
    appSubnetId: network.outputs.appSubnetId
    workerSubnetId: empty(workerImage) ? '' : network.outputs.workerSubnetId
    admitsAzure: sparkEngine != 'none'
    auditing: sqlAuditing
  }
}

module spark 'app/spark.bicep' = {
  name: 'spark-${token}'
  scope: group
  params: {
    engine: sparkEngine
    synapseName: resourceName.synapseWorkspace
    databricksName: resourceName.databricksWorkspace
    common: common
    lake: { endpoint: lake.outputs.endpoints.dfs, id: lake.outputs.resourceId, container: sparkContainer }
    deployerPrincipalId: principalId
    nodes: { size: sparkNodeSize, maximum: sparkMaximumNodes }
  }
}

var toApp = { principalId: appIdentity.outputs.ids.principal, principalType: 'ServicePrincipal' }
var toDeployer = { principalId: principalId, principalType: principalType }
var hubGrants = concat(
  [
    {
      target: consumerGroups!.outputs.grantTarget
      role: 'Event Hubs Data Receiver'
      to: toApp
      reason: 'The trigger and the reader of gaps and replays receive events; the app sends none.'
    }
  ],
  developerRoles == 'none'
    ? []
    : [
        {
          target: consumerGroups!.outputs.grantTarget
          role: 'Event Hubs Data Sender'
          to: toDeployer
          reason: 'The deployer sends the event of the smoke test after a deployment.'
        }
      ],
  developerRoles == 'sendAndReceive'
    ? [
        {
          target: consumerGroups!.outputs.grantTarget
          role: 'Event Hubs Data Receiver'
          to: toDeployer
          reason: 'A developer runs the app on a local machine against this hub.'
        }
      ]
    : []
)

var vaultGrants = [
  {
    target: '${connectionPlace[8]}/${last(connectionPlace)}'
    role: 'Key Vault Secrets User'
    to: toApp
    reason: 'App and worker read the connection string of the built-in endpoint of the IoT Hub.'
  }
]

module roles 'app/roles.bicep' = {
  name: 'app-roles-${token}'
  scope: group
  params: {
    storageGrants: concat(
      [
        {
          target: hostStorage.outputs.name
          role: 'Storage Blob Data Owner'
          to: toApp
          reason: 'The host keeps leases, checkpoints, timer status and the deployed package in blobs; it needs Owner for leases.'
        }
        {
          target: hostStorage.outputs.name
          role: 'Storage Queue Data Contributor'
          to: toApp
          reason: 'Durable Functions keeps its control and work-item queues here.'
        }
        {
          target: hostStorage.outputs.name
          role: 'Storage Table Data Contributor'
          to: toApp
          reason: 'Durable Functions keeps instances and history here.'
        }
      ],
      sparkEngine == 'none'
        ? []
        : [
            {
              target: lake.outputs.name
              role: 'Storage Blob Data Contributor'
              to: toApp
              reason: 'The app commits the Delta tables whose files Spark writes.'
            }
          ],
      sparkEngine == 'synapse'
        ? [
            {
              target: lake.outputs.name
              role: 'Storage Blob Data Contributor'
              to: { principalId: spark.outputs.synapsePrincipalId, principalType: 'ServicePrincipal' }
              reason: 'The Synapse workspace keeps its own files in its default lake.'
            }
          ]
        : []
    )
    containerGrants: sparkEngine == 'none'
      ? []
      : [
          {
            target: '${lake.outputs.name}/default/${sparkContainer}'
            role: 'Storage Blob Data Contributor'
            to: toDeployer
            reason: 'The deployer uploads the jobs.'
          }
        ]
    telemetryGrants: [
      {
        target: monitoring.outputs.componentName
        role: 'Monitoring Metrics Publisher'
        to: toApp
        reason: 'Application Insights takes telemetry from Entra identities only.'
      }
    ]
  }
}

module network 'app/network.bicep' = {
  name: 'network-${token}'
  scope: group
  params: { name: resourceName.virtualNetwork, common: common, addressPrefix: checked.addressPrefix }
}

module endpoints 'app/endpoints.bicep' = if (vnetEnabled) {
  name: 'endpoints-${token}'
  scope: group
  params: {
    common: common
    network: { id: network.outputs.resourceId, subnetId: network.outputs.endpointSubnetId }
    zones: concat([blobZone, queueZone, tableZone, lakeZone], ownHub ? [hubZone] : [], ownServer ? [sqlZone] : [])
    targets: concat(
      [
        { name: 'pep-${token}-host-blob', resourceId: hostStorage.outputs.resourceId, service: 'blob', zone: blobZone }
        { name: 'pep-${token}-host-queue', resourceId: hostStorage.outputs.resourceId, service: 'queue', zone: queueZone }
        { name: 'pep-${token}-host-table', resourceId: hostStorage.outputs.resourceId, service: 'table', zone: tableZone }
        { name: 'pep-${token}-lake-blob', resourceId: lake.outputs.resourceId, service: 'blob', zone: blobZone }
        { name: 'pep-${token}-lake-dfs', resourceId: lake.outputs.resourceId, service: 'dfs', zone: lakeZone }
      ],
      ownHub ? [{ name: 'pep-${token}-hub', resourceId: hub!.outputs.resourceId, service: 'namespace', zone: hubZone }] : [],
      ownServer ? [{ name: 'pep-${token}-sql', resourceId: sql!.outputs.resourceId, service: 'sqlServer', zone: sqlZone }] : []
    )
  }
}

module function 'app/function.bicep' = {
  name: 'function-${token}'
  scope: group
  params: {
    name: resourceName.functionApp
    planName: resourceName.functionPlan
    common: common
    identity: appIdentity.outputs.ids
    deploymentContainer: deploymentContainer
    hostStorage: hostStorage.outputs.endpoints
    telemetryConnection: monitoring.outputs.connectionString
    settings: settings
    choices: {
      pythonVersion: pythonVersion
      instanceMemoryMB: instanceMemoryMB
      maximumInstances: maximumInstances
      ingestAlwaysReady: ingestAlwaysReady
      httpAlwaysReady: httpAlwaysReady
      durableAlwaysReady: durableAlwaysReady
      updateStrategy: updateStrategy
      zoneRedundant: zoneRedundant
    }
    ingestDisabled: !empty(workerImage)
    subnetId: network.outputs.appSubnetId
    signInClientId: signInClientId
  }
  dependsOn: [roles, hubRoles, iotHubGroups, vaultRoles] // the first start of the host fails without them
}

module worker 'app/worker.bicep' = if (!empty(workerImage)) {
  name: 'worker-${token}'
  scope: group
  params: {
    name: resourceName.containerApp
    environmentName: resourceName.containerAppsEnvironment
    common: common
    image: workerImage
    registryId: checked.registryId
    identity: appIdentity.outputs.ids
    workspaceId: monitoring.outputs.workspaceId
    settings: settings
    subnetId: network.outputs.workerSubnetId
    partitions: partitionCount
    replicas: { always: workerReplicas, maximum: workerMaximumReplicas }
  }
  dependsOn: [function] // its trigger is off before the worker takes the partitions
}

module alerts 'app/alerts.bicep' = if (alertsEnabled) {
  name: 'alerts-${token}'
  scope: group
  params: {
    prefix: alertPrefix
    watchExpected: appDeployed
    actionGroupName: resourceName.actionGroup
    common: common
    workspaceId: monitoring.outputs.workspaceId
    receivers: { emails: emails, webhooks: webhooks }
    limits: {
      lagSeconds: alertLagSeconds
      aggregationLagSeconds: alertAggregationLagSeconds
      openLetters: alertOpenLetters
      retentionHours: retentionHours
      retentionPercent: alertRetentionPercent
      lossHours: alertLossHours
      dailyGigabytes: logDailyGigabytes
    }
  }
}

@description('Name of the resource group.')
output AZURE_RESOURCE_GROUP string = group.name

@description('Name of the function app.')
output FUNCTION_APP_NAME string = resourceName.functionApp

@description('Resource id of the function app, for the hooks.')
output FUNCTION_APP_ID string = function.outputs.resourceId

@description('Address of the function app.')
output FUNCTION_APP_URI string = function.outputs.uri

@description('Resource id of the subnet of the app, for a server of somebody else that has to admit it.')
output APP_SUBNET_ID string = network.outputs.appSubnetId

@description('Name of the container app of the worker; empty when there is none.')
output WORKER_APP_NAME string = empty(workerImage) ? '' : resourceName.containerApp

@description('Resource id of the alert on silence, which the hook after the deployment turns on.')
output WATCH_ALERT_ID string = !alertsEnabled ? '' : '${group.id}/providers/Microsoft.Insights/scheduledQueryRules/${alertPrefix}watch-silent'

@description('Name of the app identity, and of its database user.')
output APP_IDENTITY_NAME string = resourceName.appIdentity

@description('Client id of the app identity: the SID of its database user.')
output APP_IDENTITY_CLIENT_ID string = appIdentity.outputs.ids.client

@description('Object id of the app identity, for its role in the Spark engine.')
output APP_IDENTITY_PRINCIPAL_ID string = appIdentity.outputs.ids.principal

@description('Resource id of the SQL server whose firewall the hooks open while they run. Empty if they need no rule: the server is yours, or it has no public endpoint.')
output FIREWALL_SERVER_ID string = ownServer && !vnetEnabled ? sql!.outputs.resourceId : ''

@description('Name of the hub.')
output EVENTHUB_NAME string = hubNames.hub

@description('Resource id of the hub or of the IoT Hub, the scope of the roles on it.')
output EVENTHUB_ID string = readsIotHub ? iotHubId : '${ownHub ? hub!.outputs.resourceId : eventHubNamespaceId}/eventhubs/${hubNames.hub}'

@description('Groups of others in which a deployment makes something, separated by commas: azd down may delete them whole.')
output GROUPS_OF_OTHERS string = join(filter(groupsOfOthers, name => toLower(name) != toLower(resourceName.resourceGroup)), ',')

@description('Blob address of the lake, where the hooks put the jobs.')
output LAKE_BLOB_ENDPOINT string = lake.outputs.endpoints.blob

@description('Container of the lake for jobs and results.')
output LAKE_CONTAINER string = sparkContainer

@description('Spark engine of this environment.')
output SPARK_ENGINE_CHOICE string = sparkEngine

@description('Name of the Synapse workspace; empty when there is none.')
output SYNAPSE_WORKSPACE string = spark.outputs.synapseName

@description('Name of the Spark pool; empty when there is none.')
output SYNAPSE_POOL string = spark.outputs.poolName

@description('Settings of the app that this file computes, as JSON. The hooks read names and addresses in them, and start the app with them once.')
output WIRED_SETTINGS string = string(wiredSettings)
