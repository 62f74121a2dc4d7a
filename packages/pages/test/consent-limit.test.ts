import { createSpendingWorld, pay, usd } from 'open-payments-test-support/spending'
import { alice, carol, interactionId, withFinish } from 'open-payments-test-support/world'
import { describe, expect, test } from 'vitest'
import { createPages, formTokens } from '../src/index.js'
import { periods } from '../src/owner-limits.js'
import { followed } from './followed.js'
import { textOf } from './text.js'

const formKey = new Uint8Array(32).fill(7)
const accounts = [
  { url: alice, assetCode: 'USD', assetScale: 2 },
  { url: carol, assetCode: 'EUR', assetScale: 2 },
]
type Fields = Readonly<Record<string, string>>

/** An app asks to pay any amount, from an account of its choice or of the owner's. */
async function asked(identifier?: string) {
  const world = createSpendingWorld()
  const client = world.client()
  const item = {
    type: 'outgoing-payment',
    actions: ['create', 'read'],
    ...(identifier !== undefined && { identifier }),
  } as const
  const { body } = await client.request([item], withFinish)
  const id = interactionId(body.interact.redirect)
  const { consent } = createPages({
    auth: world.auth,
    resources: world.resources,
    ownerOf: () => ({ id: 'alice' }),
    accountsOf: () => accounts,
    signIn: () => ({ status: 401, headers: {} }),
    formKey,
    clock: world.clock,
  })
  const url = `/consent/${id}`
  async function send(method: string, fields: Fields = {}) {
    const sent = new TextEncoder().encode(`${new URLSearchParams(fields)}`)
    const direct = await consent({ method, url, headers: [], body: sent })
    const answer = await followed(direct, url, (at) =>
      consent({ method: 'GET', url: at, headers: [], body: new Uint8Array() }),
    )
    return { ...answer, body: answer.body ?? '', text: textOf(answer.body ?? '') }
  }
  async function approve(fields: Fields) {
    const token = await formTokens(formKey).value('consent', 'alice', id)
    return send('POST', { token, decision: 'approve', ...fields })
  }
  const conditions = async () => (await world.auth.interactions.get(id))?.conditions
  async function tokenOf(redirect = ''): Promise<string> {
    const reference = new URL(redirect).searchParams.get('interact_ref') ?? ''
    const { body: issued } = await client.continue(body.continue, reference)
    return issued.access_token.value
  }
  return { client, open: () => send('GET'), approve, conditions, tokenOf }
}

describe('the owner of a request for any amount', () => {
  test('is offered a limit before the buttons, without opening anything', async () => {
    const { text, body } = await (await asked(alice)).open()
    expect(text).toContain('Any amount')
    expect(text).toContain('Set a limit')
    expect(text).toContain('Most that it may spend, in USD')
    expect(body).toContain(`<option value="${periods.everyMonth}" selected>`)
    const before = body.slice(0, body.indexOf('value="approve"'))
    expect(before).toContain('id="own-new-most"')
    expect(before.lastIndexOf('<details')).toBe(before.indexOf('<details'))
    expect(before.indexOf('id="own-new-most"')).toBeLessThan(before.indexOf('<details'))
  })

  test('limits it, and the app can spend no more', async () => {
    const { client, approve, conditions, tokenOf } = await asked(alice)
    const fields = { most: '20', payments: '2', interval: periods.everyMonth }
    const { headers } = await approve(fields)
    const limit = { debitAmount: usd(2000), payments: 2, interval: periods.everyMonth }
    expect(await conditions()).toEqual({ limits: [limit] })
    const token = await tokenOf(headers['location'])
    expect((await pay(client, token, 1500)).status).toBe(201)
    expect((await pay(client, token, 600)).status).toBe(403)
    expect((await pay(client, token, 500)).status).toBe(201)
  })

  test('approves any amount only if the fields are empty', async () => {
    const { approve, conditions } = await asked(alice)
    const answer = await approve({ most: ' ', payments: '', interval: periods.everyDay })
    expect([answer.status, await conditions()]).toEqual([303, undefined])
  })

  test('types it in the asset of the account of their choice', async () => {
    const { open, approve, conditions } = await asked()
    expect((await open()).text).toContain('Most that it may spend, in USD or EUR')
    const fields = { account: carol, most: '3', payments: '', interval: '' }
    expect((await approve(fields)).status).toBe(303)
    const euros = { value: '300', assetCode: 'EUR', assetScale: 2 }
    expect(await conditions()).toEqual({ limits: [{ debitAmount: euros }] })
  })

  test('may send the form twice, and not with another limit', async () => {
    const { approve, conditions } = await asked(alice)
    const fields = { most: '20', payments: '', interval: periods.everyMonth }
    const { headers } = await approve(fields)
    expect((await approve(fields)).headers['location']).toBe(headers['location'])
    for (const other of [{ most: '30' }, { payments: '1' }, { interval: '' }, { most: '' }]) {
      expect((await approve({ ...fields, ...other })).status).toBe(409)
    }
    expect(await conditions()).toMatchObject({ limits: [{ debitAmount: usd(2000) }] })
  })

  test.each<[Fields, string, string]>([
    [{ most: 'all' }, 'as an amount, such as 12.50', 'own-new-most'],
    [{ most: '0' }, 'A limit of zero allows no payment.', 'own-new-most'],
    [{ payments: '1.5' }, 'as a whole number', 'own-new-payments'],
  ])(
    'reads at its field why %o is no limit, and nothing is approved',
    async (fields, said, field) => {
      const { approve, conditions } = await asked(alice)
      const { status, text, body } = await approve({
        most: '',
        payments: '',
        interval: '',
        ...fields,
      })
      expect([status, text]).toEqual([400, expect.stringContaining(said)])
      const [typed] = Object.values(fields)
      expect(body).toMatch(new RegExp(`id="${field}"[^>]* value="${typed}"\\s+aria-invalid="true"`))
      expect(await conditions()).toBeUndefined()
    },
  )

  test('cannot be given another period by the form', async () => {
    const { approve, conditions } = await asked(alice)
    const answer = await approve({
      most: '1',
      payments: '',
      interval: 'R/2026-01-01T00:00:00Z/PT1S',
    })
    expect([answer.status, await conditions()]).toEqual([400, undefined])
  })
})
