// The alerts of docs/alerts.md: each is a query over the app's log lines, and fires when the query finds a row.

@description('Prefix of the names of the rules.')
param prefix string

@description('Name of the action group.')
param actionGroupName string

@description('Region and tags of the environment.')
param common { location: string, tags: { *: string } }

@description('Resource id of the workspace that holds the log lines.')
param workspaceId string

@description('Addresses of mails and of webhooks. Without one, alerts appear only in the portal.')
param receivers { emails: string[], webhooks: string[] }

@description('False turns the alert on silence off: an app that was not deployed yet is silent.')
param watchExpected bool

@description('Limits above which an alert fires, as main.bicep describes them.')
param limits {
  lagSeconds: int
  aggregationLagSeconds: int
  openLetters: int
  retentionHours: int
  retentionPercent: int
  lossHours: int
  dailyGigabytes: int // -1 for no limit, and then no alert on it
}

var capMegabytes = limits.dailyGigabytes * 800 // 80 % of the cap: tools/capacity/telemetry.py
var letterSeconds = limits.retentionHours * 36 * limits.retentionPercent

var alerts = [
  {
    name: 'ledger-unbalanced'
    severity: 0
    description: 'The ledger does not account for every sequence number exactly once. Only a fault explains this: discard nothing, and find the partition with /api/status.'
    query: loadTextContent('../alerts/ledger-unbalanced.kql')
  }
  {
    name: 'events-absent'
    severity: 1
    description: 'The hub dropped events before the app read them. Capture may still have them.'
    query: loadTextContent('../alerts/events-absent.kql')
  }
  {
    name: 'partition-stopped'
    severity: 1
    description: 'A partition has events, but its checkpoint does not move. Look for its error in the log.'
    query: loadTextContent('../alerts/partition-stopped.kql')
  }
  {
    name: 'stop-recorded'
    severity: 0
    description: 'A partition is stopped on purpose: the hub is a different one, an outage is suspected (after its last attempt the failing events become letters), too many letters are held, or the database fails again and again. /api/status names partition, reason and time; docs/operator.md says what to do.'
    query: loadTextContent('../alerts/stop-recorded.kql')
  }
  {
    name: 'lag'
    severity: 2
    description: 'Events wait longer than the limit. docs/capacity.md says which size to raise.'
    query: replace(loadTextContent('../alerts/lag.kql'), '{lag_seconds}', string(limits.lagSeconds))
  }
  {
    name: 'letters-open'
    severity: 2
    description: 'More dead letters are open than expected. Group them by fingerprint: a faulty deployment appears as one group.'
    query: replace(loadTextContent('../alerts/letters-open.kql'), '{open_letters}', string(limits.openLetters))
  }
  {
    name: 'letter-old'
    severity: 1
    description: 'The oldest open letter nears the end of the retention; after that, the hub no longer has its event.'
    query: replace(loadTextContent('../alerts/letter-old.kql'), '{letter_seconds}', string(letterSeconds))
  }
  {
    name: 'events-expiring'
    severity: 1
    description: 'Soon the hub forgets an event that nothing else has stored: that of an open letter without a body, or of an open gap. GET /api/status has the hours in hub_forgets. Retry the letters, or find out why the gap does not heal, before that.'
    query: replace(loadTextContent('../alerts/events-expiring.kql'), '{loss_hours}', string(limits.lossHours))
  }
  {
    name: 'events-lost'
    severity: 1
    description: 'The hub no longer holds an event that nothing else has stored: that of an open letter without a body, or of an open gap. Replay it from Capture, or discard the letter.'
    query: loadTextContent('../alerts/events-lost.kql')
  }
  {
    name: 'aggregation-lag'
    severity: 2
    description: 'Commits wait for the aggregation, or tables of the lake are stale, longer than the limit: jobs fail, the engine does not answer, a person has paused it, or the lake is damaged. The page Aggregation and the fact stale say which.'
    query: replace(loadTextContent('../alerts/aggregation-lag.kql'), '{aggregation_lag_seconds}', string(limits.aggregationLagSeconds))
  }
  {
    name: 'aggregation-failed'
    severity: 2
    description: 'A job of the aggregation gave no result. The app tries again by itself; /api/aggregations/runs/{run_id} has the reason of the engine, the end of its log and a link.'
    query: loadTextContent('../alerts/aggregation-failed.kql')
  }
  {
    name: 'aggregation-quality'
    severity: 1
    description: 'A run of the aggregation read a different number of rows than the ledger says were written: rows are lost, or were added by hand. /api/aggregations/runs/{run_id} names the partitions.'
    query: loadTextContent('../alerts/aggregation-quality.kql')
  }
  {
    name: 'log-cap'
    severity: 1
    description: 'The logs of a day near the daily cap. Above it the workspace takes in none until the next day, and the other alerts are blind: find the table that grows, or raise logDailyGigabytes.'
    query: replace(loadTextContent('../alerts/log-cap.kql'), '{cap_megabytes}', string(capMegabytes))
  }
  {
    name: 'watch-silent'
    severity: 1
    description: 'The app has not reported the state of its books for a while: the app or its telemetry is down, and no other alert can fire.'
    query: loadTextContent('../alerts/watch-silent.kql')
  }
]

module actionGroup 'br/public:avm/res/insights/action-group:0.8.0' = {
  name: '${deployment().name}-action-group' // of the environment, beside those of others in the group
  params: {
    name: actionGroupName
    groupShortName: 'hubledger'
    tags: common.tags
    enableTelemetry: false
    emailReceivers: [
      for (email, index) in receivers.emails: { name: 'email-${index}', emailAddress: email, useCommonAlertSchema: true }
    ]
    webhookReceivers: [
      for (address, index) in receivers.webhooks: { name: 'webhook-${index}', serviceUri: address, useCommonAlertSchema: true }
    ]
  }
}

module rule 'br/public:avm/res/insights/scheduled-query-rule:0.6.0' = [
  for alert in alerts: {
    name: '${deployment().name}-${alert.name}'
    params: {
      name: '${prefix}${alert.name}'
      location: common.location
      tags: common.tags
      enableTelemetry: false
      enabled: alert.name != 'watch-silent' || watchExpected
      kind: 'LogAlert'
      alertDescription: '${alert.description} First steps: docs/runbook.md#${alert.name}'
      severity: alert.severity
      evaluationFrequency: 'PT5M'
      windowSize: alert.name == 'log-cap' ? 'P1D' : 'PT15M'
      autoMitigate: true
      skipQueryValidation: true // the tables do not exist before the first log line
      scopes: [workspaceId]
      actions: { actionGroupResourceIds: [actionGroup.outputs.resourceId] }
      criterias: {
        allOf: [
          {
            query: alert.query
            timeAggregation: 'Count'
            operator: 'GreaterThan'
            threshold: 0
            failingPeriods: { numberOfEvaluationPeriods: 1, minFailingPeriodsToAlert: 1 }
          }
        ]
      }
    }
  }
]
