import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Limits, MayPay } from '../../src/index.js'
import {
  createSpendingWorld,
  goneReceiver,
  grantToPay,
  otherReceiver,
  outgoingItem,
  pay,
  usd,
  withKey,
} from '../support/spending.js'
import { type Answer, alice, type World, type WorldOptions } from '../support/world.js'

const daily = 'R/2026-01-01T00:00:00Z/P1D'
const tomorrow = 'R/2100-01-01T00:00:00Z/P1D'

type Conditions = NonNullable<Parameters<World['auth']['grants']['amend']>[1]['conditions']>

/** Pays under a grant, the last of these values, and returns the answer. */
async function paid({
  limits,
  conditions,
  policy,
  to,
  values = [10],
}: {
  readonly limits?: Limits
  readonly conditions?: Conditions
  readonly policy?: NonNullable<WorldOptions['resources']>['policy']
  readonly to?: string
  readonly values?: readonly number[]
}): Promise<Answer> {
  const world = createSpendingWorld({ resources: { ...(policy && { policy }) } })
  const client = world.client()
  const { token, grantId } = await grantToPay(world, client, [outgoingItem(limits)])
  if (conditions) await world.auth.grants.amend(grantId, { conditions })
  let answer: Answer | undefined
  for (const [index, value] of values.entries()) {
    const more = to === undefined ? {} : { incomingPayment: to }
    answer = await pay(client, token, value, more, withKey(`k-${index}`))
  }
  if (answer === undefined) throw new Error('there is no payment')
  return answer
}

const confirms: MayPay = () => ({
  ...{ ok: false, refusal: 'confirmation_required', url: `${alice}/confirm` },
  until: Date.UTC(2026, 10, 21, 13),
})

/** What refuses a payment, in the words of the table. */
const causes: Readonly<Record<string, () => Promise<Answer>>> = {
  'a limit of the client is spent, or less than the payment': () =>
    paid({ limits: { debitAmount: usd(15) }, values: [10, 10] }),
  "another receiver than the client's limit names": () =>
    paid({ limits: { receiver: otherReceiver } }),
  "no window of the client's interval is open": () => paid({ limits: { interval: tomorrow } }),
  'the owner has paused payments': () => paid({ conditions: { pausedUntil: 2 ** 42 } }),
  'a condition or limit of the owner for the grant': () =>
    paid({ conditions: { limits: [{ payments: 1, interval: daily }] }, values: [10, 10] }),
  'ten payments of the grant wait for their owner': () =>
    paid({ policy: { mayPay: confirms }, values: Array(11).fill(10) }),
  'a limit of the owner for the account': () =>
    paid({ policy: { accountLimits: () => [{ debitAmount: usd(9) }] } }),
  'the receiver cannot be paid': () => paid({ to: goneReceiver }),
}

const document = readFileSync('docs/errors.md', 'utf8')
const section = document.slice(document.indexOf('\n## Not now, and not any more'))
const rows = section
  .slice(0, section.indexOf('\n\n| client |'))
  .split('\n')
  .filter((line) => line.startsWith('|') && !/^\|(?:--| cause )/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))

/** How the Web Monetization extension reads an answer to a payment: by its status and description. */
function extensionReads({ status, body }: Answer) {
  const { description } = body.error
  if (status === 403 && description === 'unauthorized') return 'gives the grant up'
  if (description === 'invalid receiver') return 'the page cannot be paid'
  if (status === 401 && description === 'Invalid Token') return 'rotates'
  if (status === 401 && /^Signature validation error/.test(description)) return 'key revoked'
  return 'tries again'
}

describe('docs/errors.md', () => {
  test('has a row for each cause, and no other', () => {
    expect(rows.map(([, cause]) => cause)).toEqual(Object.keys(causes))
  })

  test.each(rows.map(([, ...cells]) => cells))(
    'says what a client is told: %s',
    async (cause = '', refusal, answer) => {
      const found = await causes[cause]?.()
      const { code, description, details } = found?.body.error ?? {}
      expect(`${found?.status} \`${code}\` "${description}"`).toBe(answer)
      const isOfOwner = code === 'not_permitted_now'
      expect(details === undefined).toBe(isOfOwner || refusal === '`receiver_invalid`')
    },
  )
})

test.each(Object.entries(causes))(
  'the extension gives a grant up for its own limits alone: %s',
  async (_, cause) => {
    const answer = await cause()
    expect(extensionReads(answer)).toBe(
      answer.body.error.code === 'insufficient_grant'
        ? 'gives the grant up'
        : answer.body.error.code === 'invalid_receiver'
          ? 'the page cannot be paid'
          : 'tries again',
    )
  },
)

test('a client whose stream met a pause goes on with the same token once the owner ends the pause', async () => {
  const world = createSpendingWorld()
  const client = world.client()
  const { token, grantId } = await grantToPay(world, client)
  const { amend } = world.auth.grants
  await amend(grantId, { conditions: { pausedUntil: 2 ** 42 } })
  expect(extensionReads(await pay(client, token, 1))).toBe('tries again')
  await amend(grantId, { conditions: { pausedUntil: null } })
  expect((await pay(client, token, 1)).status).toBe(201)
})
