import type { Handler, MayPay } from 'open-payments-server'
import type { HttpResponse } from 'open-payments-server/adapter'
import {
  createSpendingWorld,
  grantToPay,
  outgoingItem,
  pay,
  usd,
} from 'open-payments-test-support/spending'
import { alice, interactionId, withFinish } from 'open-payments-test-support/world'
import { describe, expect, test } from 'vitest'
import { createPages, formTokens, seeOther } from '../src/index.js'
import { textOf } from './text.js'

const formKey = new Uint8Array(32).fill(7)

/** A wallet with one of everything that an owner answers by a form. The cookie names the owner. */
async function wallet() {
  const requested: string[] = []
  const mayPay: MayPay = ({ isConfirmed, outgoingPaymentId }) => {
    requested.push(outgoingPaymentId)
    const url = `https://wallet.example/confirm/${outgoingPaymentId}`
    const until = world.clock.now() + 900_000
    return isConfirmed ? { ok: true } : { ok: false, refusal: 'confirmation_required', url, until }
  }
  const world = createSpendingWorld({ resources: { policy: { mayPay } } })
  const { auth, resources, clock } = world
  const client = world.client()
  const { token, grantId } = await grantToPay(world, client, [
    outgoingItem({ debitAmount: usd(5000) }),
  ])
  await pay(client, token, 1_250)
  const item = { type: 'outgoing-payment', actions: ['create'], identifier: alice } as const
  const limits = { debitAmount: usd(5000) }
  const { body } = await client.request([{ ...item, limits }], withFinish)
  const pages = createPages({
    auth,
    resources,
    clock,
    formKey,
    ownerOf: ({ headers }) => ({ id: headers.find(([name]) => name === 'cookie')?.[1] ?? '' }),
    accountsOf: (owner) =>
      owner === 'alice' ? [{ url: alice, assetCode: 'USD', assetScale: 2 }] : [],
    signIn: () => seeOther('/login'),
    accountLimits: { of: async () => [], set: async () => true },
  })
  return {
    pages,
    grantId,
    paymentId: requested[0],
    consentId: interactionId(body.interact.redirect),
  }
}

type Fields = Readonly<Record<string, string>>

function send(handle: Handler, method: string, url: string, fields: Fields = {}, owner = 'alice') {
  const body = new TextEncoder().encode(`${new URLSearchParams(fields)}`)
  const headers = [['cookie', owner]] as const
  return Promise.resolve(handle({ method, url, headers, body }))
}

const fieldsOf = ({ body = '' }: HttpResponse): Fields =>
  Object.fromEntries(
    [...body.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)].map(
      ([, name, value = '']) => [name, value.replaceAll('&#34;', '"')],
    ),
  )

/** The forms, what is posted, and what the page then says. */
const forms = {
  'consent, with a higher limit': [{ decision: 'approve', 'limit-0': '51' }, 'only become lower'],
  'consent, without a decision': [{ 'limit-0': '7.5' }, 'Please choose either'],
  'consent, without the token': [{ decision: 'approve', token: '' }, 'Please answer again'],
  'confirmation, confirmed': [{ decision: 'confirm' }, 'Payment confirmed'],
  'confirmation, declined': [{ decision: 'decline' }, 'Payment declined'],
  'confirmation, without the token': [{ decision: 'confirm', token: '' }, 'Please answer again'],
  'app, with a higher limit': [{ do: 'lower', item: '1', most: '51' }, 'only become lower'],
  'app, with nothing to do': [{ do: 'nothing' }, 'Nothing was changed'],
  'apps, without the token': [{ do: 'revoke', token: '' }, 'Please answer again'],
  'limits, with a limit of zero': [{ do: 'limit', interval: '', most: '0' }, 'limit of zero'],
  'limits, without the token': [
    { do: 'limit', interval: '', most: '1', token: '' },
    'answer again',
  ],
} satisfies Record<string, readonly [fields: Fields, text: string]>

async function opened(form: string) {
  const { pages, grantId, paymentId, consentId } = await wallet()
  const [kind] = form.split(',')
  const [handle, url] = {
    consent: [pages.consent, `/consent/${consentId}`] as const,
    confirmation: [pages.confirmation, `/confirm/${paymentId}`] as const,
    app: [pages.connectedApps, `/apps?app=${grantId}`] as const,
    apps: [pages.connectedApps, '/apps'] as const,
    limits: [pages.connectedApps, '/apps?limits'] as const,
  }[kind as 'apps']
  const shown = await send(handle, 'GET', url)
  const token = /name="token" value="(\w+)"/.exec(shown.body ?? '')?.[1] ?? ''
  const path = url.split('?', 1)[0]
  return {
    post: (fields: Fields, owner?: string) =>
      send(
        handle,
        'POST',
        url,
        { ...fieldsOf(shown), token, grant: grantId, account: alice, ...fields },
        owner,
      ),
    get: (query: string, owner?: string) => send(handle, 'GET', path + query, {}, owner),
  }
}

describe.each(Object.entries(forms))('the answer to a form (%s)', (form, [fields, text]) => {
  test('is a redirect to a page that says what became of it, so that a reload sends nothing', async () => {
    const { post, get } = await opened(form)
    const { status, body, headers } = await post(fields)
    expect([status, body]).toEqual([303, undefined])
    for (let reload = 0; reload < 2; reload++) {
      expect(textOf((await get(headers['location'] ?? '')).body ?? '')).toContain(text)
    }
  })

  test('is said to nobody else, nor by a link that somebody made', async () => {
    const { post, get } = await opened(form)
    const { location = '' } = (await post(fields)).headers
    const query = new URLSearchParams(location)
    const outcome = query.get('outcome') ?? ''
    const own = await formTokens(formKey).value('outcome', 'alice', '/elsewhere', outcome)
    for (const change of [{ token: '' }, { token: own }, { outcome: `${outcome} ` }]) {
      const changed = `?${new URLSearchParams({ ...Object.fromEntries(query), ...change })}`
      expect(textOf((await get(changed)).body ?? '')).not.toContain(text)
    }
    expect(textOf((await get(location, 'bob')).body ?? '')).not.toContain(text)
  })
})

describe('the URL of what became of a form', () => {
  test('has what the owner typed, for the page to show it again, and no token of a form', async () => {
    const { post, get } = await opened('consent')
    const { location = '' } = (await post({ decision: 'approve', 'limit-0': '1.000,5' })).headers
    expect((await get(location)).body).toContain('value="1.000,5"')
    expect(new URLSearchParams(location).get('outcome')).not.toContain('token')
  })

  test('is short, whatever was typed', async () => {
    for (const form of ['consent', 'app', 'limits']) {
      const { post, get } = await opened(form)
      const long = { most: '9'.repeat(60_000), 'limit-0': '9'.repeat(60_000) }
      const posted = { decision: 'approve', do: 'lower', item: '1', ...long }
      const { location = '' } = (await post(posted)).headers
      expect(location.length).toBeLessThan(2_000)
      expect((await get(location)).status).toBe(400)
    }
  })
})
