import { expect, test } from 'vitest'
import { repeatedly } from '../../examples/wallet/background.js'
import { eventLine } from '../../examples/wallet/event-line.js'

const at = Date.UTC(2026, 10, 21, 12)
const client = 'https://shop.example'
const receiver = 'https://wallet.example/incoming-payments/1'

test.each([
  [
    { id: 'e', type: 'grant.requested', at, grantId: 'g', client },
    '2026-11-21T12:00:00.000Z  grant.requested  g  to https://shop.example',
  ],
  [
    { id: 'e', type: 'grant.issued', at, grantId: 'g', client, resourceOwner: 'alice' },
    '2026-11-21T12:00:00.000Z  grant.issued  g  to https://shop.example by alice',
  ],
  [
    {
      id: 'e',
      type: 'incoming-payment.received',
      at,
      incomingPaymentId: 'p',
      walletAddress: 'https://wallet.example/bob',
      client,
      receivedAmount: { value: '1500', assetCode: 'USD', assetScale: 2 },
      incomingAmount: { value: '2500', assetCode: 'USD', assetScale: 2 },
    },
    '2026-11-21T12:00:00.000Z  incoming-payment.received  p  USD 15.00 of USD 25.00 for https://wallet.example/bob',
  ],
  [
    {
      id: 'e',
      type: 'incoming-payment.expired',
      at,
      incomingPaymentId: 'p',
      walletAddress: 'https://wallet.example/bob',
      client,
      receivedAmount: { value: '0', assetCode: 'USD', assetScale: 2 },
    },
    '2026-11-21T12:00:00.000Z  incoming-payment.expired  p  USD 0.00 for https://wallet.example/bob',
  ],
  [
    {
      id: 'e',
      type: 'quote.created',
      at,
      quoteId: 'q',
      walletAddress: 'https://wallet.example/alice',
      client,
      receiver,
      debitAmount: { value: '1010', assetCode: 'USD', assetScale: 2 },
      receiveAmount: { value: '925', assetCode: 'EUR', assetScale: 2 },
    },
    `2026-11-21T12:00:00.000Z  quote.created  q  EUR 9.25 for USD 10.10 from https://wallet.example/alice to ${receiver}`,
  ],
  [
    {
      id: 'e',
      type: 'outgoing-payment.sent',
      at,
      outgoingPaymentId: 'p',
      walletAddress: 'https://wallet.example/alice',
      client,
      grantId: 'g',
      receiver,
      debitAmount: { value: '1010', assetCode: 'USD', assetScale: 2 },
      receiveAmount: { value: '925', assetCode: 'EUR', assetScale: 2 },
      sentAmount: { value: '505', assetCode: 'USD', assetScale: 2 },
      deliveredAmount: { value: '462', assetCode: 'EUR', assetScale: 2 },
    },
    `2026-11-21T12:00:00.000Z  outgoing-payment.sent  p  USD 5.05 of USD 10.10 from https://wallet.example/alice to ${receiver}`,
  ],
] as const)('formats an event on one line: %j', (event, line) => {
  expect(eventLine({ ...event, server: 'https://wallet.example' })).toBe(line)
})

test('repeated work continues after an error and ends when it is stopped', async () => {
  const errors: unknown[] = []
  let turns = 0
  let reached = () => {}
  const third = new Promise<void>((resolve) => {
    reached = resolve
  })
  const background = repeatedly(
    0,
    async () => {
      if (++turns === 3) reached()
      throw turns
    },
    (error) => errors.push(error),
  )
  await third
  await background.stop()
  const after = turns
  expect(errors).toEqual(Array.from({ length: after }, (_, i) => i + 1))
  await new Promise((resolve) => setTimeout(resolve, 5))
  expect(turns).toBe(after)
})

test('stopping aborts current work and waits for it to finish', async () => {
  let finish = () => {}
  let finished = false
  let heard: AbortSignal | undefined
  const background = repeatedly(
    60_000,
    async (signal) => {
      heard = signal
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      finished = true
    },
    () => undefined,
  )
  const stopped = background.stop().then(() => finished)
  expect(heard?.aborted).toBe(true)
  finish()
  expect(await stopped).toBe(true)
})
