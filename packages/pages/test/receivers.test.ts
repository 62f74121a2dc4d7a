import fc from 'fast-check'
import { type AccessItem, displayName } from 'open-payments-server'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { html } from '../src/html.js'
import {
  grantedReceiverHtml,
  type NamedReceiver,
  namedReceivers,
  receiverHtml,
  receiversIn,
} from '../src/receivers.js'
import { textOf } from './text.js'

const invoice = 'https://bank.example/incoming-payments/1'
const bill = 'https://shop.example/incoming-payments/2'
const paying = (receiver?: string): AccessItem => ({
  type: 'outgoing-payment',
  actions: ['create'],
  ...(receiver !== undefined && { limits: { receiver } }),
})

describe('the receivers in access', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('are looked up once each', async () => {
    const asked: string[] = []
    const receiverOf = (url: string) => {
      asked.push(url)
      return { name: 'Bob' }
    }
    const access = [paying(), paying(invoice), paying(bill), paying(invoice)]
    const found = await namedReceivers(receiversIn(access), receiverOf)
    expect(asked).toEqual([invoice, bill])
    expect(found.get(bill)).toEqual({ name: 'Bob' })
  })

  test.each<[string, () => NamedReceiver | Promise<NamedReceiver>]>([
    ['never resolves', () => new Promise(() => {})],
    ['rejects', () => Promise.reject(new Error('no network'))],
    [
      'throws',
      () => {
        throw new Error('no network')
      },
    ],
  ])('lack one whose look-up %s, after at most two seconds', async (_, answer) => {
    const receiverOf = (url: string) => (url === bill ? answer() : { name: 'Bob' })
    let found: ReadonlyMap<string, NamedReceiver> | undefined
    void namedReceivers(receiversIn([paying(bill), paying(invoice)]), receiverOf).then((each) => {
      found = each
    })
    await vi.advanceTimersByTimeAsync(2_000)
    expect([...(found ?? [])]).toEqual([[invoice, { name: 'Bob' }]])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('do not change after the page has them', async () => {
    let answer: (receiver: NamedReceiver) => void = () => {}
    const late = new Promise<NamedReceiver>((resolve) => {
      answer = resolve
    })
    const finding = namedReceivers(receiversIn([paying(invoice)]), () => late)
    await vi.advanceTimersByTimeAsync(2_000)
    const found = await finding
    answer({ name: 'Bob' })
    await vi.advanceTimersByTimeAsync(0)
    expect(found.size).toBe(0)
  })

  test.each<[unknown, NamedReceiver]>([
    [{ name: 1, walletAddress: {} }, {}],
    [{ name: ' Bob\u202e\n the  builder', walletAddress: '' }, { name: 'Bob the builder' }],
    [{ walletAddress: 'https://b.example/bob' }, { walletAddress: 'https://b.example/bob' }],
  ])('are cleaned: %j', async (given, expected) => {
    const found = await namedReceivers(receiversIn([paying(invoice)]), () => given as NamedReceiver)
    expect(found.get(invoice)).toEqual(expected)
  })
})

describe('a receiver on a page', () => {
  const walletAddress = 'https://bank.example/bob'
  test.each<[NamedReceiver | undefined, string]>([
    [{ name: 'Bob', walletAddress }, `Bob ${walletAddress}`],
    [{ name: 'Bob' }, `Bob ${invoice}`],
    [{ walletAddress }, walletAddress],
    [{}, `bank.example ${invoice}`],
    [undefined, `bank.example ${invoice}`],
  ])('that is known as %j is shown as %s', (receiver, expected) => {
    const receivers = new Map(receiver && [[invoice, receiver]])
    expect(textOf(receiverHtml(invoice, receivers))).toBe(expected)
    expect(textOf(grantedReceiverHtml(invoice, receivers))).toContain(invoice)
  })

  test('has its host in bold, and becomes no markup, whatever its wallet says', async () => {
    const part = fc.constantFrom('<img src=x>', '"', '&', '\u202e', '\u2069', 'x', '</b>', ' ')
    const text = fc.array(part, { maxLength: 8 }).map((parts) => parts.join(''))
    const given = fc.record({ name: text, walletAddress: text }, { requiredKeys: [] })
    await fc.assert(
      fc.asyncProperty(given, async (receiver) => {
        const found = await namedReceivers(receiversIn([paying(invoice)]), () => receiver)
        const shown = `${html`${receiverHtml(invoice, found)}`}`
        expect(shown.replaceAll(/<\/?(?:b|bdi|span)\b[^<>]*>/g, '')).not.toMatch(
          /[<>"\u202e\u2069]/,
        )
        const name = displayName(receiver.name)
        if (name !== undefined) expect(textOf(shown)).toContain(name)
      }),
    )
    expect(String(receiverHtml(invoice))).toContain('<b>bank.example</b>')
  })
})
