import { describe, expect, test } from 'vitest'
import { browserTokens, fieldsOf, isForeignForm } from '../src/index.js'

type Headers = readonly (readonly [string, string])[]
const key = new Uint8Array(32).fill(7)

function posted(headers: Headers, token = '') {
  const body = new TextEncoder().encode(`${new URLSearchParams({ token })}`)
  return { method: 'POST', url: '/login', headers, body }
}

test('a form is foreign unless the browser says nothing, or that a page of the same origin sent it', () => {
  const sites = ['same-origin', 'same-site', 'cross-site', 'none', '', 'SAME-ORIGIN']
  const foreign = (...values: readonly string[]) =>
    isForeignForm({ headers: values.map((value) => ['Sec-Fetch-Site', value] as const) })
  expect(sites.map((site) => foreign(site))).toEqual([false, true, true, true, true, true])
  expect([foreign(), foreign('same-origin', 'cross-site')]).toEqual([false, true])
})

describe('the token of a form before somebody is signed in', () => {
  async function opened(name: string, headers: Headers = []) {
    const { field, headers: set } = await browserTokens(key, name).field({ headers })
    const [, token = ''] = /value="([^"]+)"/.exec(`${field}`) ?? []
    return { token, set, cookie: `${set['set-cookie']}`.split(';', 1)[0] ?? '' }
  }

  test('is bound to a cookie of the browser, to its name and to the key', async () => {
    const tokens = browserTokens(key, 'form')
    const [one, other] = [await opened('form'), await opened('form')]
    const check = (cookie: string, token: string) =>
      tokens.check(posted([['cookie', cookie]], token))
    expect(await check(one.cookie, one.token)).toBe('ours')
    expect(await check(`a=b; ${one.cookie}; c=d`, one.token)).toBe('ours')
    expect(await check(one.cookie, other.token)).toBe('foreign')
    expect(await check(one.cookie, '')).toBe('foreign')
    expect(await check('form=short', one.token)).toBe('withoutCookie')
    expect(await check(one.cookie.replace('form', 'other'), one.token)).toBe('withoutCookie')
    const elsewhere = browserTokens(new Uint8Array(32), 'form')
    expect(await elsewhere.check(posted([['cookie', one.cookie]], one.token))).toBe('foreign')
    expect(fieldsOf(posted([], one.token)).get('token')).toMatch(/^[0-9a-f]{64}$/)
  })

  test('does not help a form of another site that has cookie and token', async () => {
    const { cookie, token } = await opened('form')
    for (const site of ['cross-site', 'same-site', 'none']) {
      const headers = [['cookie', cookie] as const, ['sec-fetch-site', site] as const]
      expect(await browserTokens(key, 'form').check(posted(headers, token))).toBe('foreign')
    }
  })

  test('sets a cookie that no other host can set, if its name begins with __Host-, and keeps it', async () => {
    const { set, cookie } = await opened('__Host-form')
    expect(set['set-cookie']).toMatch(
      /^__Host-form=[0-9a-f]{32}; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    )
    expect((await opened('form')).set['set-cookie']).not.toContain('Secure')
    expect((await opened('__Host-form', [['Cookie', cookie]])).set).toEqual({})
  })
})
