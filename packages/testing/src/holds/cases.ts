import { demandSame } from '../conformance/expectations.js'
import type { End, TestAccount } from './account.js'

/** The functions that a case uses. */
export interface HoldTrial {
  /** Opens an account, by default with 1,000 units. */
  open(balance?: bigint): Promise<TestAccount>
  /** Opens an account for two processes of the host. */
  openTwice(): Promise<readonly [TestAccount, TestAccount]>
  /** Runs a search for a race, each time with new accounts. */
  search(round: () => Promise<void>): Promise<void>
  /** Whether a part of a payment can be sent. */
  readonly sendsParts: boolean
}

export interface HoldCaseDefinition {
  readonly name: string
  /** Whether the case needs two processes. */
  readonly processes?: 2
  /** Whether the case searches for a race, and so may miss a fault. */
  readonly search?: true
  readonly check: (t: HoldTrial) => Promise<void>
}

function cases(
  traits: Omit<HoldCaseDefinition, 'name' | 'check'>,
  checks: Readonly<Record<string, HoldCaseDefinition['check']>>,
): readonly HoldCaseDefinition[] {
  return Object.entries(checks).map(([name, check]) => ({ ...traits, name, check }))
}

const holds = cases(
  {},
  {
    async 'a payment is held by the amount that it debits, and the balance stays'(t) {
      const account = await t.open()
      await account.allows(account.payment(700n), 'of an account with 1000')
      await account.has({ balance: 1_000n, held: 700n }, 'after a payment of 700')
    },

    async 'the whole balance can be held, and not one unit more'(t) {
      const account = await t.open()
      await account.refuses(account.payment(1_001n), 'of an account with 1000')
      await account.has({ balance: 1_000n, held: 0n }, 'after a refused payment of 1001')
      await account.allows(account.payment(1_000n), 'of an account with 1000')
      await account.has({ balance: 1_000n, held: 1_000n }, 'after a payment of 1000')
      await account.refuses(account.payment(1n), 'while all of the account is held')
    },

    async 'a payment that is refused holds nothing'(t) {
      const account = await t.open()
      await account.allows(account.payment(700n), 'of an account with 1000')
      await account.refuses(account.payment(301n), 'while 700 of 1000 are held')
      await account.has({ balance: 1_000n, held: 700n }, 'after a refused payment of 301')
      await account.allows(account.payment(300n), 'while 700 of 1000 are held')
      await account.has({ balance: 1_000n, held: 1_000n }, 'after payments of 700 and 300')
    },

    async 'a payment that is asked about again is held once'(t) {
      const account = await t.open()
      const payment = account.payment(700n)
      for (const when of ['first', 'after a lost answer', 'after two lost answers']) {
        await account.allows(payment, when)
        await account.has({ balance: 1_000n, held: 700n }, `after a payment of 700, asked ${when}`)
      }
      await account.allows(account.payment(300n), 'while 700 of 1000 are held')
      await account.allows(payment, 'that is held, while all of the account is held')
      await account.has({ balance: 1_000n, held: 1_000n }, 'after payments of 700 and 300')
    },

    async 'a preview holds nothing'(t) {
      const account = await t.open()
      await account.allowsPreview(account.payment(700n), 'of an account with 1000')
      await account.has({ balance: 1_000n, held: 0n }, 'after a preview of a payment of 700')
      await account.allows(account.payment(700n), 'after a preview of another payment')
      await account.has({ balance: 1_000n, held: 700n }, 'after a preview and a payment of 700')
    },

    async 'a preview counts what is held for payments'(t) {
      const account = await t.open()
      await account.allows(account.payment(700n), 'of an account with 1000')
      await account.refusesPreview(account.payment(301n), 'while 700 of 1000 are held')
      await account.allowsPreview(account.payment(300n), 'while 700 of 1000 are held')
      await account.has({ balance: 1_000n, held: 700n }, 'after a payment of 700 and two previews')
    },

    async 'amounts are exact beyond 2^53'(t) {
      const most = 2n ** 53n
      const even = await t.open(most)
      await even.refuses(even.payment(most + 1n), `of an account with ${most}`)
      const more = await t.open(most + 2n)
      await more.allows(more.payment(most + 1n), `of an account with ${most + 2n}`)
      await more.has({ balance: most + 2n, held: most + 1n }, 'after the payment')
      const last = more.payment(1n)
      await more.allows(last, `while ${most + 1n} of ${most + 2n} are held`)
      await more.end(last, 'completed', 1n)
      await more.has({ balance: most + 1n, held: most + 1n }, 'after a payment of 1 was completed')
    },

    async 'the holds of an account do not touch another one'(t) {
      const [one, other] = [await t.open(), await t.open()]
      const payment = one.payment(1_000n)
      await one.allows(payment, 'of an account with 1000')
      await other.allows(other.payment(1_000n), 'while all of another account is held')
      await one.deliver(payment, 'declined')
      await one.has({ balance: 1_000n, held: 0n }, 'after the payment was declined')
      await other.has({ balance: 1_000n, held: 1_000n }, 'after another payment was declined')
    },
  },
)

const ends = cases(
  {},
  {
    async 'a payment that is declined releases its hold, and all can be spent again'(t) {
      const account = await t.open()
      const payment = account.payment(700n)
      await account.allows(payment, 'of an account with 1000')
      await account.deliver(payment, 'declined')
      await account.has({ balance: 1_000n, held: 0n }, 'after the payment was declined')
      await account.allows(account.payment(1_000n), 'after a payment was declined')
      await account.has({ balance: 1_000n, held: 1_000n }, 'after a payment of 1000')
    },

    async 'the end of a payment that was refused releases nothing'(t) {
      const account = await t.open()
      await account.allows(account.payment(600n), 'of an account with 1000')
      const refused = account.payment(500n)
      await account.refuses(refused, 'while 600 of 1000 are held')
      await account.deliver(refused, 'declined')
      await account.has({ balance: 1_000n, held: 600n }, 'after a refused payment was declined')
    },

    async 'the end of a payment for which nothing was ever held changes nothing'(t) {
      const account = await t.open()
      await account.allows(account.payment(600n), 'of an account with 1000')
      for (const end of ['declined', 'failed'] as const) {
        await account.deliver(account.payment(500n), end)
        await account.has({ balance: 1_000n, held: 600n }, `after an unknown payment was ${end}`)
      }
    },

    // A call can come after the end: its process was stopped for minutes, or the request waited in a queue.
    async 'a payment that has ended holds nothing when an earlier call about it comes late'(t) {
      for (const end of ['declined', 'failed'] as const) {
        const account = await t.open()
        const [held, unheld] = [account.payment(700n), account.payment(700n)]
        await account.allows(held, 'of an account with 1000')
        for (const payment of [held, unheld]) {
          await account.deliver(payment, end)
          await account.ask(payment) // whatever the answer is: nobody waits for it
          const when = `after a payment of 700 was ${end}, and mayPay was then called about it`
          await account.has({ balance: 1_000n, held: 0n }, when)
          await account.deliver(payment, end)
        }
        await account.allows(account.payment(1_000n), 'after late calls about ended payments')
      }
      const account = await t.open()
      const payment = account.payment(700n)
      await account.allows(payment, 'of an account with 1000')
      await account.end(payment, 'completed', 700n)
      await account.ask(payment)
      const when = 'after a payment of 700 was completed, and mayPay was then called about it'
      await account.has({ balance: 300n, held: 0n }, when)
    },

    async 'a payment that completes is debited by what was sent, and the rest is free'(t) {
      await endsWith(t, 'completed', t.sendsParts ? [700n, 250n] : [700n])
    },

    async 'a payment that fails is debited by what was sent before, and the rest is free'(t) {
      await endsWith(t, 'failed', t.sendsParts ? [250n, 0n] : [0n])
    },

    async 'a payment that fails before it is begun is not debited'(t) {
      const account = await t.open()
      const payment = account.payment(700n)
      await account.allows(payment, 'of an account with 1000')
      await account.deliver(payment, 'failed')
      await account.has({ balance: 1_000n, held: 0n }, 'after the payment failed')
    },

    async 'a payment is held until it ends'(t) {
      const account = await t.open()
      const payment = account.payment(700n)
      await account.allows(payment, 'of an account with 1000')
      for (const type of t.sendsParts ? (['begun', 'sent'] as const) : (['begun'] as const)) {
        await account.deliver(payment, type, type === 'sent' ? 200n : 0n)
        // A host may debit each part when it is sent, and hold less from then on.
        const what = `what may be spent of 1000 after the event ${type} of a payment of 700`
        demandSame(`${await account.available()}`, '300', what)
      }
      const sent = t.sendsParts ? 600n : 700n
      await account.end(payment, 'completed', sent)
      const balance = 1_000n - sent
      await account.has({ balance, held: 0n }, `after the payment completed with ${sent}`)
    },
  },
)

async function endsWith(t: HoldTrial, type: 'completed' | 'failed', totals: readonly bigint[]) {
  for (const sent of totals) {
    const account = await t.open()
    const payment = account.payment(700n)
    await account.allows(payment, 'of an account with 1000')
    await account.end(payment, type, sent)
    const left = 1_000n - sent
    const when = `after a payment of 700 ${type} with ${sent} sent`
    await account.has({ balance: left, held: 0n }, when)
    await account.refuses(account.payment(left + 1n), when)
    await account.allows(account.payment(left), when)
  }
}

const endings: readonly End[] = ['completed', 'failed', 'declined']

const repeats = cases(
  {},
  Object.fromEntries(
    endings.map((type) => [
      `a second delivery of ${type} changes nothing`,
      async (t: HoldTrial) => {
        const account = await t.open()
        const payment = account.payment(300n)
        await account.allows(payment, 'of an account with 1000')
        const whole = type === 'completed' ? 300n : 0n
        const sent = type === 'declined' ? 0n : t.sendsParts ? 200n : whole
        if (type === 'declined') await account.deliver(payment, type)
        else await account.end(payment, type, sent)
        const balance = 1_000n - sent
        await account.has({ balance, held: 0n }, `after the payment was ${type}`)
        await account.deliver(payment, type)
        await account.has({ balance, held: 0n }, `after two deliveries of ${type}`)
        await account.allows(account.payment(300n), `of an account with ${balance}`)
        await account.deliver(payment, type)
        const when = `after three deliveries of ${type}, and another payment of 300`
        await account.has({ balance, held: 300n }, when)
      },
    ]),
  ),
)

const races = cases(
  { search: true },
  {
    'a payment that several calls ask about at once is held once': (t) =>
      t.search(async () => {
        const account = await t.open()
        const payment = account.payment(700n)
        await atOnce(8, () => account.allows(payment, 'that other calls ask about at once'))
        await account.has({ balance: 1_000n, held: 700n }, 'after 8 calls about a payment of 700')
      }),

    'of several payments at once, as many are held as the balance covers': (t) =>
      t.search(async () => {
        const account = await t.open()
        await holdsThree(account, account)
      }),

    'two deliveries of an end at once count as one': (t) =>
      t.search(async () => {
        const account = await t.open()
        const [ended, declined, other] = [300n, 200n, 100n].map(account.payment)
        if (!ended || !declined || !other) return
        for (const each of [ended, declined, other]) await account.allows(each, 'of 1000')
        const sent = t.sendsParts ? 50n : 0n
        await account.settle(ended, 'failed', sent)
        await atOnce(6, (index) => {
          return index % 2 === 0
            ? account.deliver(ended, 'failed')
            : account.deliver(declined, 'declined')
        })
        const balance = 1_000n - sent
        await account.has({ balance, held: 100n }, 'after deliveries of two ends at once')
      }),

    'payments that are held and payments that end at once leave what was not sent': (t) =>
      t.search(async () => {
        const account = await t.open()
        const old = Array.from({ length: 4 }, () => account.payment(100n))
        for (const payment of old) await account.allows(payment, 'of an account with 1000')
        // Each new payment fits, whatever has ended before.
        const fresh = Array.from({ length: 4 }, () => account.payment(150n))
        const ending = old.map((payment, index) => {
          if (index % 2 === 0) return account.deliver(payment, 'declined')
          return account.end(payment, 'completed', 100n)
        })
        const asking = fresh.map((payment) => account.allows(payment, 'while others end'))
        await Promise.all([...ending, ...asking])
        const when = 'after 2 payments of 100 were declined, 2 completed, and 4 of 150 held at once'
        await account.has({ balance: 800n, held: 600n }, when)
      }),
  },
)

const processes = cases(
  { processes: 2 },
  {
    async 'a payment that another process asks about again is held once'(t) {
      const [first, second] = await t.openTwice()
      const payment = first.payment(700n)
      await first.allows(payment, 'of an account with 1000')
      await second.has({ balance: 1_000n, held: 700n }, 'in the other process')
      await second.refuses(second.payment(301n), 'while another process holds 700 of 1000')
      await second.allows(payment, 'that another process has held')
      await first.has({ balance: 1_000n, held: 700n }, 'after both processes held 700')
    },

    async 'a process holds nothing for a payment whose end another one has handled'(t) {
      const [first, second] = await t.openTwice()
      const payment = first.payment(700n)
      await second.deliver(payment, 'declined')
      await first.ask(payment)
      await second.has({ balance: 1_000n, held: 0n }, 'after a late call in the other process')
      await second.allows(second.payment(1_000n), 'after a late call in the other process')
    },

    async 'a process releases what another one has held'(t) {
      const [first, second] = await t.openTwice()
      const [declined, completed] = [first.payment(300n), first.payment(700n)]
      for (const payment of [declined, completed]) await first.allows(payment, 'of 1000')
      await second.deliver(declined, 'declined')
      await second.end(completed, 'completed', 700n)
      await first.deliver(completed, 'completed')
      await first.has({ balance: 300n, held: 0n }, 'after another process has ended both payments')
    },
  },
)

const processRaces = cases(
  { processes: 2, search: true },
  {
    'of payments of two processes at once, as many are held as the balance covers': (t) =>
      t.search(async () => holdsThree(...(await t.openTwice()))),
  },
)

/** Asks about eight payments of 300 at once, of which an account with 1000 covers three. */
async function holdsThree(one: TestAccount, other: TestAccount): Promise<void> {
  const answers = await atOnce(8, (index) => {
    const account = index % 2 === 0 ? one : other
    return account.ask(account.payment(300n))
  })
  const held = answers.filter(Boolean).length
  demandSame(held, 3, 'how many of 8 payments of 300, asked about at once, 1000 covers')
  await one.has({ balance: 1_000n, held: 900n }, 'after 8 payments of 300 at once')
}

function atOnce<Result>(
  count: number,
  work: (index: number) => Promise<Result>,
): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => work(index)))
}

export const holdCases: readonly HoldCaseDefinition[] = [
  ...holds,
  ...ends,
  ...repeats,
  ...races,
  ...processes,
  ...processRaces,
]
