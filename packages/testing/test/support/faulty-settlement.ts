import type { Store } from 'open-payments-server'
import {
  type AttemptsOptions,
  askByRepeating,
  type Reply,
  type Settled,
  type Settlement,
} from 'open-payments-server/attempts'
import type { AttemptsPorts, AttemptsSubject } from 'open-payments-server-testing'
import {
  askById,
  askSum,
  closeAt,
  custodian,
  custodianApi,
  sendTo,
} from 'open-payments-test-support/custodian'

type Fetch = AttemptsPorts['fetch']
type Send = AttemptsOptions['send']

/** Reads a status that is not 2xx as this reply, whoever has sent it. */
function believing(fetch: Fetch, statuses: (status: number) => boolean, reply: Reply): Send {
  return (order) => {
    let status = 200
    const watched: Fetch = async (...request) => {
      const response = await fetch(...request)
      status = response.status
      return response
    }
    return sendTo(watched)(order).then(
      (read) => (statuses(status) ? reply : read),
      (error) => {
        if (statuses(status)) return reply
        throw error
      },
    )
  }
}

/** Changes each settlement that is written. */
function writing(store: Store, change: (next: Settlement) => Settlement): Store {
  return {
    ...store,
    commit: ({ changes, guards }) => {
      const changed = changes.map((each) => {
        const next = each.next as typeof each.next & { settlement?: Settlement }
        if (next.settlement === undefined) return each
        return { ...each, next: { ...next, settlement: change(next.settlement) } as typeof next }
      })
      return store.commit({ changes: changed, guards })
    },
  }
}

const decidedSum = ({ attempts }: Settlement) =>
  attempts.reduce(
    (sum, { outcome }) => (outcome.state === 'decided' ? sum + BigInt(outcome.arrived) : sum),
    0n,
  )

/** A host that has its own loop, in place of the library's. */
function ownLoop(settleWith: (send: () => Promise<Reply>) => Promise<bigint>): AttemptsSubject {
  return {
    otherSide: custodianApi,
    create: ({ fetch }) => ({
      async settle({ id, amount }): Promise<Settled> {
        let count = 0
        const arrived = await settleWith(() => {
          count += 1
          const order = { reference: `${id}-${count}`, amount, request: { id, amount } }
          return sendTo(fetch)({ ...order, signal: new AbortController().signal }).catch(() => ({
            outcome: 'unknown' as const,
            reason: 'no reply',
          }))
        })
        const totals = {
          proven: 0n,
          byWord: 0n,
          inDoubt: 0n,
          denied: 0n,
          excess: 0n,
          withdrawn: 0n,
          free: 0n,
        }
        return { state: 'ended', arrived, inDoubt: 0n, totals }
      },
      async *inDoubt() {},
      decide: async () => ({ ok: false, refusal: 'nothing_in_doubt', reason: '' }),
    }),
  }
}

/** Hosts with one mistake each, and the laws that break. */
export const mistakes: Record<string, AttemptsSubject> = {
  '429 and 503 are taken as "try again", and it is sent again': custodian('id', (_, { fetch }) => ({
    send: believing(fetch, (status) => status === 429 || status === 503, {
      outcome: 'refused',
      reason: 'busy',
      retryAt: 0,
    }),
  })),
  'any 4xx is taken as a final refusal': custodian('id', (_, { fetch }) => ({
    send: believing(fetch, (status) => status >= 400 && status < 500, {
      outcome: 'refused',
      reason: 'refused',
    }),
  })),
  'an order that is not found is taken as "never" at once': custodian('id', (_, { fetch }) => ({
    ask: askById(fetch, 'never'),
  })),
  'the margin is 0, and the clock of the other side is behind': custodian('id', () => ({
    marginMs: 0,
  })),
  'the margin is 0, by sum': custodian('sum', () => ({ marginMs: 0 })),
  'the request does not contain its last instant': custodian('id', (_, { fetch }) => ({
    send: (order) => {
      const { notAfter: _notAfter, ...endless } = order
      return sendTo(fetch)(endless)
    },
  })),
  'what the other side denies is sent again without a cap': custodian('sum', () => ({
    trustMax: 1_000_000n,
  })),
  'the base of the second decision contains what was decided by word': custodian(
    'sum',
    ({ store }) => ({
      store: writing(store, (next) =>
        next.base === undefined || next.decisionCount === 0
          ? next
          : { ...next, base: `${7_000n + decidedSum(next)}` },
      ),
    }),
  ),
  'the sum is a cached one, without the time at which it was read': custodian(
    'sum',
    (_, { fetch, clock }) => {
      const cache = { at: -1, received: 0n }
      return {
        async ask() {
          if (clock.now() > cache.at + 300_000) {
            const { received } = await askSum(fetch)()
            Object.assign(cache, { at: clock.now(), received })
          }
          return { by: 'sum', received: cache.received }
        },
      }
    },
  ),
  'an order is repeated in place of a question, at a side without keys': custodian(
    'id',
    (_, { fetch }) => {
      const send: Send = (order) => sendTo(fetch)({ ...order, reference: crypto.randomUUID() })
      return { send, ask: askByRepeating(send, { keptMs: 86_400_000 }) }
    },
  ),
  'no reply to the order to close is taken as "never"': custodian('id', (_, { fetch }) => ({
    close: (order) => closeAt(fetch)(order).catch(() => 'never'),
    closeAfterMs: 0,
    notAfter: undefined as never,
  })),
  'nothing is listed': {
    ...custodian('id'),
    create: (ports) => ({ ...custodian('id').create(ports), async *inDoubt() {} }),
  },
  'an unknown outcome is asked about for ever': custodian('id', () => ({
    giveUpMs: Number.MAX_SAFE_INTEGER - 3_000_000_000_000,
  })),
  'nothing is sent again': custodian('id', () => ({ attemptsMax: 1 })),
  'the record is lost when its process ends': {
    ...custodian('id'),
    create: (ports) => {
      const lost = new Map<string, string>()
      return custodian('id', () => ({
        store: {
          ...ports.store,
          load: async (keys) =>
            keys.map(({ id }) => JSON.parse(lost.get(id) ?? 'null') ?? undefined),
          async commit(commit) {
            const isCommitted = await ports.store.commit({ changes: [], guards: [] })
            for (const { next } of commit.changes) lost.set(next.id, JSON.stringify(next))
            return isCommitted
          },
        },
      })).create(ports)
    },
  },
  'it is sent again under a new reference until there is a reply': ownLoop(async (send) => {
    for (let tries = 0; tries < 5; tries++) if ((await send()).outcome === 'proven') return 1_000n
    return 0n
  }),
  'no reply is taken as a failure': ownLoop(async (send) => {
    return (await send()).outcome === 'proven' ? 1_000n : 0n
  }),
  'no reply is taken as a success': ownLoop(async (send) => {
    return (await send()).outcome === 'refused' ? 0n : 1_000n
  }),
}
