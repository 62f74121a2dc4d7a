/** One change of the custodian's books: a line of its journal. */
export type Entry =
  | { readonly do: 'open'; readonly account: string; readonly value: string }
  | {
      readonly do: 'hold'
      readonly key: string
      readonly account: string
      readonly value: string
      readonly decideAt: number
    }
  | { readonly do: 'decide'; readonly key: string; readonly state: 'held' | 'rejected' }
  | { readonly do: 'release'; readonly key: string }
  | {
      readonly do: 'credit'
      readonly key: string
      readonly account: string
      readonly value: string
    }
  | { readonly do: 'pay'; readonly payout: Payout }
  | { readonly do: 'arrive'; readonly arrival: Arrival }
  | { readonly do: 'notified'; readonly notice: string }

/** Money that leaves the custodian. The memo is what the wallet has written; two payouts may have the same. */
export interface Payout {
  readonly memo: string
  readonly from: string
  readonly to: string
  readonly value: string
  /** The hold that it uses up. */
  readonly hold?: string
}

/** Money from outside, for an incoming payment of the wallet. */
export interface Arrival {
  readonly transferId: string
  readonly payment: string
  readonly value: string
}

/** What the custodian tells the wallet, again and again until it is acknowledged. */
export type Notice =
  | { readonly type: 'hold'; readonly id: string; readonly key: string }
  | ({ readonly type: 'arrival'; readonly id: string } & Arrival)

interface Hold {
  account: string
  value: bigint
  state: 'pending' | 'held' | 'rejected' | 'released'
  decideAt: number
}

/** Where money waits that has arrived and is not credited. */
export const arrivals = 'arrivals'

export type Accounts = ReturnType<typeof createAccounts>

/** The books of a custodian. Each change is in the journal before it is answered, so a crash loses none. */
export function createAccounts({
  journal,
  append,
  reviewMs = () => 0,
}: {
  /** The entries so far. */
  readonly journal: readonly Entry[]
  readonly append: (entry: Entry) => void
  /** How long somebody looks at a hold before it is decided. */
  readonly reviewMs?: (key: string) => number
}) {
  const balances = new Map<string, bigint>([[arrivals, 0n]])
  const holds = new Map<string, Hold>()
  const credits = new Map<string, bigint>()
  const payouts: Payout[] = []
  const notices = new Map<string, Notice>()
  const arrived = new Set<string>()

  const add = (account: string, value: bigint) =>
    balances.set(account, (balances.get(account) ?? 0n) + value)

  function apply(entry: Entry): void {
    switch (entry.do) {
      case 'open':
        return void add(entry.account, BigInt(entry.value))
      case 'hold': {
        const { key, account, decideAt } = entry
        const value = BigInt(entry.value)
        return void holds.set(key, { account, value, decideAt, state: 'pending' })
      }
      case 'decide': {
        const hold = holds.get(entry.key)
        if (hold !== undefined) hold.state = entry.state
        const id = `hold ${entry.key}`
        return void notices.set(id, { type: 'hold', id, key: entry.key })
      }
      case 'release': {
        const closed: Hold = { account: '', value: 0n, decideAt: 0, state: 'released' }
        return void holds.set(entry.key, closed)
      }
      case 'credit': {
        credits.set(entry.key, BigInt(entry.value))
        add(arrivals, -BigInt(entry.value))
        return void add(entry.account, BigInt(entry.value))
      }
      case 'pay': {
        const { from, value, hold: key } = entry.payout
        payouts.push(entry.payout)
        add(from, -BigInt(value))
        const hold = key === undefined ? undefined : holds.get(key)
        if (hold !== undefined) hold.value -= BigInt(value)
        return
      }
      case 'arrive': {
        const { transferId, value } = entry.arrival
        arrived.add(transferId)
        add(arrivals, BigInt(value))
        const id = `arrival ${transferId}`
        return void notices.set(id, { type: 'arrival', id, ...entry.arrival })
      }
      case 'notified':
        return void notices.delete(entry.notice)
    }
  }

  function record(entry: Entry): void {
    append(entry)
    apply(entry)
  }

  const heldOf = (account: string) =>
    [...holds.values()].reduce(
      (sum, hold) => (hold.state === 'held' && hold.account === account ? sum + hold.value : sum),
      0n,
    )
  const available = (account: string) => (balances.get(account) ?? 0n) - heldOf(account)

  /** Decides the holds whose review is over. */
  function decide(now: number): void {
    for (const [key, { account, value, state, decideAt }] of holds) {
      if (state !== 'pending' || decideAt > now) continue
      record({ do: 'decide', key, state: value <= available(account) ? 'held' : 'rejected' })
    }
  }

  for (const entry of journal) apply(entry)

  return {
    open: (account: string, value: bigint) =>
      balances.has(account) || record({ do: 'open', account, value: `${value}` }),
    /** Once for its key. */
    hold(key: string, account: string, value: string, now: number): Hold['state'] {
      if (!holds.has(key)) {
        record({ do: 'hold', key, account, value, decideAt: now + reviewMs(key) })
      }
      decide(now)
      return holds.get(key)?.state ?? 'rejected'
    },
    /** Ends a hold. After it, no order with its key holds anything. */
    release(key: string): 'released' {
      if (holds.get(key)?.state !== 'released') record({ do: 'release', key })
      return 'released'
    },
    /** Once for its key. */
    credit(key: string, account: string, value: string): 'done' | 'rejected' {
      if (credits.has(key)) return 'done'
      if (!balances.has(account)) return 'rejected'
      record({ do: 'credit', key, account, value })
      return 'done'
    },
    /** There is no key: each call that is carried out pays. */
    pay(payout: Payout, notAfter: number, now: number): 'done' | 'rejected' | 'too_late' {
      if (now > notAfter) return 'too_late'
      const { from, hold: key, value } = payout
      const hold = key === undefined ? undefined : holds.get(key)
      const most = key === undefined ? available(from) : hold?.state === 'held' ? hold.value : 0n
      if (BigInt(value) > most) return 'rejected'
      record({ do: 'pay', payout })
      return 'done'
    },
    find: (memo: string) => payouts.filter((payout) => payout.memo === memo),
    arrive(arrival: Arrival): void {
      if (!arrived.has(arrival.transferId)) record({ do: 'arrive', arrival })
    },
    /** What the wallet has not acknowledged. */
    notices(now: number): readonly Notice[] {
      decide(now)
      return [...notices.values()]
    },
    notified: (notice: string) => notices.has(notice) && record({ do: 'notified', notice }),
    /** The books, for a comparison. */
    books: () => ({
      balances: Object.fromEntries([...balances].map(([account, value]) => [account, `${value}`])),
      held: [...balances.keys()].reduce((sum, account) => sum + heldOf(account), 0n).toString(),
      waiting: [...holds.values()].filter(({ state }) => state === 'pending').length,
      payouts: [...payouts],
      credits: Object.fromEntries([...credits].map(([key, value]) => [key, `${value}`])),
    }),
  }
}

export type Books = ReturnType<Accounts['books']>
