import { ok } from '../../src/core/result.js'
import { memoryStore } from '../../src/index.js'
import type {
  Asked,
  Declined,
  HostAnswer,
  PayAnswer,
  PayRequest,
  PlayedWallet,
} from './played-wallet.js'
import { createSpendingWorld, grantToPay, newQuote, quoteToken } from './spending.js'
import {
  type Payer,
  type SpendingServices,
  spendingPolicy,
  spendingServices,
  tokenLifetimeMs,
} from './spending-services.js'
import { resourceServer, type TestClient } from './world.js'
import { watchedStore } from './written.js'

const declined = ({ refusal }: Pick<Declined, 'refusal'>): Declined => ({ ok: false, refusal })

const hostAnswer = (result: HostAnswer): HostAnswer => (result.ok ? { ok: true } : declined(result))

/** Wraps the services as a wallet for histories. */
export function servedWallet(): PlayedWallet {
  const { store, written } = watchedStore(memoryStore())
  // An undelivered event would prevent the reuse of the id of its payment.
  const services: SpendingServices = spendingServices({ store, recordsEvents: false })
  const { payments, clock } = services
  const payers: Payer[] = []
  const payer = (grant: number) => payers[grant] as Payer
  return {
    clock,
    written,
    async grant(client, access) {
      payers.push(await services.payer(access, client))
    },
    async rotate(grant) {
      const next = await services.rotate(payer(grant))
      if (next !== undefined) payers[grant] = next
      return next !== undefined
    },
    revoke: (grant) => services.revoke(payer(grant)),
    async quote(client, asked) {
      const answer = await services.quote(`https://${client}.example`, asked)
      return answer.ok ? ok(answer.quote.id) : declined(answer)
    },
    async pay(grant, request, idempotencyKey) {
      const key = idempotencyKey === undefined ? {} : { idempotencyKey }
      const answer = await services.pay(payer(grant), request, key)
      if (!answer.ok) return declined(answer)
      const { payment, spent } = answer
      return ok({ id: payment.id, ...(spent && { spent }) })
    },
    async spent(grant) {
      const token = await services.tokenOf(payer(grant))
      if (!token.ok) return declined(token)
      return ok(await payments.spentUnder(token.value, clock.now()))
    },
    begin: async (id) => hostAnswer(await payments.begin(id)),
    reportSent: async (id, totals) => hostAnswer(await payments.reportSent(id, totals)),
    fail: async (id, totals) => hostAnswer(await payments.fail(id, totals)),
    cancel: async (id) => hostAnswer(await payments.cancel(id, {})),
    sweep: async () => (await services.sweep()).lapsed,
  }
}

/** Wraps the servers as a wallet that receives signed requests. */
export function serverWallet(): PlayedWallet {
  const { store, written } = watchedStore(memoryStore())
  const { payments, quotes } = spendingPolicy
  const world = createSpendingWorld({
    store,
    auth: { policy: { accessTokenLifetimeMs: tokenLifetimeMs } },
    resources: {
      recordsEvents: false,
      policy: {
        quoteLifetimeMs: quotes.lifetimeMs,
        outgoingPaymentHoldMs: payments.holdMs,
        outgoingPaymentRetentionMs: payments.retentionMs,
      },
    },
  })
  const { clock, resources, refusals } = world
  // The clock must not advance during consent, because the history does not include that time.
  const consenting = { ...world, clock: { ...clock, advance: () => {} } }
  const clients = { shop: world.client('shop'), cafe: world.client('cafe') }
  const grants: { client: TestClient; id: string; token: { value: string; manage: string } }[] = []
  const of = (grant: number) => grants[grant] as (typeof grants)[number]
  const refused = () => declined({ refusal: refusals.at(-1)?.refusal ?? 'none' })
  const idIn = (url: string) => url.slice(url.lastIndexOf('/') + 1)
  const { outgoingPayments } = resources
  return {
    clock,
    written,
    async grant(name, access) {
      const client = clients[name]
      const { grantId, accessToken } = await grantToPay(consenting, client, access)
      grants.push({ client, id: grantId, token: accessToken })
    },
    async rotate(grant) {
      const { client, token } = of(grant)
      const { status, body } = await client.rotate(token)
      if (status === 200) of(grant).token = body.access_token
      return status === 200
    },
    async revoke(grant) {
      await world.auth.grants.revoke(of(grant).id)
    },
    async quote(name, asked: Asked) {
      const client = clients[name]
      const { status, body } = await newQuote(client, await quoteToken(client), asked)
      return status === 201 ? ok(idIn(body.id)) : refused()
    },
    async pay(grant, request: PayRequest, key): Promise<PayAnswer> {
      const { client, token } = of(grant)
      const body =
        'quoteId' in request
          ? { ...request, quoteId: `${resourceServer}/quotes/${request.quoteId}` }
          : request
      const headers = key === undefined ? [] : [['Idempotency-Key', key] as const]
      const url = `${resourceServer}/outgoing-payments`
      const answer = await client.post(url, body, token.value, { headers })
      if (answer.status !== 201) return refused()
      const { id, grantSpentDebitAmount = null, grantSpentReceiveAmount = null } = answer.body
      const spent = { debitAmount: grantSpentDebitAmount, receiveAmount: grantSpentReceiveAmount }
      return ok({ id: idIn(id), spent })
    },
    async spent(grant) {
      const { client, token } = of(grant)
      const created = Math.floor(clock.now() / 1_000)
      // Without a nonce, because the server would write it.
      const parameters = [`keyid="${client.key.kid}"`, `created=${created}`]
      const url = `${resourceServer}/outgoing-payment-grant`
      const { status, body } = await client.getPayment(token.value, url, { parameters })
      if (status !== 200) return refused()
      const { spentDebitAmount: debitAmount, spentReceiveAmount: receiveAmount } = body
      return ok({ debitAmount, receiveAmount })
    },
    begin: async (id) => hostAnswer(await outgoingPayments.begin(id)),
    reportSent: async (paymentId, totals) =>
      hostAnswer(await outgoingPayments.reportSent(paymentId, totals)),
    fail: async (paymentId, totals) => hostAnswer(await outgoingPayments.fail(paymentId, totals)),
    cancel: async (id) => hostAnswer(await outgoingPayments.cancel(id)),
    sweep: async () => (await resources.sweep()).lapsed,
  }
}
