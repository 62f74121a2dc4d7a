import type { PacketBook } from 'open-payments-ilp'
import type { PeerBalance } from './connector.js'

/** The balance of a peer, for the packets that a connector sends to it. */
export function balanceOf(book: PacketBook, peer: string): PeerBalance {
  const keyOf = (id: string) => {
    const [condition = ''] = id.split(' ', 1)
    return { peer, direction: 'out', condition } as const
  }
  return {
    async add(id, amount) {
      const now = Date.now()
      const more = { amount: -amount, expiresAt: now, reservedAt: now, paymentId: '' }
      const reserved = await book.reserve({ ...keyOf(id), ...more })
      return reserved.ok ? { amount: -reserved.row.amount, isNew: reserved.isNew } : undefined
    },
    release: async (id) => void (await book.decide(keyOf(id), 'released')),
    value: () => book.balance(peer),
  }
}
