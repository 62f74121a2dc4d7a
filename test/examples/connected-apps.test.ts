import { describe, expect, test } from 'vitest'
import { connectedApps } from '../../examples/wallet/connected-apps.js'
import { cookieSession } from '../../examples/wallet/session.js'
import type { GrantListQuery, GrantServices, GrantView } from '../../src/index.js'

const session = cookieSession(new Uint8Array(32))

function grantView(grantId: string, more: Partial<GrantView> = {}): GrantView {
  const client = `https://${grantId}.example`
  return { grantId, client, status: 'issued', access: [], createdAt: 0, ...more }
}

/** Returns the page as Alice sees it, given pages of grants. */
async function shown(...pages: readonly (readonly GrantView[])[]) {
  const asked: GrantListQuery[] = []
  const grants: Pick<GrantServices, 'list' | 'get' | 'revoke'> = {
    async list(query) {
      const number = asked.push(query)
      const hasNextPage = number < pages.length
      const pagination = { hasNextPage, hasPreviousPage: number > 1, endCursor: `${number}` }
      return { result: pages[number - 1] ?? [], pagination }
    },
    get: async () => undefined,
    revoke: async () => false,
  }
  const [cookie = ''] = session.cookieFor('alice').split(';')
  const headers = [['Cookie', cookie]] as const
  const request = { method: 'GET', url: '/grants', headers, body: new Uint8Array() }
  const { status, body = '' } = await connectedApps(grants, session)(request)
  expect(status).toBe(200)
  return { body, asked }
}

describe('the page of connected apps', () => {
  test('shows the grants of all pages', async () => {
    const { body, asked } = await shown([grantView('one')], [], [grantView('three')])
    expect(body).toContain('https://one.example')
    expect(body).toContain('https://three.example')
    expect(asked.map(({ resourceOwner, cursor }) => [resourceOwner, cursor])).toEqual([
      ['alice', undefined],
      ['alice', '1'],
      ['alice', '2'],
    ])
  })

  test('shows live grants only', async () => {
    const standings = ['approved', 'issued', 'revoked', 'cancelled', 'ended', 'denied'] as const
    const { body } = await shown(
      standings.map((status) => grantView(status, { status: status as never })),
    )
    const listed = standings.filter((status) => body.includes(`https://${status}.example`))
    expect(listed).toEqual(['approved', 'issued'])
  })

  test('says that there is none', async () => {
    expect((await shown([])).body).toContain('No app has access')
  })

  test('escapes the names of the app and its owner', async () => {
    const markup = `<img src=x onerror=alert(1)>"'`
    const identifier = markup
    const { body } = await shown([
      grantView('one', {
        client: markup,
        subject: { id: markup, format: 'uri' },
        access: [{ type: 'quote', actions: ['create'], identifier }],
      }),
    ])
    expect(body.match(/img src=x/g)).toHaveLength(3)
    expect(body).not.toContain('<img')
  })
})
