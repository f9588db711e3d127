// An event hub that somebody else made: two consumer groups in it are all that this file makes, and none that exists.

@description('Name of the namespace.')
@minLength(6)
@maxLength(50)
param namespaceName string

@description('Name of the hub.')
@minLength(1)
@maxLength(256)
param hubName string

@description('Consumer group of the trigger. The host reads it with an epoch, so no other reader may use it.')
@minLength(1)
@maxLength(50)
param triggerGroup string

@description('Consumer group of the reader that fetches events for gaps and replays.')
@minLength(1)
@maxLength(50)
param readerGroup string

@description('True makes the group of the trigger; false takes the one that exists.')
param makeTriggerGroup bool

@description('True makes the group of the reader; false takes the one that exists.')
param makeReaderGroup bool

resource namespace 'Microsoft.EventHub/namespaces@2024-01-01' existing = {
  name: namespaceName
}

resource hub 'Microsoft.EventHub/namespaces/eventhubs@2024-01-01' existing = {
  parent: namespace
  name: hubName
}

resource trigger 'Microsoft.EventHub/namespaces/eventhubs/consumergroups@2024-01-01' = if (makeTriggerGroup) {
  parent: hub
  name: triggerGroup
}

resource reader 'Microsoft.EventHub/namespaces/eventhubs/consumergroups@2024-01-01' = if (makeReaderGroup) {
  parent: hub
  name: readerGroup
}

@description('Host name of the namespace, for clients.')
output fullyQualifiedNamespace string = '${namespaceName}.servicebus.windows.net'

@description('Name of the hub.')
output hubName string = hubName

@description('Resource id of the hub.')
output hubId string = hub.id

@description('The hub as the target of a grant.')
output grantTarget string = '${namespaceName}/${hubName}'

@description('Consumer group of the trigger.')
output triggerGroup string = triggerGroup

@description('Consumer group of the reader.')
output readerGroup string = readerGroup
