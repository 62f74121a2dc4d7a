import type { Network } from 'open-payments-programs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { terminal } from '../src/terminal.js'
import { workplace } from './support/workplace.js'

const alice = 'https://wallet.example/alice'
const authServer = 'https://auth.example/gnap'
const resourceServer = 'https://wallet.example'
const elsewhere = 'https://other.example/token/1'

const issued = (more: object = {}) => ({
  access_token: { value: 'stolen', manage: 'https://auth.example/token/1', access: [], ...more },
  continue: continuation(),
})
const continuation = (uri = 'https://auth.example/continue/1') => ({
  uri,
  access_token: { value: 'stolen' },
  wait: 1,
})
const pending = (redirect: string, next = continuation()) => ({
  interact: { redirect, finish: 'a-nonce' },
  continue: next,
})

/** A wallet whose authorization server responds in order, and what it was sent. */
function hostile(...answers: readonly object[]) {
  const sent: string[] = []
  const network: Network = {
    addresses: async () => ['1.1.1.1'],
    fetch: async (input, init) => {
      const url = String(input)
      const { method = 'GET' } = init ?? {}
      if (url === alice) {
        const asset = { assetCode: 'USD', assetScale: 2 }
        return Response.json({ id: alice, ...asset, authServer, resourceServer })
      }
      sent.push(`${method} ${url}`)
      return Response.json(answers[sent.length - 1] ?? {})
    },
  }
  return { network, sent }
}

let place: ReturnType<typeof workplace>
beforeEach(() => {
  place = workplace()
})
afterEach(() => place.remove())

const asking = ['grant', alice, '--client', 'https://shop.example', '--poll', '--wait', '10m']

describe('a hostile authorization server', () => {
  test.each([
    ['https://wallet.example/\u0000consent', 'a NUL'],
    ['https://wallet.example/consent?a=\u001b[2J', 'an escape'],
    ['https://wallet.example/consent#\u202egro.evil', 'a mark that reorders text'],
    ['https://wallet.example/consent?a\nb', 'a line end'],
    ['https://wallet.example/consent?\u0085', 'a C1 control'],
    ['javascript:alert(1)', 'another scheme'],
    ['file:///etc/passwd', 'a file'],
    ['https://user@wallet.example/', 'userinfo'],
    ['not a URL', 'no URL'],
  ])('opens no page at %j, with %s', async (redirect) => {
    const { network, sent } = hostile(pending(redirect))
    const browse = (url: string) => expect.fail(`the browser opened ${JSON.stringify(url)}`)
    const { code, err } = await place.run(asking, { network, browse })
    expect([code, err]).toEqual([1, expect.stringContaining('interact.redirect')])
    expect(err.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]|at .*\.ts:/u)
    expect(sent).toEqual([`POST ${authServer}`])
  })

  test('opens pages as URLs, in which every character is encoded', async () => {
    const opened: string[] = []
    const { network } = hostile(pending('https://wallet.example/a b?c="d"&e=\u00e9#<f>'), issued())
    const browse = (url: string) => void opened.push(url)
    await place.run(asking, { network, browse })
    expect(opened).toEqual(['https://wallet.example/a%20b?c=%22d%22&e=%C3%A9#%3Cf%3E'])
  })

  const page = 'https://auth.example/consent/1'
  test.each<[string, readonly object[]]>([
    ['to continue', [pending(page, continuation(elsewhere))]],
    ['to continue later', [pending(page), { continue: continuation(elsewhere) }]],
    ['to manage a token', [issued({ manage: elsewhere })]],
    ['to manage a token after consent', [pending(page), issued({ manage: elsewhere })]],
    ['to cancel a grant', [{ ...issued(), continue: continuation(elsewhere) }]],
    ['in userinfo', [issued({ manage: 'https://auth.example@other.example/token/1' })]],
    ['in another scheme', [issued({ manage: 'http://auth.example/token/1' })]],
    ['at another port', [issued({ manage: 'https://auth.example:8443/token/1' })]],
  ])('gets no signature for another server %s', async (_, answers) => {
    const { network, sent } = hostile(...answers)
    const { code, err } = await place.run(asking, { network, browse: () => {} })
    expect([code, err]).toEqual([1, expect.stringContaining('https://auth.example')])
    for (const request of sent) expect(request).toMatch(/^POST https:\/\/auth\.example\//)
    expect((await place.run(['grant', '--list'], { network })).out.trim()).toBe('')
  })

  test('gets no signature for another server by a rotation', async () => {
    const expired = issued({ expires_in: 0 })
    const { network, sent } = hostile(
      { ...expired, access_token: { ...expired.access_token, access: listing } },
      issued({ manage: elsewhere }),
    )
    await place.run(asking, { network })
    const listed = ['list', alice, '--access', 'outgoing-payment']
    for (let times = 0; times < 2; times += 1) {
      const { code, err } = await place.run([...listed, ...asking.slice(2, 4)], { network })
      expect([code, err]).toEqual([1, expect.stringContaining('https://auth.example')])
    }
    for (const request of sent) expect(request).toMatch(/^POST https:\/\/auth\.example\//)
  })
})

const listing = [{ type: 'outgoing-payment', actions: ['list'] }]

test('A hostile resource server gets no signature for another server', async () => {
  const { network, sent } = hostile(issued(), {
    id: 'https://other.example/incoming-payments/1',
    receivedAmount: { value: '0', assetCode: 'USD', assetScale: 2 },
  })
  const args = ['request', alice, '--watch', '--wait', '1s', ...asking.slice(2, 4)]
  const { code, err } = await place.run(args, { network })
  expect([code, err]).toEqual([1, expect.stringContaining('https://wallet.example')])
  expect(sent).toEqual([`POST ${authServer}`, `POST ${resourceServer}/incoming-payments`])
})

test('A page that the system cannot open is printed, and the program goes on', () => {
  const { BROWSER } = process.env
  process.env['BROWSER'] = process.execPath
  try {
    // Longer than any argument of a program.
    expect(terminal().open(`https://wallet.example/${'a'.repeat(3_000_000)}`)).toBe(false)
  } finally {
    if (BROWSER === undefined) delete process.env['BROWSER']
    else process.env['BROWSER'] = BROWSER
  }
})
