import fc from 'fast-check'
import type { SpendingLimit } from 'open-payments-server'
import { runs } from 'open-payments-test-support/runs'
import { createSpendingWorld, grantToPay, pay, usd } from 'open-payments-test-support/spending'
import { alice, bob, carol } from 'open-payments-test-support/world'
import { describe, expect, test } from 'vitest'
import { accountLimitsScreen } from '../src/account-limits.js'
import { html } from '../src/html.js'
import { type AccountLimitSettings, createPages, formTokens, page, seeOther } from '../src/index.js'
import { languages, localeFor, visible } from '../src/locale.js'
import { periods } from '../src/owner-limits.js'
import { followed } from './followed.js'
import { factsOfLimit, isNarrowed, ownerLimit, wire } from './granted.js'
import { textOf } from './text.js'

const formKey = new Uint8Array(32).fill(7)
const owned: Readonly<Record<string, readonly string[]>> = { alice: [alice, carol], bob: [bob] }

/** Keeps the limits of accounts. Each call takes some turns of the event loop. */
function memorySettings(turns: () => number = () => 0) {
  const stored = new Map<string, readonly SpendingLimit[]>()
  const wait = async () => {
    for (let left = turns(); left > 0; left--) await new Promise(setImmediate)
  }
  const settings: AccountLimitSettings = {
    async of(walletAddress) {
      await wait()
      return stored.get(walletAddress) ?? []
    },
    async set(walletAddress, limits, before) {
      await wait()
      const isSame = JSON.stringify(stored.get(walletAddress) ?? []) === JSON.stringify(before)
      if (isSame) stored.set(walletAddress, limits)
      return isSame
    },
  }
  return { stored, settings }
}

type Fields = Readonly<Record<string, string>>

/** A wallet whose request names its owner in the cookie, and the pages of its owners. */
function wallet(accountLimits?: AccountLimitSettings, more: { signedInAt?: () => number } = {}) {
  const world = createSpendingWorld({
    resources: { policy: accountLimits ? { accountLimits: accountLimits.of } : {} },
  })
  const { connectedApps } = createPages({
    auth: world.auth,
    resources: world.resources,
    ownerOf({ headers }) {
      const [, id = ''] = headers.find(([name]) => name === 'Cookie') ?? []
      return id === ''
        ? undefined
        : { id, ...(more.signedInAt && { signedInAt: more.signedInAt() }) }
    },
    accountsOf: (id) =>
      (owned[id] ?? []).map((url) => ({
        url,
        assetCode: url === carol ? 'EUR' : 'USD',
        assetScale: 2,
        ...(url === carol && { publicName: 'Holidays' }),
      })),
    signIn: () => ({ status: 303, headers: { location: '/login' } }),
    ...(more.signedInAt && {
      signInAgain: ({ url }) => seeOther(`/login?${new URLSearchParams({ next: url })}`),
    }),
    formKey,
    clock: world.clock,
    ...(accountLimits && { accountLimits }),
  })
  async function send(
    method: string,
    { url = '/apps?limits', fields = {}, owner = 'alice', language = 'en' },
  ) {
    const headers = [
      ['Cookie', owner],
      ['Accept-Language', language],
    ] as const
    const body = new TextEncoder().encode(`${new URLSearchParams(fields)}`)
    const serve = (url: string, as: string) => connectedApps({ method: as, url, headers, body })
    const response = await followed(await serve(url, method), url, (url) => serve(url, 'GET'))
    return { ...response, text: textOf(response.body ?? '') }
  }
  const open = (more: { url?: string; owner?: string; language?: string } = {}) => send('GET', more)
  /** Posts a form, and resolves to the page to which it leads: the one that checks it, if nothing is wrong. */
  async function check(fields: Fields, more: { owner?: string; language?: string } = {}) {
    const { owner = 'alice' } = more
    const token = await formTokens(formKey).value('account-limits', owner)
    const form = { token, account: alice, do: 'limit', interval: '', ...fields }
    return send('POST', { fields: form, ...more })
  }
  /** Presses the button of a page that checks a limit. */
  function save(
    { body = '' }: { readonly body?: string },
    more: { owner?: string; language?: string } = {},
  ) {
    const [, shown = ''] = /name="shown" value="([^"]*)"/.exec(body) ?? []
    const [, token = ''] = /name="token" value="([^"]*)"/.exec(body) ?? []
    const plain = shown.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    return send('POST', { fields: { shown: plain, token, do: 'save' }, ...more })
  }
  async function post(fields: Fields, more: { owner?: string; language?: string } = {}) {
    const answer = await check(fields, more)
    return answer.body?.includes('name="shown"') ? save(answer, more) : answer
  }
  return { world, open, check, save, post }
}

describe('the page of limits for all apps', () => {
  test('adds and lowers the limits of an account, and shows what all its apps have left', async () => {
    const { settings, stored } = memorySettings()
    const { world, open, post } = wallet(settings)
    expect((await open({ url: '/apps' })).body).toContain(
      '<a href="?limits">Limits for all apps</a>',
    )
    const saved = [303, `?${new URLSearchParams({ limits: '', account: alice, done: 'saved' })}`]
    const set = async (fields: Fields) => {
      const { status, headers } = await post(fields)
      return [status, headers['location']]
    }
    const monthly = periods.everyMonth
    expect(await set({ interval: monthly, most: '20', payments: '4' })).toEqual(saved)
    expect(await set({ interval: monthly, most: '20', payments: '4' })).toEqual(saved)
    expect(await set({ payments: '9' })).toEqual(saved)
    expect(await set({ interval: monthly, most: '15', payments: '' })).toEqual(saved)
    const limits = [{ debitAmount: usd(1500), payments: 4, interval: monthly }, { payments: 9 }]
    expect([...stored]).toEqual([[alice, limits]])

    for (const name of ['shop', 'bookshop']) {
      const client = world.client(name)
      const { token } = await grantToPay(world, client)
      expect((await pay(client, token, 500)).status).toBe(201)
    }
    const { text } = await open({ url: `/apps${saved[1]}` })
    for (const expected of [
      `Your limits for ${alice} have been saved.`,
      'at most 15.00 USD is debited from your account every month',
      'all apps together pay at most 4 times every month',
      '5.00 USD left until',
      'Payments left: 7',
      'Holidays',
      'Most that all apps may spend together, in EUR',
    ]) {
      expect(text).toContain(expected)
    }
    expect(text).toMatch(/Payments left until .* UTC: 2/)
  })

  test('shows a limit before it saves it, and saves exactly what it shows', async () => {
    const { settings, stored } = memorySettings()
    stored.set(alice, [{ debitAmount: usd(2000) }])
    const { check, save } = wallet(settings)
    const page = await check({ most: '1' })
    const expected =
      'From now onat most 1.00 USD is debited from your account in all Until nowat most 20.00 USD'
    expect([page.status, page.text.replaceAll(/\s+/g, ' ')]).toEqual([
      200,
      expect.stringContaining(expected),
    ])
    expect(stored.get(alice)).toEqual([{ debitAmount: usd(2000) }])
    const forged = (page.body ?? '').replace('&#34;100&#34;', '&#34;1&#34;')
    expect(forged).not.toBe(page.body)
    expect((await save({ body: forged })).status).toBe(400)
    expect(stored.get(alice)).toEqual([{ debitAmount: usd(2000) }])
    expect([(await save(page)).status, (await save(page)).status]).toEqual([303, 303])
    expect(stored.get(alice)).toEqual([{ debitAmount: usd(100) }])
  })

  test('does not save over a limit that another form has changed meanwhile', async () => {
    const { settings, stored } = memorySettings()
    stored.set(alice, [{ payments: 9 }])
    const { check, save, post } = wallet(settings)
    const page = await check({ payments: '5' })
    await post({ payments: '3' })
    expect((await save(page)).text).toContain('Your limits have changed meanwhile.')
    expect(stored.get(alice)).toEqual([{ payments: 3 }])
  })

  test.each<[string, Fields, readonly SpendingLimit[]]>([
    ['raises', { most: '30', payments: '7' }, [{ debitAmount: usd(3000), payments: 7 }]],
    ['removes', { do: 'remove' }, []],
  ])('%s a limit only after a new sign-in', async (_, fields, expected) => {
    const { settings, stored } = memorySettings()
    const before = [{ debitAmount: usd(2000), payments: 5 }]
    stored.set(alice, before)
    let signedInAt = 0
    const { world, check, save, open } = wallet(settings, { signedInAt: () => signedInAt })
    signedInAt = world.clock.now() - 300_000
    const refused = await check(fields)
    expect([refused.status, refused.text]).toEqual([
      403,
      expect.stringContaining('Please sign in again'),
    ])
    const [, link = ''] = /href="(\/login[^"]*)"/.exec(refused.body ?? '') ?? []
    const next = new URLSearchParams(link.replaceAll('&#38;', '&').split('?')[1]).get('next') ?? ''
    signedInAt = world.clock.now()
    const page = await open({ url: next })
    expect([page.status, page.text]).toEqual([
      200,
      expect.stringContaining('Please check the limit'),
    ])
    expect(stored.get(alice)).toEqual(before)
    signedInAt -= 300_000
    expect((await save(page)).status).toBe(400)
    expect(stored.get(alice)).toEqual(before)
    signedInAt += 300_000
    expect((await save(page)).status).toBe(303)
    expect(stored.get(alice)).toEqual(expected)
  })

  test('lowers a limit and adds one without a new sign-in, and offers more only if it can', async () => {
    const { settings, stored } = memorySettings()
    const { post, open } = wallet(settings, { signedInAt: () => 0 })
    await post({ payments: '5' })
    await post({ payments: '4' })
    expect(stored.get(alice)).toEqual([{ payments: 4 }])
    expect((await open()).text).toContain('Remove the limit')
    expect((await wallet(settings).open()).text).not.toContain('Remove the limit')
    expect((await wallet(settings).post({ do: 'remove' })).status).toBe(400)
    expect(stored.get(alice)).toEqual([{ payments: 4 }])
  })

  test.each<[string, Fields, number, string]>([
    ['a higher amount', { most: '20.01' }, 400, 'A limit can only become lower.'],
    ['more payments', { payments: '6' }, 400, 'A limit can only become lower.'],
    ['zero', { most: '0' }, 400, 'A limit of zero allows no payment.'],
    ['nothing', {}, 400, 'Please write an amount,'],
    ['another period', { interval: 'R/2026-01-01T00:00:00Z/PT1M', most: '1' }, 400, 'Nothing was'],
    ['another action', { do: 'revoke', most: '1' }, 400, 'Nothing was changed'],
    ['another token', { token: 'x', most: '1' }, 400, 'Please answer again'],
    ['the account of another owner', { account: bob, most: '1' }, 403, 'for another account'],
    ['no account', { account: '', most: '1' }, 403, 'for another account'],
  ])('changes nothing for %s', async (_, fields, expected, message) => {
    const { settings, stored } = memorySettings()
    const before = [{ debitAmount: usd(2000), payments: 5 }]
    for (const url of [alice, bob]) stored.set(url, before)
    const { status, text } = await wallet(settings).post(fields)
    expect([status, text]).toEqual([expected, expect.stringContaining(message)])
    expect([...stored]).toEqual([
      [alice, before],
      [bob, before],
    ])
  })

  test('shows an error at the field of its account, with what was typed', async () => {
    const { post } = wallet(memorySettings().settings)
    const { body = '' } = await post({ account: carol, most: '"1' })
    expect(body).toContain('<a href="#account-1-new-most">')
    expect(body).toMatch(/id="account-1-new-most"[^>]* value="&#34;1"\s+aria-invalid="true"/)
    expect(body.match(/<details open>/g)).toHaveLength(1)
  })

  test('is for its signed-in owner, and takes the token of no other owner or form', async () => {
    const { settings, stored } = memorySettings()
    const { open, post } = wallet(settings)
    expect((await open({ owner: '' })).headers['location']).toBe('/login')
    const { text } = await open({ owner: 'bob' })
    expect(text).toContain(bob)
    expect(text).not.toContain(alice)
    const tokens = formTokens(formKey)
    for (const [purpose, owner] of [
      ['account-limits', 'bob'],
      ['apps', 'alice'],
    ] as const) {
      const token = await tokens.value(purpose, owner)
      expect((await post({ token, most: '1' })).status).toBe(400)
    }
    const junk = await open({ url: `/apps?limits&done=saved&account=${bob}` })
    expect(junk.text).not.toContain('saved')
    expect([...stored]).toEqual([])
  })

  test('does not exist without settings of the host', async () => {
    const { open, post } = wallet()
    const { status, text } = await open()
    expect([status, text]).toEqual([200, expect.not.stringContaining('Limits for all apps')])
    expect((await post({ most: '1' })).status).toBe(400)
  })

  test('whatever forms are posted at the same time, each limit that it says is saved applies', async () => {
    const interval = fc.constantFrom('', ...Object.values(periods).map((each) => each ?? ''))
    const form = fc.record({ interval, payments: fc.integer({ min: 1, max: 9 }).map(String) })
    const forms = fc.array(form, { minLength: 2, maxLength: 3 })
    const turns = fc.array(fc.nat({ max: 3 }), { minLength: 30, maxLength: 30 })
    await fc.assert(
      fc.asyncProperty(forms, turns, async (posted, waits) => {
        const { settings, stored } = memorySettings(() => waits.pop() ?? 0)
        const { post } = wallet(settings)
        const answers = await Promise.all(posted.map((fields) => post(fields)))
        const final = stored.get(alice) ?? []
        for (const [index, { status, text }] of answers.entries()) {
          const { interval: period, payments } = posted[index] ?? { interval: '', payments: '' }
          const limit = final.find((each) => (each.interval ?? '') === period)
          const isAlone = posted.filter((other) => other.interval === period).length === 1
          if (status === 303) expect(limit?.payments).toBeLessThanOrEqual(Number(payments))
          else expect([isAlone, text]).toEqual([false, expect.stringMatching(/have changed|lower/)])
        }
      }),
      { numRuns: runs(120) },
    )
  })

  test.each([
    ['en', 'Your limits have changed meanwhile'],
    ['de', 'Ihre Limits haben sich inzwischen geändert'],
    ['es', 'Sus límites han cambiado entretanto'],
    ['ar', 'تغيرت حدودك في هذه الأثناء'],
  ])('tells an owner in %s that the limits change all the time', async (language, expected) => {
    const { settings } = memorySettings()
    const { post } = wallet({ ...settings, set: async () => false })
    const { status, text, body } = await post({ payments: '3' }, { language })
    expect([status, text]).toEqual([400, expect.stringContaining(expected)])
    expect(body).toMatch(/<details open>(?:(?!<details).)* value="3"/s)
  })

  test('only narrows limits, whatever is typed', async () => {
    const typed = fc.constantFrom('', '0', '1', '12.50', '1,000', '1e3', '-1', '9'.repeat(30))
    const interval = fc.constantFrom(...Object.values(periods), 'x', '__proto__')
    const form = fc.record({
      interval: interval.map((each) => each ?? ''),
      most: typed,
      payments: typed,
    })
    await fc.assert(
      fc.asyncProperty(fc.array(form, { maxLength: 5 }), async (forms) => {
        const { settings, stored } = memorySettings()
        const { post } = wallet(settings)
        for (const fields of forms) {
          const before = stored.get(alice) ?? []
          await post(fields)
          const after = stored.get(alice) ?? []
          expect(isNarrowed(before, after), JSON.stringify([before, after])).toBe(true)
        }
      }),
      { numRuns: runs(120) },
    )
  })
})

describe('the screen of limits for all apps', () => {
  const locales = Object.keys(languages).map((language) => localeFor({ headers: [] }, { language }))

  test('shows each limit of each account, and no markup of others', () => {
    const account = fc.record({ url: wire, publicName: wire })
    const limited = fc.record({
      account: account.map((each) => ({ ...each, assetCode: 'USD', assetScale: 2 })),
      limits: fc.uniqueArray(ownerLimit, { maxLength: 3, selector: (each) => each.interval }),
    })
    const accounts = fc.array(limited, { minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(accounts, fc.constantFrom(...locales), (all, locale) => {
        const options = { locale, given: new URLSearchParams(), token: html`` }
        const { body = '' } = page(accountLimitsScreen(all, options), { locale })
        const text = textOf(body)
        for (const fact of all.flatMap(({ limits }) => limits.flatMap(limitFacts(locale)))) {
          expect(text).toContain(textOf(html`${visible(fact)}`))
        }
        expect(body).not.toContain('<img')
        const ids = [...body.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id)
        expect(new Set(ids).size).toBe(ids.length)
      }),
      { numRuns: runs(120) },
    )
  })

  const limitFacts = (locale: (typeof locales)[number]) => (limit: SpendingLimit) =>
    factsOfLimit(limit, locale)

  test('says in each language that there is no limit, and not beside one', () => {
    const account = { url: alice, assetCode: 'USD', assetScale: 2 }
    for (const locale of locales) {
      const options = { locale, given: new URLSearchParams(), token: html`` }
      const shown = (limits: readonly SpendingLimit[]) =>
        textOf(accountLimitsScreen([{ account, limits }], options).content)
      expect(shown([])).toContain(locale.texts.accountLimitsNone)
      expect(shown([{ payments: 1 }])).not.toContain(locale.texts.accountLimitsNone)
    }
  })

  test('says in each language that no app can pay outside all windows', () => {
    const account = { url: alice, assetCode: 'USD', assetScale: 2 }
    const statuses = [{ source: 'account', isOpen: false, left: {} }] as const
    for (const locale of locales) {
      const options = { locale, given: new URLSearchParams(), token: html`` }
      const limited = { account, limits: [{ payments: 1 }], statuses }
      const { content } = accountLimitsScreen([limited], options)
      expect(textOf(content)).toContain(locale.texts.accountNotNow)
    }
  })
})
