import { describe, expect, test } from 'vitest'
import { connectedApps } from '../../examples/wallet/connected-apps.js'
import { cookieSession } from '../../examples/wallet/session.js'
import type { GrantAmendment, GrantServices, GrantView } from '../../src/index.js'

const accounts = { ownedBy: () => [] }
const session = cookieSession(new Uint8Array(32))

function grantView(grantId: string, more: Partial<GrantView> = {}): GrantView {
  const client = `https://${grantId}.example`
  return { grantId, client, status: 'approved', access: [], createdAt: 0, ...more }
}

/** Returns the page as Alice sees it, and the owners whose grants it asked for. */
async function shown(...views: readonly GrantView[]) {
  const asked: string[] = []
  const grants: Pick<GrantServices, 'iterate' | 'get' | 'revoke' | 'amend' | 'displayOf'> = {
    async *iterate({ resourceOwner, statuses }) {
      asked.push(resourceOwner)
      yield* views.filter(({ status }) => statuses?.includes(status) ?? true)
    },
    get: async () => undefined,
    displayOf: async (client) => ({ uri: client, name: `Name of ${client}` }),
    revoke: async () => ({ ok: true, changed: false }),
    amend: async () => ({ ok: true, changed: false }),
  }
  const [cookie = ''] = session.cookieFor('alice').split(';')
  const headers = [['Cookie', cookie]] as const
  const request = { method: 'GET', url: '/grants', headers, body: new Uint8Array() }
  const { status, body = '' } = await connectedApps(grants, accounts, session)(request)
  expect(status).toBe(200)
  return { body, asked }
}

test.each([
  ['nothing', true],
  ['same-origin', true],
  ['none', true],
  ['same-site', false],
  ['cross-site', false],
])('a form with the Sec-Fetch-Site %s revokes access: %s', async (site, isAccepted) => {
  const revoked: string[] = []
  const grants: Pick<GrantServices, 'iterate' | 'get' | 'revoke' | 'amend' | 'displayOf'> = {
    async *iterate() {},
    get: async (id) => ({ ...grantView(id), resourceOwner: 'alice' }),
    displayOf: async () => undefined,
    revoke: async (id) => ({ ok: true, changed: revoked.push(id) > 0 }),
    amend: async () => ({ ok: true, changed: false }),
  }
  const [cookie = ''] = session.cookieFor('alice').split(';')
  const from = site === 'nothing' ? [] : [['Sec-Fetch-Site', site] as const]
  const headers = [['Cookie', cookie] as const, ...from]
  const body = new TextEncoder().encode('grant=one')
  const request = { method: 'POST', url: '/grants', headers, body }
  const { status } = await connectedApps(grants, accounts, session)(request)
  expect([status, revoked]).toEqual(isAccepted ? [303, ['one']] : [403, []])
})

describe('the page of connected apps', () => {
  test('shows all grants of the owner who is signed in', async () => {
    const { body, asked } = await shown(grantView('one'), grantView('three'))
    expect(body).toContain('\u2068Name of https://one.example\u2069 (https://one.example)')
    expect(body).toContain('https://three.example')
    expect(asked).toEqual(['alice'])
  })

  test('shows live grants only', async () => {
    const standings = ['approved', 'revoked', 'cancelled', 'expired', 'denied'] as const
    const { body } = await shown(...standings.map((status) => grantView(status, { status })))
    const listed = standings.filter((status) => body.includes(`https://${status}.example`))
    expect(listed).toEqual(['approved'])
  })

  test('says that there is none', async () => {
    expect((await shown()).body).toContain('No app has access')
  })

  test('escapes the names of the app and its owner', async () => {
    const markup = `<img src=x onerror=alert(1)>"'`
    const identifier = markup
    const { body } = await shown(
      grantView('one', {
        client: markup,
        subject: { id: markup, format: 'uri' },
        access: [{ type: 'quote', actions: ['create'], identifier }],
      }),
    )
    expect(body.match(/img src=x/g)).toHaveLength(6)
    expect(body).not.toContain('<img')
  })
})

const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })
const paying = (itemId: string) =>
  ({
    itemId,
    type: 'outgoing-payment',
    actions: ['create'],
    limits: { debitAmount: usd('5000') },
  }) as const

test.each<readonly [string, string, Partial<GrantAmendment> | undefined]>([
  ['lowers a limit', 'do=lower&item=1&most=12.5', { access: [lowered('1', '1250'), paying('2')] }],
  ['reads no vague amount', 'do=lower&item=1&most=1e3', { access: [paying('1'), paying('2')] }],
  ['removes an item', 'do=remove&item=1', { access: [paying('2')] }],
  ['pauses', 'do=pause', { conditions: { pausedUntil: 253_402_300_799_999 } }],
  ['resumes', 'do=resume', { conditions: { pausedUntil: null } }],
  ['leaves the grants of others alone', 'do=pause', undefined],
])('a form of the owner %s', async (_, form, expected) => {
  const amended: unknown[] = []
  const resourceOwner = expected === undefined ? 'bob' : 'alice'
  const grants: Pick<GrantServices, 'iterate' | 'get' | 'revoke' | 'amend' | 'displayOf'> = {
    async *iterate() {},
    displayOf: async () => undefined,
    get: async (id) => ({ ...grantView(id), access: [paying('1'), paying('2')], resourceOwner }),
    revoke: async () => ({ ok: true, changed: amended.push('revoked') > 0 }),
    amend: async (_id, amendment) => ({ ok: true, changed: amended.push(amendment) > 0 }),
  }
  const [cookie = ''] = session.cookieFor('alice').split(';')
  const body = new TextEncoder().encode(`grant=one&${form}`)
  const request = { method: 'POST', url: '/grants', headers: [['Cookie', cookie]] as const, body }
  await connectedApps(grants, accounts, session)(request)
  expect(amended).toEqual(expected === undefined ? [] : [{ resourceOwner: 'alice', ...expected }])
})

function lowered(itemId: string, value: string) {
  return { ...paying(itemId), limits: { debitAmount: usd(value) } }
}
