import type { Migration } from '../sql/versions.js'
import { tableIn } from './statements.js'

/**
 * Returns the migration steps of the views for reports, which `migrate` applies with `reports: true`. They follow the
 * steps of `migrationsOf`, and have versions of their own.
 */
export function reportMigrationsOf(schema?: string): readonly Migration[] {
  const records = tableIn(schema, 'open_payments_records')
  const reports = Object.entries(reportsOf(records))
  return [
    {
      version: 1,
      name: 'reports',
      statements: [
        quoteColumns(records),
        ...indexes(records),
        ...reports.flatMap(([name, report]) => reportStatements(schema, name, report)),
      ],
    },
  ]
}

/** A view, and a function of the same columns at another time. */
interface Report {
  /** The columns, each with its type and its expression. */
  readonly columns: Readonly<Record<string, readonly [type: string, expression: string]>>
  readonly from: string
}

/** The time of a report in its expressions. */
const clock = ':now'
/** The lifetime of a grant without consent that is not used, which is a policy of the authorization server. */
const unused = ':unused'
const unusedDefault = `interval '30 days'`

/**
 * A view shows the state at the start of the transaction, and a role can read it without a privilege on the table. A
 * function takes the time as an argument, and PostgreSQL plans it like the view. Its caller needs the privilege to read
 * the table.
 */
function reportStatements(
  schema: string | undefined,
  name: string,
  { columns, from }: Report,
): string[] {
  const selected = Object.entries(columns).map(([column, [, text]]) => `${text} AS ${column}`)
  const body = `SELECT ${selected.join(',\n    ')}\n  ${from}`
  const types = Object.entries(columns).map(([column, [type]]) => `  ${column} ${type}`)
  const hasLifetime = body.includes(unused)
  const parameters = hasLifetime
    ? `timestamptz, unused_lifetime interval DEFAULT ${unusedDefault}`
    : 'timestamptz'
  const at = (now: string, lifetime: string) =>
    body.replaceAll(clock, `date_trunc('milliseconds', ${now})`).replaceAll(unused, lifetime)
  return [
    `CREATE VIEW ${tableIn(schema, `open_payments_${name}`)} AS\n  ${at('now()', unusedDefault)}`,
    `CREATE FUNCTION ${tableIn(schema, `open_payments_${name}_at`)}(${parameters}) RETURNS TABLE (
${types.join(',\n')}
) LANGUAGE sql STABLE AS $$
  ${at('$1', '$2')}
$$`,
  ]
}

/**
 * An index on `value` would prevent heap-only updates, because each update changes `value`. The lists of a payment
 * contain its account and the time of its creation, and do not change. A quote is in no list.
 */
function quoteColumns(records: string): string {
  return `ALTER TABLE ${records}
  ADD COLUMN IF NOT EXISTS quote_account text COLLATE "C" GENERATED ALWAYS AS (
    CASE WHEN kind = 'quote' THEN value::jsonb ->> 'walletAddress' END) STORED,
  ADD COLUMN IF NOT EXISTS quote_created_at timestamptz GENERATED ALWAYS AS (
    CASE WHEN kind = 'quote' THEN ${createdAt(`(value::jsonb ->> 'createdAt')::bigint`)} END) STORED`
}

/** The account of a payment: the name of its first list, without the namespace of the server. */
const account = 'substr(list_1, 10)'
const grantOfBudget = (id: string) => `split_part(substr(${id}, 9), '.', 1)`

function indexes(records: string): string[] {
  const accounts = [
    ['incoming', 'incoming-payment', account, createdAt('list_1_at')],
    ['outgoing', 'outgoing-payment', account, createdAt('list_1_at')],
    ['quote', 'quote', 'quote_account', 'quote_created_at'],
  ] as const
  return [
    ...accounts.flatMap(([name, kind, of, at]) => [
      `CREATE INDEX IF NOT EXISTS open_payments_report_${name}_account
  ON ${records} ((${of}), (${at}), id) WHERE kind = '${kind}'`,
      `CREATE INDEX IF NOT EXISTS open_payments_report_${name}_time
  ON ${records} ((${at})) WHERE kind = '${kind}'`,
    ]),
    `CREATE INDEX IF NOT EXISTS open_payments_report_budget_grant
  ON ${records} ((${grantOfBudget('id')})) WHERE kind = 'budget'`,
  ]
}

/** The first instant that PostgreSQL supports, in the year 4713 BC. A place in a list may be any safe integer. */
const firstInstant = -210_866_803_200_000

/** Milliseconds as an instant, in an expression that PostgreSQL allows in an index. It is exact until the year 2242. */
function createdAt(ms: string): string {
  return `CASE WHEN ${ms} >= ${firstInstant} THEN to_timestamp(${ms}::double precision / 1000) END`
}

/** Milliseconds as an instant, exactly. */
function instant(ms: string): string {
  return `to_timestamp(${ms} / 1000) + ${ms} % 1000 * interval '1 millisecond'`
}

/** The columns of an amount in the record: its value, and its asset. */
function amount(name: string, member: string): Report['columns'] {
  return {
    [`${name}_value`]: ['numeric', `(${member} ->> 'value')::numeric`],
    [`${name}_asset_code`]: ['text', `${member} ->> 'assetCode'`],
    [`${name}_asset_scale`]: ['integer', `(${member} ->> 'assetScale')::integer`],
  }
}

/** Reads each record once, into the columns of `read`. */
function recordsOf(records: string, kind: string, read: Readonly<Record<string, string>>): string {
  const members = Object.entries(read).map(([name, type]) => `"${name}" ${type}`)
  return `FROM ${records} AS stored
    CROSS JOIN LATERAL jsonb_to_record(stored.value::jsonb) AS read (${members.join(', ')})
  WHERE stored.kind = '${kind}'`
}

const server = ['text', 'left(stored.id, 8)'] as const
const ofPayment = {
  server,
  payment_id: ['text', 'stored.id'],
  account: ['text', 'substr(stored.list_1, 10)'],
  client: ['text', 'read.client'],
} as const

function reportsOf(records: string): Record<string, Report> {
  return {
    incoming_payments: incomingPayments(records),
    outgoing_payments: outgoingPayments(records),
    quotes: quotes(records),
    grants: grants(records),
    spending: spending(records),
  }
}

function incomingPayments(records: string): Report {
  return {
    columns: {
      ...ofPayment,
      status: [
        'text',
        `CASE WHEN read.completed THEN 'completed'
      WHEN read."expiryRecorded" OR ${clock} > ${instant('read."expiresAt"')} THEN 'expired'
      ELSE 'open' END`,
      ],
      incoming_value: ['numeric', `(read."incomingAmount" ->> 'value')::numeric`],
      received_value: ['numeric', 'read.received'],
      asset_code: ['text', `read.asset ->> 'assetCode'`],
      asset_scale: ['integer', `(read.asset ->> 'assetScale')::integer`],
      created_at: ['timestamptz', createdAt('stored.list_1_at')],
      updated_at: ['timestamptz', instant('read."updatedAt"')],
      expires_at: ['timestamptz', instant('read."expiresAt"')],
      metadata: ['jsonb', 'read.metadata'],
    },
    from: recordsOf(records, 'incoming-payment', {
      client: 'text',
      completed: 'boolean',
      expiryRecorded: 'boolean',
      expiresAt: 'bigint',
      updatedAt: 'bigint',
      incomingAmount: 'jsonb',
      received: 'numeric',
      asset: 'jsonb',
      metadata: 'jsonb',
    }),
  }
}

function outgoingPayments(records: string): Report {
  return {
    columns: {
      ...ofPayment,
      grant_id: ['text', 'read."grantId"'],
      item_id: ['text', 'read."itemId"'],
      quote_id: ['text', 'read."quoteId"'],
      receiver: ['text', 'read.receiver'],
      status: [
        'text',
        `CASE WHEN read.state = 'created' AND ${clock} >= ${instant('read."holdUntil"')} THEN 'failed'
      ELSE read.state END`,
      ],
      ...amount('debit', 'read."debitAmount"'),
      ...amount('receive', 'read."receiveAmount"'),
      sent_value: ['numeric', 'read.sent'],
      delivered_value: ['numeric', 'read.delivered'],
      created_at: ['timestamptz', createdAt('stored.list_1_at')],
      updated_at: ['timestamptz', instant('read."updatedAt"')],
      hold_until: ['timestamptz', instant('read."holdUntil"')],
      ended_at: ['timestamptz', instant('read."endedAt"')],
      failure: ['text', 'read.failure'],
      metadata: ['jsonb', 'read.metadata'],
    },
    from: recordsOf(records, 'outgoing-payment', {
      client: 'text',
      grantId: 'text',
      itemId: 'text',
      quoteId: 'text',
      receiver: 'text',
      state: 'text',
      debitAmount: 'jsonb',
      receiveAmount: 'jsonb',
      sent: 'numeric',
      delivered: 'numeric',
      updatedAt: 'bigint',
      holdUntil: 'bigint',
      endedAt: 'bigint',
      failure: 'text',
      metadata: 'jsonb',
    }),
  }
}

function quotes(records: string): Report {
  return {
    columns: {
      server,
      quote_id: ['text', 'stored.id'],
      account: ['text', 'stored.quote_account'],
      client: ['text', 'read.client'],
      receiver: ['text', 'read.receiver'],
      status: [
        'text',
        `CASE WHEN ${clock} >= ${instant('read."expiresAt"')} THEN 'expired' ELSE 'valid' END`,
      ],
      ...amount('debit', 'read."debitAmount"'),
      ...amount('receive', 'read."receiveAmount"'),
      created_at: ['timestamptz', 'stored.quote_created_at'],
      expires_at: ['timestamptz', instant('read."expiresAt"')],
    },
    from: recordsOf(records, 'quote', {
      client: 'text',
      receiver: 'text',
      debitAmount: 'jsonb',
      receiveAmount: 'jsonb',
      expiresAt: 'bigint',
    }),
  }
}

/** The latest of a member of the grant's tokens; NULL if none has it. */
function ofTokens(member: string): string {
  return `(SELECT max((token ->> '${member}')::bigint) FROM jsonb_array_elements(read.tokens) AS token)`
}

/** The members of a grant, as instants in milliseconds where they are instants. */
const ofGrant = {
  approved: `(read.consent ->> 'at')::bigint`,
  issued: ofTokens('issuedAt'),
  revoked: ofTokens('revokedAt'),
  tokenExpires: ofTokens('expiresAt'),
  finalized: `(read.finalized ->> 'at')::bigint`,
  asked: `(read.interaction ->> 'expiresAt')::bigint`,
  accepted: `(read.continuation ->> 'acceptedAt')::bigint`,
  client: `coalesce(read.client ->> 'walletAddress',
      'urn:ietf:params:oauth:jwk-thumbprint:sha-256:' || (read.client ->> 'thumbprint'))`,
} as const

const readGrant = {
  client: 'jsonb',
  state: 'text',
  finalized: 'jsonb',
  createdAt: 'bigint',
  requested: 'jsonb',
  granted: 'jsonb',
  endsAt: 'bigint',
  consent: 'jsonb',
  interaction: 'jsonb',
  continuation: 'jsonb',
  tokens: 'jsonb',
  issuedAt: 'bigint',
} as const

/** The end of a grant that is not revoked: LEAST ignores NULL, and is NULL if the grant does not end. */
const grantEnd = `LEAST(${instant('read."endsAt"')},
      CASE WHEN read.consent IS NULL THEN ${instant(ofGrant.tokenExpires)} + ${unused} END)`

const grantNow = `GREATEST(${clock}, ${instant(`GREATEST(read."createdAt", ${ofGrant.approved},
      read."issuedAt", ${ofGrant.issued}, ${ofGrant.revoked})`)})`

const grantStatus = `CASE WHEN read.finalized IS NOT NULL THEN read.finalized ->> 'as'
      WHEN read.state = 'pending' AND ${grantNow} >= ${instant(ofGrant.asked)} THEN 'interaction-expired'
      WHEN read.state = 'pending' THEN 'pending'
      WHEN ${grantNow} >= ${grantEnd} THEN 'ended'
      WHEN read.tokens IS NOT NULL OR read."issuedAt" IS NOT NULL THEN 'issued'
      ELSE 'approved' END`

function grants(records: string): Report {
  const latest = `GREATEST(read."createdAt", ${ofGrant.approved}, read."issuedAt", ${ofGrant.issued},
      ${ofGrant.revoked}, ${ofGrant.finalized}, ${ofGrant.accepted})`
  return {
    columns: {
      server,
      grant_id: ['text', 'stored.id'],
      client: ['text', ofGrant.client],
      status: ['text', grantStatus],
      resource_owner: ['text', `read.consent ->> 'resourceOwner'`],
      accounts: [
        'text[]',
        `ARRAY(SELECT DISTINCT item ->> 'identifier' AS identifier
      FROM jsonb_array_elements(coalesce(read.granted, read.requested)) AS item
      WHERE item ->> 'identifier' IS NOT NULL ORDER BY identifier)`,
      ],
      access: ['jsonb', 'coalesce(read.granted, read.requested)'],
      created_at: ['timestamptz', instant('read."createdAt"')],
      updated_at: ['timestamptz', instant(latest)],
      approved_at: ['timestamptz', instant(ofGrant.approved)],
      ends_at: ['timestamptz', `CASE WHEN read.finalized IS NULL THEN ${grantEnd} END`],
    },
    from: recordsOf(records, 'grant', readGrant),
  }
}

/** The budgets of windows in which a payment was created, with the limits of their items. */
function spending(records: string): Report {
  const limits = `item.value -> 'limits'`
  const limit = `coalesce(${limits} -> 'debitAmount', ${limits} -> 'receiveAmount')`
  const budget = { itemId: 'text', windowStart: 'bigint', windowEnd: 'bigint', spent: 'jsonb' }
  const counted = `CASE WHEN ${limits} ? 'debitAmount' THEN 'debit' WHEN ${limits} ? 'receiveAmount' THEN 'receive' END`
  return {
    columns: {
      server,
      grant_id: ['text', grantOfBudget('stored.id')],
      item_id: ['text', 'read."itemId"'],
      client: ['text', ofGrant.client.replaceAll('read.', 'granted.')],
      account: ['text', `item.value ->> 'identifier'`],
      limit_interval: ['text', `${limits} ->> 'interval'`],
      window_start: ['timestamptz', instant('read."windowStart"')],
      window_end: ['timestamptz', instant('read."windowEnd"')],
      is_open: [
        'boolean',
        `coalesce(${clock} >= ${instant('read."windowStart"')}
      AND ${clock} < ${instant('read."windowEnd"')}, true)`,
      ],
      limited: ['text', counted],
      ...amount('limit', limit),
      ...amount('spent_debit', `nullif(read.spent -> 'debitAmount', 'null')`),
      ...amount('spent_receive', `nullif(read.spent -> 'receiveAmount', 'null')`),
    },
    from: `FROM ${records} AS stored
    CROSS JOIN LATERAL jsonb_to_record(stored.value::jsonb) AS read (${Object.entries(budget)
      .map(([name, type]) => `"${name}" ${type}`)
      .join(', ')})
    LEFT JOIN ${records} AS grants
      ON grants.kind = 'grant' AND grants.id = ${grantOfBudget('stored.id')}
    LEFT JOIN LATERAL jsonb_to_record(grants.value::jsonb) AS granted (client jsonb, granted jsonb) ON true
    LEFT JOIN LATERAL jsonb_array_elements(granted.granted) AS item ON item.value ->> 'itemId' = read."itemId"
  WHERE stored.kind = 'budget'`,
  }
}
