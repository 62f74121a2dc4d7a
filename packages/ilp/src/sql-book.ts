import {
  closedPacket,
  listMax,
  mayBecome,
  owedFor,
  type PacketBook,
  type PacketKey,
  type PacketQuery,
  type PacketRow,
  type PacketState,
  pruneMax,
} from './book.js'

/** Runs a statement with a value for each `?`, and returns its rows. */
export type Sql = (
  statement: string,
  ...values: readonly (string | number)[]
) => Promise<readonly Readonly<Record<string, unknown>>[]>

/** A PostgreSQL, SQLite or MariaDB database, as a wallet of `npm create` opens it. */
export interface SqlDatabase {
  /** Runs a statement outside transactions. */
  readonly sql: Sql
  /** What follows each CREATE TABLE, so that text is compared byte for byte; for MariaDB. Default: nothing. */
  readonly tableOptions?: string
  /** Runs work in a transaction, and commits if it resolves. Work may run again after a deadlock. */
  transaction<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result>
}

/**
 * Creates the tables of `sqlBook` and `sqlSendingBook`, unless they exist: `ilp_packets`, `ilp_settlements`,
 * `ilp_peers` and `ilp_sendings`.
 *
 * @example
 * ```ts
 * import { createPacketTables, type SqlDatabase } from 'open-payments-ilp'
 *
 * const migrate = (database: SqlDatabase) => createPacketTables(database)
 * ```
 */
export async function createPacketTables({
  sql,
  tableOptions = '',
}: Pick<SqlDatabase, 'sql' | 'tableOptions'>): Promise<void> {
  const create = async () => {
    for (const table of tables) await sql(`CREATE TABLE IF NOT EXISTS ${table} ${tableOptions}`)
    for (const index of indexes) await sql(`CREATE INDEX IF NOT EXISTS ${index}`)
  }
  // If two processes create the tables at once, one fails and then finds them.
  await create().catch(create)
}

// An ILP address has at most 1,023 characters, and peers agree on short ones. Amounts are text, because the integers of
// some databases end below those of Interledger.
const tables = [
  `ilp_packets (
    peer VARCHAR(255) NOT NULL,
    direction VARCHAR(3) NOT NULL,
    packet VARCHAR(64) NOT NULL,
    amount VARCHAR(40) NOT NULL,
    state VARCHAR(10) NOT NULL,
    expires_at BIGINT NOT NULL,
    reserved_at BIGINT NOT NULL,
    payment VARCHAR(255) NOT NULL,
    fulfillment VARCHAR(64) NOT NULL,
    locks BIGINT NOT NULL,
    PRIMARY KEY (peer, direction, packet)
  )`,
  `ilp_settlements (
    peer VARCHAR(255) NOT NULL,
    settlement VARCHAR(255) NOT NULL,
    amount VARCHAR(40) NOT NULL,
    PRIMARY KEY (peer, settlement)
  )`,
  `ilp_sendings (
    payment VARCHAR(255) NOT NULL PRIMARY KEY,
    writer VARCHAR(64) NOT NULL,
    doubtful INTEGER NOT NULL,
    record TEXT NOT NULL
  )`,
  `ilp_peers (
    peer VARCHAR(255) NOT NULL PRIMARY KEY,
    balance VARCHAR(40) NOT NULL,
    locks BIGINT NOT NULL
  )`,
]

const indexes = [
  'ilp_packets_open ON ilp_packets (state, expires_at)',
  'ilp_packets_payment ON ilp_packets (payment)',
  'ilp_sendings_doubtful ON ilp_sendings (doubtful, payment)',
]

/**
 * A book in three tables of the database that has the records of the library. Each call is one transaction.
 *
 * @example
 * ```ts
 * import { createPacketTables, type SqlDatabase, sqlBook } from 'open-payments-ilp'
 *
 * async function openBook(database: SqlDatabase) {
 *   await createPacketTables(database)
 *   return sqlBook(database)
 * }
 * ```
 */
export function sqlBook({ sql, transaction }: SqlDatabase): PacketBook<Sql> {
  const known = new Set<string>()

  /** Runs work in a transaction that no other one of the peer overlaps. */
  async function withPeer<Result>(
    peer: string,
    work: (sql: Sql, balance: bigint) => Promise<Result>,
  ): Promise<Result> {
    if (!known.has(peer)) await addPeer(sql, peer)
    known.add(peer)
    return transaction(async (inside) => {
      await inside('UPDATE ilp_peers SET locks = locks + 1 WHERE peer = ?', peer)
      return work(inside, (await balanceOf(inside, peer)) ?? 0n)
    })
  }

  return {
    reserve: (packet, balanceMax) =>
      withPeer(packet.peer, async (inside, balance) => {
        const known = await rowOf(inside, packet)
        if (known !== undefined) return { ok: true, row: known, isNew: false }
        const owed = balance + owedFor(packet, 'reserved')
        if (balanceMax !== undefined && owed > balanceMax) return { ok: false }
        const row = { ...packet, state: 'reserved' } as const
        await insert(inside, row)
        await setBalance(inside, packet.peer, owed)
        return { ok: true, row, isNew: true }
      }),
    decide(key, decision, { fulfillment = '', by, inside } = {}) {
      if (inside !== undefined) return credit(inside, key)
      return withPeer(key.peer, async (within, balance) => {
        await within(`UPDATE ilp_packets SET locks = locks + 1 WHERE ${byKey}`, ...valuesOf(key))
        const row = await rowOf(within, key)
        if (row === undefined || !mayBecome(row, decision, by)) return row?.state
        await within(
          `UPDATE ilp_packets SET state = ?, fulfillment = ? WHERE ${byKey}`,
          decision,
          fulfillment || (row.fulfillment ?? ''),
          ...valuesOf(key),
        )
        const change = owedFor(row, decision) - owedFor(row, row.state)
        if (change !== 0n) await setBalance(within, key.peer, balance + change)
        return decision
      })
    },
    get: (key) => rowOf(sql, key),
    close: (key, now) =>
      withPeer(key.peer, async (inside) => {
        const known = await rowOf(inside, key)
        if (known !== undefined) return known
        const closed = closedPacket(key, now)
        await insert(inside, closed)
        return closed
      }),
    settle: (peer, { id, amount }) =>
      withPeer(peer, async (inside, balance) => {
        const [known] = await inside(
          'SELECT amount FROM ilp_settlements WHERE peer = ? AND settlement = ?',
          peer,
          id,
        )
        if (known !== undefined) return BigInt(`${known['amount']}`) === amount
        await inside('INSERT INTO ilp_settlements VALUES (?, ?, ?)', peer, id, `${amount}`)
        await setBalance(inside, peer, balance - amount)
        return true
      }),
    balance: async (peer) => (await balanceOf(sql, peer)) ?? 0n,
    list: (query) => list(sql, query),
    prune: (expiredBefore, limit = pruneMax) => prune(sql, expiredBefore, limit),
  }
}

const byKey = 'peer = ? AND direction = ? AND packet = ?'

function valuesOf({ peer, direction, condition }: PacketKey): readonly string[] {
  return [peer, direction, condition]
}

/** Adds a peer. Its row must exist before a transaction locks it: nothing else keeps two of them apart. */
async function addPeer(sql: Sql, peer: string): Promise<void> {
  if ((await balanceOf(sql, peer)) !== undefined) return
  try {
    await sql("INSERT INTO ilp_peers VALUES (?, '0', 0)", peer)
  } catch (error) {
    // Another process may have added it.
    if ((await balanceOf(sql, peer)) === undefined) throw error
  }
}

async function balanceOf(sql: Sql, peer: string): Promise<bigint | undefined> {
  const [row] = await sql('SELECT balance FROM ilp_peers WHERE peer = ?', peer)
  return row && BigInt(`${row['balance']}`)
}

async function setBalance(sql: Sql, peer: string, balance: bigint): Promise<void> {
  await sql('UPDATE ilp_peers SET balance = ? WHERE peer = ?', `${balance}`, peer)
}

async function insert(sql: Sql, row: PacketRow): Promise<void> {
  const { amount, state, expiresAt, reservedAt, paymentId, fulfillment = '' } = row
  await sql(
    'INSERT INTO ilp_packets VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)',
    ...valuesOf(row),
    `${amount}`,
    state,
    expiresAt,
    reservedAt,
    paymentId,
    fulfillment,
  )
}

/**
 * Fulfills an incoming packet in a transaction of the caller. It changes no balance, because a reserved packet counts.
 * Two transactions wait for each other here: the second finds that nothing is left to change.
 */
async function credit(sql: Sql, key: PacketKey): Promise<PacketState | undefined> {
  await sql(
    `UPDATE ilp_packets SET state = 'fulfilled' WHERE ${byKey} AND state = 'reserved'`,
    ...valuesOf(key),
  )
  return (await rowOf(sql, key))?.state
}

/** The most that one statement removes: what others wait for, and how many values it has. */
const statementMax = 100

/**
 * Removes packets that were decided, page by page. What is decided stays so, unless its payment still has a record: by
 * that, an operator may decide it otherwise, or a process that goes on would take a packet that is gone for unsent.
 */
async function prune(sql: Sql, expiredBefore: number, limit: number) {
  let removed = 0
  while (removed < limit) {
    const most = Math.min(statementMax, limit - removed)
    const rows = await sql(
      `SELECT peer, direction, packet FROM ilp_packets
        WHERE state IN ('fulfilled', 'unproven', 'released') AND expires_at < ?
          AND NOT EXISTS (SELECT 1 FROM ilp_sendings WHERE ilp_sendings.payment = ilp_packets.payment)
        ORDER BY peer, direction LIMIT ${Math.trunc(most)}`,
      expiredBefore,
    )
    for (const [first, ...others] of groupsOf(rows)) {
      const keys = [first, ...others].map((row) => `${row['packet']}`)
      await sql(
        `DELETE FROM ilp_packets WHERE peer = ? AND direction = ?
          AND packet IN (${keys.map(() => '?').join(', ')}) AND expires_at < ?`,
        `${first['peer']}`,
        `${first['direction']}`,
        ...keys,
        expiredBefore,
      )
    }
    removed += rows.length
    if (rows.length < most) return { removed, more: false }
  }
  return { removed, more: true }
}

type Row = Awaited<ReturnType<Sql>>[number]

/** Groups rows, in their order, by the peer and the direction. */
function groupsOf(rows: readonly Row[]): readonly (readonly [Row, ...Row[]])[] {
  const groups: [Row, ...Row[]][] = []
  for (const row of rows) {
    const last = groups.at(-1)
    const [first] = last ?? []
    const isSame = first?.['peer'] === row['peer'] && first?.['direction'] === row['direction']
    if (last !== undefined && isSame) last.push(row)
    else groups.push([row])
  }
  return groups
}

async function rowOf(sql: Sql, key: PacketKey): Promise<PacketRow | undefined> {
  const [row] = await sql(`SELECT * FROM ilp_packets WHERE ${byKey}`, ...valuesOf(key))
  return row && packetOf(row)
}

async function list(sql: Sql, query: PacketQuery): Promise<readonly PacketRow[]> {
  const { peer, direction, state, paymentId, expiresFrom, expiredBefore } = query
  const { after, limit = listMax } = query
  const conditions: readonly (readonly [string, ...(string | number)[]])[] = [
    ...(peer === undefined ? [] : [['peer = ?', peer] as const]),
    ...(direction === undefined ? [] : [['direction = ?', direction] as const]),
    ...(state === undefined ? [] : [['state = ?', state] as const]),
    ...(paymentId === undefined ? [] : [['payment = ?', paymentId] as const]),
    ...(expiresFrom === undefined ? [] : [['expires_at >= ?', expiresFrom] as const]),
    ...(expiredBefore === undefined ? [] : [['expires_at < ?', expiredBefore] as const]),
    ...(after === undefined
      ? []
      : [[`(peer, direction, packet) > (?, ?, ?)`, ...valuesOf(after)] as const]),
  ]
  const where = conditions.map(([text]) => text).join(' AND ') || '1 = 1'
  const values = conditions.flatMap(([, ...given]) => given)
  const rows = await sql(
    `SELECT * FROM ilp_packets WHERE ${where} ORDER BY peer, direction, packet LIMIT ${Math.trunc(limit)}`,
    ...values,
  )
  return rows.map(packetOf)
}

function packetOf(row: Readonly<Record<string, unknown>>): PacketRow {
  const text = (column: string) => `${row[column]}`
  const fulfillment = text('fulfillment')
  return {
    peer: text('peer'),
    direction: text('direction') as PacketRow['direction'],
    condition: text('packet'),
    amount: BigInt(text('amount')),
    state: text('state') as PacketState,
    expiresAt: Number(text('expires_at')),
    reservedAt: Number(text('reserved_at')),
    paymentId: text('payment'),
    ...(fulfillment !== '' && { fulfillment }),
  }
}
