import { describe, expect, test } from 'vitest'
import { derivationsOf, type Grant, type IssuedToken } from '../../src/core/grant/record.js'
import {
  decideIncomingPayment,
  type IncomingPayment,
  type IncomingPaymentCommand,
  type ReceiveFunds,
} from '../../src/core/incoming-payment.js'
import type { Instant } from '../../src/core/instant.js'
import { type GrantDecisions, type GrantSetting, grantDecisions, grantMachine } from './grant.js'
import { type IncomingDecisions, incomingDecisions, incomingMachine } from './incoming-payment.js'
import { processesOf } from './processes.js'
import { type Found, search } from './search.js'

/** The law that a planted mistake breaks. Prints a shortest path to it. */
function lawBrokenBy(mistake: string, { name, broken }: Found): string | undefined {
  console.log([`${name}: ${mistake}`, ...(broken?.path ?? []), `=> ${broken?.law}`].join('\n  '))
  return broken?.law
}

const { decideGrant, isActive } = grantDecisions

type Mistaken<Decisions, Setting> = readonly [
  mistake: string,
  law: string,
  setting: Setting,
  decisions: Partial<Decisions>,
]

const grants: readonly Mistaken<GrantDecisions, GrantSetting>[] = [
  [
    'the command id of the last commit is forgotten',
    'a command that was carried out is not refused',
    { kind: 'at once' },
    {
      decideGrant: (grant, ...rest) => decideGrant({ ...grant, commandId: 'forgotten' }, ...rest),
    },
  ],
  [
    'a replaced token stays active in the retry window',
    'only the live token is active, until its end',
    { kind: 'at once' },
    {
      isActive: (grant, hash, now, policy) =>
        isActive(grant, hash, now, policy) ||
        derivationsOf(grant).some(({ from, until }) => from === hash && now < until),
    },
  ],
  [
    'a revoked token of a set stays active',
    'only the live token is active, until its end',
    { kind: 'at once', labels: ['a', 'b'] },
    {
      isActive: (grant, ...rest) => isActive(withoutRevocations(grant), ...rest),
    },
  ],
  [
    'a rotation changes all tokens of a set',
    'only the live token is rotated',
    { kind: 'at once', labels: ['a', 'b'] },
    {
      decideGrant(grant, command, ...rest) {
        const decision = decideGrant(grant, command, ...rest)
        if (command.type !== 'rotate' || decision.outcome !== 'changed') return decision
        const { tokens = [] } = decision.record
        const all = tokens.map((token) => ({ ...token, hash: `${token.hash}:new` }))
        return { ...decision, record: { ...decision.record, tokens: all } }
      },
    },
  ],
  [
    'a revoked token of a set can be rotated',
    'only the live token is rotated',
    { kind: 'at once', labels: ['a', 'b'] },
    {
      decideGrant: (grant, command, ...rest) =>
        decideGrant(
          command.type === 'rotate' ? withoutRevocations(grant) : grant,
          command,
          ...rest,
        ),
    },
  ],
  [
    'a continuation issues a token again',
    'a lost response can be repeated in the retry window',
    { kind: 'poll' },
    {
      decideGrant({ tokens, ...grant }, command, ...rest) {
        const known =
          command.type === 'continue' || tokens === undefined ? grant : { ...grant, tokens }
        return decideGrant(known, command, ...rest)
      },
    },
  ],
  [
    'a revoked grant can be rotated',
    'a grant that is over never changes',
    { kind: 'at once' },
    {
      decideGrant({ finalized, ...grant }, command, ...rest) {
        const revived = { ...grant, state: 'approved' as const }
        const known = command.type === 'rotate' || !finalized ? revived : { ...grant, finalized }
        return decideGrant(known, command, ...rest)
      },
    },
  ],
  [
    'the signature of a rotation is forgotten',
    'a recorded request succeeds once',
    { kind: 'at once', replays: 'signature' },
    {
      decideGrant({ tokens = [], ...grant }, ...rest) {
        return decideGrant({ ...grant, tokens: tokens.map(withoutSignature) }, ...rest)
      },
    },
  ],
]

function withoutRevocations({ tokens = [], ...grant }: Grant): Grant {
  return { ...grant, tokens: tokens.map(({ revokedAt: _revokedAt, ...token }) => token) }
}

function withoutSignature({ derivation, ...token }: IssuedToken): IssuedToken {
  if (derivation === undefined) return token
  const { signature: _signature, ...kept } = derivation
  return { ...token, derivation: kept }
}

/** Decides any command, whatever its type. */
const decideAny = decideIncomingPayment as (
  payment: IncomingPayment,
  command: IncomingPaymentCommand,
  now: Instant,
) => unknown

const deciding = (decide: typeof decideAny) => ({
  decide: decide as IncomingDecisions['decide'],
})

const incoming: readonly Mistaken<IncomingDecisions, unknown>[] = [
  [
    'a transfer that was counted is counted again',
    'a transfer counts once',
    undefined,
    deciding((payment, command, now) => {
      const { counted: _counted, ...forgetful } = command as ReceiveFunds
      return decideAny(payment, forgetful, now)
    }),
  ],
  [
    'a report that changes nothing does not look for its transfer again',
    'a report that is refused was not counted',
    undefined,
    { confirms: false },
  ],
  [
    'a payment that is complete can be completed again',
    'a completed payment never changes',
    undefined,
    deciding((payment, command, now) => {
      const isOpen = command.type === 'complete'
      return decideAny(isOpen ? { ...payment, completed: false } : payment, command, now)
    }),
  ],
  [
    'a payment receives funds after its expiry',
    'an expired payment receives nothing',
    undefined,
    deciding((payment, command, now) =>
      decideAny(payment, command, command.type === 'receive' ? payment.expiresAt : now),
    ),
  ],
]

const received = {
  name: 'two transfers',
  incomingAmount: 3n,
  reports: [
    ['transfer a', '1', 'payment'],
    ['transfer b', '2', 'payment'],
  ],
} as const

describe('the search finds each planted mistake', () => {
  test.each(grants)('in grants: %s', (mistake, law, setting, decisions) => {
    const machine = grantMachine(setting, { ...grantDecisions, ...decisions })
    expect(lawBrokenBy(mistake, search(processesOf(machine)))).toBe(law)
  })

  test.each(incoming)('in incoming payments: %s', (mistake, law, _, decisions) => {
    const machine = incomingMachine(received, { ...incomingDecisions, ...decisions })
    expect(lawBrokenBy(mistake, search(processesOf(machine)))).toBe(law)
  })
})
