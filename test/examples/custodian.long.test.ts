import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from 'open-payments-programs'
import { expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { custodianAt } from '../../examples/custodian/custodian.js'
import { custodianSettlements } from '../../examples/custodian/settlements.js'
import type { Books } from '../../examples/custodian/stand-in/accounts.js'
import { freshPostgres, servers } from '../support/databases.js'
import {
  createSpendingWorld,
  grantToPay,
  outgoingItem,
  pay,
  usd,
  withKey,
} from '../support/spending.js'
import { idOfPayment } from '../support/spending-client.js'
import { alice, bob } from '../support/world.js'
import { killPrograms, type Program, run, untilPrinted } from './program.js'

const isSkipped = servers.PostgreSQL === undefined
const title = (text: string) => (isSkipped ? `${text} (skipped: no PostgreSQL)` : text)

/** A program that is killed and started again. */
function killable(start: () => Program) {
  const state = { program: start(), kills: 0, printed: '' }
  return {
    ready: () => untilPrinted(state.program, 'ready'),
    /** What all of its lives have printed. */
    printed: () => state.printed + state.program.printed.out,
    kills: () => state.kills,
    async kill() {
      state.program.child.kill('SIGKILL')
      await state.program.ended
      state.kills += 1
      state.printed += state.program.printed.out
      state.program = start()
      await untilPrinted(state.program, 'ready')
    },
  }
}

test.skipIf(isSkipped)(
  title('both processes are killed again and again, and both books are equal'),
  async () => {
    const fresh = await freshPostgres()
    const directory = mkdtempSync(join(tmpdir(), 'custodian-'))
    try {
      const [walletPort, custodianPort] = [await freePort(), await freePort()]
      const custodianUrl = `http://127.0.0.1:${custodianPort}`
      const secret = { SECRET: 'shared-by-both' }
      let failing = 36
      const custodian = killable(() =>
        run('examples/custodian/stand-in/main.ts', {
          ...secret,
          PORT: `${custodianPort}`,
          JOURNAL: join(directory, 'journal'),
          WALLET_URL: `http://127.0.0.1:${walletPort}`,
          REVIEW_MS: '1500',
          FAILING: `${failing}`,
        }),
      )
      await custodian.ready()
      const admin = (path: string, body?: object) =>
        fetch(`${custodianUrl}${path}`, {
          method: body === undefined ? 'GET' : 'POST',
          ...(body && { body: JSON.stringify(body) }),
        })
      await admin('/accounts', { account: alice, value: '100000' })
      await admin('/accounts', { account: bob, value: '0' })

      const store = postgresStore(fresh.pool, { schema: fresh.schema })
      const real = { clock: Date, random: crypto }
      const world = createSpendingWorld({ store, auth: real, resources: real })
      world.clock.set(Date.now())
      const client = world.client()
      const { token } = await grantToPay(world, client, [
        outgoingItem({ debitAmount: usd(200_000) }),
      ])
      const ids: string[] = []
      for (let index = 0; index < 12; index++) {
        world.clock.set(Date.now())
        ids.push(idOfPayment(await pay(client, token, 1_000 + index, {}, withKey(`p-${index}`))))
      }
      const { incomingPayments, outgoingPayments, events } = world.resources
      for (let index = 0; index < 16; index++) {
        const created = await incomingPayments.create({
          walletAddress: bob,
          idempotencyKey: `${index}`,
        })
        if (!created.ok) throw new Error(created.reason)
        const { paymentId: payment } = created.payment
        if (index % 4 === 0) await incomingPayments.complete(payment)
        await admin('/arrivals', {
          transferId: `transfer-${index}`,
          payment,
          value: `${100 + index}`,
        })
      }

      const wallet = killable(() =>
        run('test/examples/custodian-process.ts', {
          ...secret,
          PORT: `${walletPort}`,
          DATABASE: servers.PostgreSQL ?? '',
          SCHEMA: fresh.schema,
          CUSTODIAN_URL: custodianUrl,
        }),
      )
      await wallet.ready()
      for (let round = 0; round < 6; round++) {
        await sleep(500 + Math.random() * 4_000)
        await (round % 2 === 0 ? wallet : custodian).kill()
      }
      // From now on all requests arrive.
      failing = 0
      await custodian.kill()

      const drivers = Object.values(
        custodianSettlements({
          resources: world.resources,
          custodian: custodianAt(custodianUrl),
          store,
        }).drivers,
      )
      async function listed() {
        let doubts = 0
        for (const driver of drivers) for await (const _ of driver.inDoubt()) doubts += 1
        return doubts
      }
      const books = async () => (await (await admin('/books')).json()) as Books
      await expect
        .poll(
          async () => {
            const { waiting, setAside } = await events.backlog()
            const { balances, held } = await books()
            return [waiting, setAside, await listed(), balances['arrivals'], held]
          },
          { timeout: 480_000, interval: 1_000 },
        )
        .toEqual([0, 0, 0, '0', '0'])

      const { balances, payouts } = await books()
      const views = await Promise.all(ids.map((id) => outgoingPayments.get(id)))
      expect(views.map((view) => view?.status)).toEqual(ids.map(() => 'completed'))
      const sent = views.reduce((sum, view) => sum + Number(view?.sentAmount.value), 0)
      expect(balances[alice]).toBe(`${100_000 - sent}`)
      const indexes = Array.from({ length: 16 }, (_, index) => index)
      const credited = indexes.filter((index) => index % 4 !== 0)
      expect(balances[bob]).toBe(`${credited.reduce((sum, index) => sum + 100 + index, 0)}`)
      // Each payment and each refund was paid out once.
      const keys = payouts.map(({ hold, to }) => hold ?? to)
      const refunded = indexes
        .filter((index) => index % 4 === 0)
        .map((index) => `transfer-${index}`)
      expect(keys.toSorted()).toEqual([...ids, ...refunded].toSorted())
      expect(wallet.kills() + custodian.kills()).toBe(7)
      if (process.env['SHOW']) console.log(custodian.printed())
    } finally {
      killPrograms()
      await fresh.drop()
      rmSync(directory, { recursive: true })
    }
  },
)
