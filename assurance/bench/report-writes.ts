import { migrate, postgresStore } from 'open-payments-server/postgres'
import { type Database, hasDatabase, withDatabase } from './database.js'
import { benchWallet, creation, type Library, newToken, signed } from './fixtures.js'
import { type Figure, interleaved, perCallUs, ratioFigure } from './measure.js'
import { newPayer, pay, paymentRequests } from './payer.js'

const rounds = 15
/** At most 1,000 incoming payments of a client are open at an account. */
const calls = 50

/** Measures what the views for reports cost the writes, in the time of whole operations. */
export async function reportWrites(library: Library): Promise<Figure[]> {
  if (!(await hasDatabase())) return []
  return withDatabase((plain) =>
    withDatabase(async (viewed) => {
      const without = await operations(library, plain, false)
      const withViews = await operations(library, viewed, true)
      const figures: Figure[] = []
      for (const name of ['create', 'receive', 'rotate', 'pay'] as const) {
        const times = await interleaved(rounds, { plain: without[name], viewed: withViews[name] })
        const title = `${name}: time with the views for reports, relative to without`
        figures.push(ratioFigure(title, times.viewed, times.plain, { most: 1.05 }))
      }
      return figures
    }),
  )
}

/** Returns operations, each of which resolves to its average duration in µs. */
async function operations(library: Library, { schema, connect }: Database, reports: boolean) {
  const pool = connect()
  await migrate(pool, { schema, reports })
  const wallet = benchWallet(library, postgresStore(pool, { schema }))
  const payer = await newPayer(wallet)
  let token = await newToken(wallet)
  const { incomingPayments } = wallet.resources
  const creating = await newToken(wallet)
  const create = async () => wallet.resources.handle(await creation(wallet, creating.value))
  const amount = { value: '1', assetCode: 'USD', assetScale: 2 }
  let transfers = 0
  return {
    create: () => perCallUs(calls, create),
    async receive() {
      const { body = '' } = await create()
      const id = incomingPayments.idOf(JSON.parse(body).id) ?? ''
      return perCallUs(calls, () =>
        incomingPayments.receive(id, { transferId: String(++transfers), amount }),
      )
    },
    rotate: () =>
      perCallUs(calls, async () => {
        const { value, manage: url } = token
        const { body = '' } = await wallet.auth.handle(
          await signed(wallet.key, { method: 'POST', url, token: value }),
        )
        token = JSON.parse(body).access_token
      }),
    async pay() {
      const requests = (await paymentRequests(payer, calls)).values()
      return perCallUs(calls, () => pay(wallet, requests.next().value as never))
    },
  }
}
