import {
  closedPacket,
  listMax,
  mayBecome,
  orderOf,
  owedFor,
  type PacketBook,
  type PacketQuery,
  type PacketRow,
  pruneMax,
} from './book.js'

/**
 * A book in the memory of this process, for tests and demonstrations: it ends with the process.
 *
 * @example
 * ```ts
 * import { memoryBook } from 'open-payments-ilp'
 *
 * const book = memoryBook()
 * console.log(await book.balance('test.peer')) // 0n
 * ```
 */
export function memoryBook(): PacketBook {
  const rows = new Map<string, PacketRow>()
  const settlements = new Map<string, bigint>()
  const balances = new Map<string, bigint>()
  const balanceOf = (peer: string) => balances.get(peer) ?? 0n

  function write(row: PacketRow, before?: PacketRow): void {
    const change =
      owedFor(row, row.state) - (before === undefined ? 0n : owedFor(row, before.state))
    rows.set(orderOf(row), row)
    balances.set(row.peer, balanceOf(row.peer) + change)
  }

  return {
    async reserve(packet, balanceMax) {
      const known = rows.get(orderOf(packet))
      if (known !== undefined) return { ok: true, row: known, isNew: false }
      const balance = balanceOf(packet.peer) + owedFor(packet, 'reserved')
      if (balanceMax !== undefined && balance > balanceMax) return { ok: false }
      const row = { ...packet, state: 'reserved' } as const
      write(row)
      return { ok: true, row, isNew: true }
    },
    async decide(key, decision, { fulfillment, by } = {}) {
      const known = rows.get(orderOf(key))
      if (known === undefined || !mayBecome(known, decision, by)) return known?.state
      const proof = fulfillment === undefined ? {} : { fulfillment }
      write({ ...known, ...proof, state: decision }, known)
      return decision
    },
    get: async (key) => rows.get(orderOf(key)),
    async close(key, now) {
      const known = rows.get(orderOf(key)) ?? closedPacket(key, now)
      rows.set(orderOf(key), known)
      return known
    },
    async settle(peer, { id, amount }) {
      const key = `${peer} ${id}`
      const known = settlements.get(key)
      if (known !== undefined) return known === amount
      settlements.set(key, amount)
      balances.set(peer, balanceOf(peer) - amount)
      return true
    },
    balance: async (peer) => balanceOf(peer),
    async list(query) {
      const found = [...rows.values()].filter((row) => isWanted(row, query))
      found.sort((one, other) => (orderOf(one) < orderOf(other) ? -1 : 1))
      return found.slice(0, query.limit ?? listMax)
    },
    async prune(expiredBefore, limit = pruneMax) {
      const old = [...rows.values()].filter(
        ({ state, expiresAt }) => state !== 'reserved' && expiresAt < expiredBefore,
      )
      const removed = old.slice(0, limit)
      for (const row of removed) rows.delete(orderOf(row))
      return { removed: removed.length, more: old.length >= limit }
    },
  }
}

function isWanted(row: PacketRow, query: PacketQuery): boolean {
  const { peer, direction, state, paymentId, expiresFrom, expiredBefore, after } = query
  return (
    (peer === undefined || row.peer === peer) &&
    (direction === undefined || row.direction === direction) &&
    (state === undefined || row.state === state) &&
    (paymentId === undefined || row.paymentId === paymentId) &&
    (expiresFrom === undefined || row.expiresAt >= expiresFrom) &&
    (expiredBefore === undefined || row.expiresAt < expiredBefore) &&
    (after === undefined || orderOf(row) > orderOf(after))
  )
}
