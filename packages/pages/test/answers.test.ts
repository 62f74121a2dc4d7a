import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { createSpendingWorld, usd } from 'open-payments-test-support/spending'
import { alice, interactionId, withFinish, withoutFinish } from 'open-payments-test-support/world'
import { describe, expect, test } from 'vitest'
import { createPages, localeFor, loginScreen, type PagesOptions, seeOther } from '../src/index.js'
import { followed } from './followed.js'
import { textOf } from './text.js'

const formKey = new Uint8Array(32).fill(7)

/** The consent page of a request that ends at a finish URI, as its owner, or after the end of the session, sees it. */
async function consentWith(uri: string | undefined, more: Partial<PagesOptions> = {}) {
  const { auth, resources, client, clock } = createSpendingWorld()
  const item = {
    type: 'outgoing-payment',
    actions: ['create', 'read'],
    identifier: alice,
    limits: { debitAmount: usd(5000) },
  } as const
  const finish = { ...withFinish.finish, uri }
  const interact = uri === undefined ? withoutFinish : { ...withFinish, finish }
  const { body } = await client().request([item], interact)
  const id = interactionId(body.interact.redirect)
  let owner: string | undefined = 'alice'
  const pages = createPages({
    auth,
    resources,
    clock,
    formKey,
    ownerOf: () => (owner === undefined ? undefined : { id: owner }),
    accountsOf: () => [{ url: alice, assetCode: 'USD', assetScale: 2 }],
    signIn: ({ url }: HttpRequest) =>
      seeOther(`https://idp.example/login?${new URLSearchParams({ next: url })}`),
    connectedAppsUrl: '/apps',
    ...more,
  })
  const url = `/consent/${id}`
  const send = async (method: string, fields: Readonly<Record<string, string>> = {}) => {
    const body = new TextEncoder().encode(`${new URLSearchParams(fields)}`)
    const answer = await pages.consent({ method, url, headers: [], body })
    return followed(answer, url, (url) => pages.consent({ method: 'GET', url, headers: [], body }))
  }
  const shown = await send('GET')
  const fieldOf = (name: string) =>
    new RegExp(`name="${name}" value="(\\w+)"`).exec(shown.body ?? '')?.[1] ?? ''
  return {
    url,
    shown,
    auth,
    id,
    post: (fields: Readonly<Record<string, string>>) =>
      send('POST', { token: fieldOf('token'), ...fields }),
    signOutToken: () => fieldOf('sign-out'),
    endSession() {
      owner = undefined
    },
  }
}

const linksOf = ({ body = '' }: HttpResponse) =>
  [...body.matchAll(/<a [^>]*href="([^"]*)"/g)].map(([, href = '']) =>
    href.replaceAll('&#38;', '&'),
  )

/** What a browser that applies `form-action` to redirects allows a form of this page to lead to. */
const targetsOf = ({ headers }: HttpResponse) =>
  /form-action ([^;]*)/.exec(headers['content-security-policy'] ?? '')?.[1]

describe('an answer to a decision', () => {
  test.each([
    'https://api.shop.example/callback',
    'http://localhost:1234/back',
    'http://127.0.0.1:1234/back',
  ])('leads to %s by a redirect, and from there to any other origin', async (uri) => {
    for (const decision of ['approve', 'deny']) {
      const { shown, post } = await consentWith(uri)
      expect(targetsOf(shown)).toBe("'self' https: http://localhost:* http://127.0.0.1:*")
      const { status, headers } = await post({ decision })
      expect([status, headers['location']]).toEqual([303, expect.stringContaining(`${uri}?`)])
    }
  })

  test.each(['http://[::1]:1234/back', 'com.example.shop:/back'])(
    'is a page with a link to %s, where no redirect would arrive',
    async (uri) => {
      for (const decision of ['approve', 'deny', 'deny']) {
        const { shown, post, auth, id } = await consentWith(uri)
        expect(targetsOf(shown)).toBe("'self'")
        const answer = await post({ decision })
        expect(answer.status).toBe(200)
        expect(answer.headers).not.toHaveProperty('location')
        const parameter = decision === 'approve' ? 'interact_ref=' : 'result='
        expect(linksOf(answer)).toContainEqual(
          expect.stringMatching(`^${uri.replace(/[.[\]?]/g, '\\$&')}\\?.*${parameter}`),
        )
        expect(answer.body).not.toMatch(/value="(?:approve|deny)"/)
        expect((await auth.interactions.get(id))?.status).toBe(
          decision === 'approve' ? 'approved' : 'denied',
        )
      }
    },
  )

  test.each(['https://shop.example/back', 'com.example.shop:/back', undefined])(
    'never asks again after the decision, and has a way on, with a finish URI %s',
    async (uri) => {
      for (const decision of ['approve', 'deny']) {
        const { post } = await consentWith(uri)
        for (const next of [decision, decision, 'approve', 'deny', 'return', '']) {
          const answer = await post({ decision: next })
          expect(answer.body ?? '').not.toMatch(/value="(?:approve|deny)"/)
          const way = answer.headers['location'] ?? linksOf(answer)[0]
          expect(way).toMatch(/^(?:https:|com\.example|\/apps)/)
        }
      }
    },
  )
})

describe('a form whose session has ended', () => {
  test('gets a page that says so, with a link to the login, wherever that is', async () => {
    const { url, post, endSession, auth, id } = await consentWith('https://shop.example/back')
    endSession()
    const answer = await post({ decision: 'approve' })
    expect(answer.status).toBe(403)
    expect(answer.headers).not.toHaveProperty('location')
    expect(textOf(answer.body ?? '')).toContain('You were signed out')
    expect(linksOf(answer)).toEqual([
      `https://idp.example/login?${new URLSearchParams({ next: url })}`,
    ])
    expect(targetsOf(answer)).toBe("'self'")
    expect((await auth.interactions.get(id))?.status).toBe('pending')
  })

  test('keeps the answer of a host that shows its login itself', async () => {
    const login = { status: 401, headers: { 'x-login': 'form' }, body: 'the login' }
    const { post, endSession } = await consentWith(undefined, { signIn: () => login })
    endSession()
    expect(await post({ decision: 'approve' })).toEqual(login)
  })
})

describe('the form that signs out', () => {
  test('leads to another origin by a link, and sets the cookies of the host', async () => {
    const ended = seeOther('https://idp.example/out', { 'set-cookie': 'session=; Max-Age=0' })
    const { post, signOutToken } = await consentWith(undefined, { signOut: () => ended })
    const answer = await post({ 'sign-out': signOutToken() })
    expect([answer.status, answer.headers['set-cookie']]).toEqual([200, 'session=; Max-Age=0'])
    expect(textOf(answer.body ?? '')).toContain('You are signed out')
    expect(textOf(answer.body ?? '')).not.toContain('Signed in as')
    expect(linksOf(answer)).toEqual(['https://idp.example/out'])
  })
})

describe('Enter in a field', () => {
  test.each(['', '10', '60'])('does not approve, and keeps the limit "%s"', async (typed) => {
    const { shown, post, auth, id } = await consentWith('https://shop.example/back')
    const [first = ''] =
      /<(?:button|input type="(?:submit|image)")[^>]*>/.exec(
        /<form method="post" class="card">.*<\/form>/s.exec(shown.body ?? '')?.[0] ?? '',
      ) ?? []
    expect(first).toContain('tabindex="-1"')
    expect(first).not.toContain('name=')
    const answer = await post({ 'limit-0': typed })
    expect([answer.status, textOf(answer.body ?? '')]).toEqual([
      400,
      expect.stringContaining('Please choose either Approve or Deny.'),
    ])
    expect(answer.body).toContain(`value="${typed}"`)
    expect((await auth.interactions.get(id))?.status).toBe('pending')
  })
})

test('the question says that the app chooses the receiver, where nothing limits that', async () => {
  const { shown } = await consentWith('https://shop.example/back')
  expect(shown.body).toContain('<dt>To</dt><dd>anybody whom the app chooses</dd>')
})

describe('the keyboard of a phone', () => {
  test('changes no letter of a name', () => {
    const { content } = loginScreen({ locale: localeFor({ headers: [] } as never) })
    const [name = ''] = /<input id="owner"[^>]*>/.exec(String(content)) ?? []
    for (const attribute of ['autocapitalize="none"', 'autocorrect="off"', 'spellcheck="false"']) {
      expect(name).toContain(attribute)
    }
  })

  test('ends a number, and does not go on to another field', async () => {
    const { shown } = await consentWith('https://shop.example/back')
    expect(shown.body).toMatch(/<input id="limit-0"[^>]*inputmode="decimal" enterkeyhint="done"/)
  })
})
