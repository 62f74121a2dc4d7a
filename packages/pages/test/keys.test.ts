import type { ClientKeyRefusal } from 'open-payments-server'
import { describe, expect, test } from 'vitest'
import { html } from '../src/html.js'
import { keysScreen, readKey } from '../src/keys.js'
import { languages, localeFor } from '../src/locale.js'
import { textOf } from './text.js'

const account = { url: 'https://wallet.example/alice', assetCode: 'USD', assetScale: 2 }

/** A text for each reason to refuse one. */
const refused: Readonly<Record<ClientKeyRefusal, string>> = {
  key_missing: 'nothing of use',
  key_too_long: 'x'.repeat(4_097),
  key_private: '{"d":"x"}',
  key_unsupported: '{"kty":"RSA"}',
  key_damaged: '{"kty":"OKP","crv":"Ed25519","x":"x"}',
  key_unsound: `{"kty":"OKP","crv":"Ed25519","x":"${'A'.repeat(43)}"}`,
  keys_several: '{"keys":[{},{}]}',
  kid_invalid: `{"kty":"OKP","crv":"Ed25519","kid":"ü","x":"${'A'.repeat(43)}"}`,
}

describe.each(Object.entries(refused))('a text that is refused with %s', (refusal, key) => {
  test('is refused in the language of the owner, and not repeated', async () => {
    const given = new URLSearchParams({ key, name: 'Shop' })
    const read = readKey(given, 0)
    expect(read).toEqual({ ok: false, problem: refusal })
    if (read.ok) return
    const { problem } = read
    const texts = Object.keys(languages).map(async (language) => {
      const locale = localeFor({ headers: [] }, { language })
      const base = { locale, account, accounts: [account], given, token: html`` }
      const { content } = await keysScreen([], { ...base, problem })
      expect(`${content}`).not.toContain(`${html`${key}`}`)
      return textOf(/<p><a href="#k\w+">(.*?)<\/a>/.exec(`${content}`)?.[1] ?? '')
    })
    expect(new Set(await Promise.all(texts)).size).toBe(4)
  })
})

const shown = { ...account, publicName: 'Alice' }
const english = localeFor({ headers: [] }, { language: 'en' })

test('a refused field is marked, says why beside itself, and keeps what may be shown', async () => {
  const given = new URLSearchParams({ key: '{"d":"x"}', name: 'Shop', kid: 'one' })
  const base = { locale: english, account: shown, accounts: [shown], given, token: html`` }
  const contentFor = async (problem?: 'name' | 'key_private' | 'kidTaken') =>
    `${(await keysScreen([], { ...base, problem })).content}`
  for (const [problem, field] of [
    ['name', 'name'],
    ['key_private', 'key'],
    ['kidTaken', 'kid'],
  ] as const) {
    const content = await contentFor(problem)
    const marked = [...content.matchAll(/<(?:input|textarea) id="(\w+)"[^>]*aria-invalid="true"/g)]
    expect(marked.map(([, id]) => id)).toEqual([field])
    const described = field === 'key' ? 'key-hint key-problem' : `${field}-problem`
    expect(content).toContain(`aria-describedby="${described}"`)
    const [, said = ''] = new RegExp(`id="${field}-problem">(.*?)</p>`).exec(content) ?? []
    expect(content).toContain(`<a href="#${field}">${said}</a>`)
    expect(said).not.toBe('')
    expect(content).toContain('value="Shop"')
  }
  expect(await contentFor()).not.toContain('aria-invalid')
})

test('revoking a key takes two steps, and the second names the key and what follows', async () => {
  const key = { kid: 'one', x: 'A'.repeat(43), name: 'Shop', addedAt: 0, account: shown }
  const base = { locale: english, account: shown, accounts: [shown], token: html`` }
  const { content } = await keysScreen([key], { ...base, given: new URLSearchParams() })
  const [, card = ''] = /<article[^>]*>([\s\S]*?)<\/article>/.exec(`${content}`) ?? []
  const [before = '', details = ''] = card.split('<details>')
  expect(before).not.toContain('<button')
  expect(textOf(details)).toMatch(/^Revoke\s+An app with this key is refused at once/)
  expect(textOf(details)).toContain('Revoke the key Shop')
})
